"""Files to paste for a setting: the server's own configuration, a systemd unit, a Dockerfile, lines for nginx.

    files(command, Wishes(memory_bytes=10**9, cpus=2, full=Full(20_000, 10**8)))

They follow from the command line, which is that of the measurement: `judge/deploying.py` leaves out how it stops and
what it logs there. What is known of its server stands in the server's stack (`guest/stack.py`).
"""

import json
import math
import re
import shlex
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field

from velodrome.guest import catalog
from velodrome.guest.stack import KnobValue, Server, Stack

PYTHON = "/srv/app/.venv/bin/python"
FOLDER = "/srv/app"
ENVIRONMENT = "/etc/app.env"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - inside a container that is what has to be listened on
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*=")
_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./%$-]+")
MIB = 2**20
USER_ID = 10001
"""Of the user of a container: no image has it."""
STOP_S = 70
"""Seconds from the stop signal to the kill: more than any server gives requests in flight by itself (60)."""
PROXY_IDLE_S, OF_SERVER = 60, 0.75
"""How long a proxy keeps an idle connection to the server: so long, and at most that part of what the server does."""
HARDENING = (
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "LockPersonality=yes",
    "PrivateDevices=yes",
    "PrivateTmp=yes",
    "ProtectClock=yes",
    "ProtectControlGroups=yes",
    "ProtectHome=read-only",
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "ProtectProc=invisible",
    "ProtectSystem=strict",
    "RemoveIPC=yes",
    # Netlink is how the C library asks for the machine's own addresses when it resolves a name.
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "SystemCallArchitectures=native",
    "SystemCallErrorNumber=EPERM",
    "SystemCallFilter=@system-service",
    "UMask=0027",
)
"""What systemd takes from a service that only serves. Not `MemoryDenyWriteExecute`: ctypes and compilers at run time
need such memory."""


@dataclass(frozen=True)
class Full:
    """When a worker has to be replaced, because memory rises with each request."""

    requests: int
    """That it has served."""
    memory_bytes: int
    """That it has."""


@dataclass(frozen=True)
class Wishes:
    """What a deployment needs beside the command line."""

    cpus: int | None = None
    memory_bytes: int | None = None
    full: Full | None = None
    """None: memory does not rise."""
    python: str = PYTHON
    folder: str = FOLDER
    variables: tuple[str, ...] = ()
    """Names of environment variables that the app needs; their values are not known here."""
    stack: Stack | None = None
    """Who serves; None: it is found by the command line."""
    knobs: Mapping[str, KnobValue] = field(default_factory=dict)
    """Of the stack, all of them."""
    measured: str = ""
    """For what the setting was measured, in a sentence or two; empty: it was not."""
    version: str = ""
    """Of the interpreter it was measured with: `3.13.1`."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Versions it was measured with, by name."""

    def server(self, command: str) -> Server | None:
        """Return what is known of the server that a command line starts."""
        if self.stack is not None:
            return self.stack.server
        return catalog.servers().get(server_of(command))

    @property
    def protocol(self) -> str:
        """What is spoken: `http` or `grpc`."""
        return catalog.interface(self.stack.interface).protocol if self.stack is not None else "http"

    @property
    def chats(self) -> bool:
        """Whether there may be WebSockets."""
        return self.stack is not None and catalog.interface(self.stack.interface).chats


@dataclass(frozen=True)
class File:
    """A file to paste."""

    name: str
    text: str


def command_line(command: str, wishes: Wishes) -> str:
    """Return the command line as it is to be deployed."""
    variables, words = _parted(command, wishes)
    return " ".join(
        [*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.join(words)]
    )


def server_of(command: str) -> str:
    """Return which program a command line starts."""
    _, words = _split(command)
    return words[2] if len(words) > 3 and words[1] == "-m" else " ".join(words[:2])


def replaces_workers(command: str, wishes: Wishes) -> bool:
    """Return whether the server of a command line has an option to replace a worker."""
    return bool(_replacing(wishes.server(command), Full(1, MIB)))


def files(command: str, wishes: Wishes) -> tuple[File, ...]:
    """Return what can be pasted; nothing where a stack has no command line of its own."""
    variables, words = _parted(command, wishes)
    if words[:1] != ["python"] or len(words) < 2:
        return ()
    found = []
    started = words
    server = wishes.server(command)
    if server is not None and server.configuration is not None:
        made = server.configuration(tuple(words))
        found.append(File(made.name, made.text))
        started = [*made.command]
    found.append(File("app.service", _unit([wishes.python, *started[1:]], variables, wishes, server)))
    if wishes.packages:
        found.append(File(PACKAGES, _packages(wishes)))
    found.append(File("Dockerfile", _docker(words, variables, wishes, server)))
    if wishes.protocol == "http":
        found.append(File("nginx.conf", _nginx(wishes, server)))
    about = [f"# {wishes.measured}"] if wishes.measured else []
    return tuple(File(file.name, "\n".join([*about, file.text])) for file in found)


def _split(command: str) -> tuple[dict[str, str], list[str]]:
    """Return the variables that stand before a command line, and its words."""
    words = shlex.split(command)
    variables: dict[str, str] = {}
    while words and _VARIABLE.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    return variables, words


def _parted(command: str, wishes: Wishes) -> tuple[dict[str, str], list[str]]:
    """Return the variables that stand before a command line, and its words as they are to be deployed."""
    variables, words = _split(command)
    if wishes.full is not None:
        words = [*words[:-1], *_replacing(wishes.server(command), wishes.full), words[-1]]
    return variables, words


def _replacing(server: Server | None, full: Full) -> tuple[str, ...]:
    """Return the options by which a server replaces a worker that is full; none where it cannot."""
    if server is None or server.replace_worker is None:
        return ()
    return server.replace_worker(full.requests, full.memory_bytes)


def _first_cpus(count: int) -> str:
    """Return the first so many CPUs as a list for systemd and Docker."""
    return "0" if count == 1 else f"0-{count - 1}"


def _stop_signal(server: Server | None) -> str:
    return signal.Signals(server.stop_signal if server is not None else signal.SIGTERM).name


def _supervises(wishes: Wishes, server: Server | None) -> bool:
    """Return whether the first process ends the others; programs that are pasted only fork."""
    if server is not None:
        return server.supervises
    return wishes.stack is None or wishes.stack.script is None


def _unit(words: list[str], variables: Mapping[str, str], wishes: Wishes, server: Server | None) -> str:
    limits = []
    if wishes.cpus is not None:
        # Not CPUQuota=: that stops all threads for the rest of each 100 ms, which was not measured.
        limits += [
            "# Any CPUs, and so many: the setting is for them.",
            f"CPUAffinity={_first_cpus(wishes.cpus)}",
        ]
    if wishes.memory_bytes is not None:
        limits.append(f"MemoryMax={wishes.memory_bytes}")
    needed = []
    if wishes.variables:
        about = f"# Holds {', '.join(wishes.variables)}: a line NAME=value for each, readable by root alone."
        needed = [about, f"EnvironmentFile={ENVIRONMENT}"]
    # The program is no place for variables, so that its dollars are dollars.
    started = [_of_unit(words[0]), *(_of_unit(word).replace("$", "$$") for word in words[1:])]
    return "\n".join(
        [
            "[Unit]",
            "After=network.target",
            "",
            "[Service]",
            f"Type={'notify' if server is not None and server.notifies else 'exec'}",
            "# A user of its own, which has to be able to read the folder; where the app writes: ReadWritePaths=.",
            "DynamicUser=yes",
            f"WorkingDirectory={wishes.folder.replace('%', '%%')}",
            *(f"Environment={_of_unit(f'{name}={value}')}" for name, value in variables.items()),
            *needed,
            f"ExecStart={' '.join(started)}",
            # The first process ends its workers and lets their requests end; what is left after the time is killed.
            f"KillMode={'mixed' if _supervises(wishes, server) else 'control-group'}",
            f"KillSignal={_stop_signal(server)}",
            f"TimeoutStopSec={STOP_S}",
            # Also after an end without an error: so ends a server of one process that is to be replaced.
            "Restart=always",
            "RestartSec=1",
            # A listen queue and a descriptor for each connection: the usual limit is 1 024.
            "LimitNOFILE=65536",
            *limits,
            *HARDENING,
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )


def _of_unit(word: str) -> str:
    """Return a word as a unit file takes it (systemd.syntax(7)): not as a shell does, and `%` names something."""
    word = word.replace("%", "%%")
    if _PLAIN.fullmatch(word):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


PACKAGES = "requirements.txt"
LEFT_OUT = ("pip", "setuptools", "wheel")
"""Packages of an environment that an app is not served with."""


def _packages(wishes: Wishes) -> str:
    """Return every package in the version it was measured with, as pip takes it."""
    own = {name: version for name, version in wishes.packages.items() if name not in LEFT_OUT}
    lines = [f"{name}=={version}" for name, version in sorted(own.items())]
    return "\n".join(["# Take out what is no package of the index: your own project.", *lines, ""])


ANSWERS = (
    "import http.client; c = http.client.HTTPConnection('127.0.0.1', 8000, timeout=4); "
    "c.request('GET', '/'); c.getresponse()"
)
CONNECTS = "import socket; socket.create_connection(('127.0.0.1', 8000), 4)"


def _docker(words: list[str], variables: Mapping[str, str], wishes: Wishes, server: Server | None) -> str:
    everywhere = [word.replace("127.0.0.1", EVERYWHERE) for word in words]
    limits = [f"--cpuset-cpus={_first_cpus(wishes.cpus)}"] if wishes.cpus is not None else []
    limits += [f"--memory={wishes.memory_bytes}"] if wishes.memory_bytes is not None else []
    lines = [f"ENV {name}={_of_docker(value)}" for name, value in variables.items()]
    if wishes.variables:
        lines += ["# Given when it is run, so that no value is in the image: docker run --env-file app.env"]
        lines += [f"ENV {name}=" for name in wishes.variables]
    # Any answer will do: which path of the app says that all is well is not known here.
    check = json.dumps(["python", "-c", ANSWERS if wishes.protocol == "http" else CONNECTS])
    python = ".".join(wishes.version.split(".")[:2]) or "3"
    return "\n".join(
        [
            # The first process of a container gets no signal that it has no handler for: --init puts a process before
            # it.
            f"# docker run --init --publish 8000:8000 {' '.join([*limits, 'IMAGE'])}",
            f"FROM python:{python}-slim",
            f"RUN useradd --system --uid {USER_ID} --no-create-home app",
            "WORKDIR /app",
            f"COPY {PACKAGES} .",
            f"RUN python -m pip install --no-cache-dir --requirement={PACKAGES}",
            "COPY . .",
            # A program that is written has the address in it.
            *([f"RUN sed -i s/127.0.0.1/{EVERYWHERE}/ {words[1]}"] if words[1].endswith(".py") else []),
            *lines,
            "USER app",
            "EXPOSE 8000",
            f"HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD {check}",
            f"STOPSIGNAL {_stop_signal(server)}",
            f"CMD {json.dumps(everywhere)}",
            "",
        ]
    )


def _nginx(wishes: Wishes, server: Server | None) -> str:
    """Return what stands in `http { … }` of nginx in front of the server.

    nginx has to end an idle connection before the server does, or a request meets its end (RFC 9112, 9.3).
    """
    idle_s = server.keeps_idle_s(wishes.knobs) if server is not None and wishes.stack is not None else None
    if wishes.stack is not None and not wishes.stack.keeps_alive:
        idle_s = 0.0
    reused, most = [], server.most_idle if server is not None else None
    if idle_s is None:
        why = "How long the server keeps an idle connection is not known: each request gets its own."
    elif most is not None:
        why = f"The server keeps {most} idle connections and ends the others: each request gets its own."
    elif not idle_s:
        why = "The server ends each connection with its answer."
    else:
        keeps = max(int(min(PROXY_IDLE_S, OF_SERVER * idle_s)), 1)
        of_server = f"for {idle_s:g} s" if idle_s < math.inf else "for ever"
        why = f"The server keeps an idle connection {of_server}; nginx ends it before, so that no request is lost."
        reused = ["    keepalive 32;", f"    keepalive_timeout {keeps}s;"]
    about_upgrade, connection = [], ['        proxy_set_header Connection "";']
    if wishes.chats:
        about_upgrade = ["map $http_upgrade $connection_upgrade { default upgrade; '' ''; }", ""]
        connection = [
            "        proxy_set_header Upgrade $http_upgrade;",
            "        proxy_set_header Connection $connection_upgrade;",
        ]
    return "\n".join(
        [
            "# In http { … }.",
            f"# {why}",
            "upstream app {",
            "    server 127.0.0.1:8000;",
            *reused,
            "}",
            "",
            *about_upgrade,
            "server {",
            "    listen 80;",
            "    location / {",
            "        proxy_pass http://app;",
            "        proxy_http_version 1.1;",
            *connection,
            "        proxy_set_header Host $host;",
            "        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
            "        proxy_set_header X-Forwarded-Proto $scheme;",
            "    }",
            "}",
            "",
        ]
    )


def _of_docker(value: str) -> str:
    """Return a value as an ENV line takes it, which fills in variables."""
    if re.fullmatch(r"[A-Za-z0-9_@+=:,./%-]+", value):
        return value
    return '"' + re.sub(r'(["\\$])', r"\\\1", value) + '"'

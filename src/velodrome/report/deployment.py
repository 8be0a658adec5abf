"""Files to paste for a setting: the server's own configuration, a systemd unit, a Dockerfile; from the command line.

    files(command, Wishes(memory_bytes=10**9, cpus=2, full=Full(20_000, 10**8)))

The command line is one to deploy already: `judge/deploying.py` leaves out what only a race needs. What is known
of its server stands in the server's stack (`guest/stack.py`).
"""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from velodrome.guest import catalog

PYTHON = "/srv/app/.venv/bin/python"
FOLDER = "/srv/app"
ENVIRONMENT = "/etc/app.env"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - inside a container that is what has to be listened on
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*=")
_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./%$-]+")
MIB = 2**20


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


@dataclass(frozen=True)
class File:
    """One to paste."""

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


def replaces_workers(command: str) -> bool:
    """Return whether the server of a command line can be told to replace a worker."""
    return bool(_replacing(server_of(command), Full(1, MIB)))


def files(command: str, wishes: Wishes) -> tuple[File, ...]:
    """Return what can be pasted; nothing where a stack has no command line of its own."""
    variables, words = _parted(command, wishes)
    if words[:1] != ["python"] or len(words) < 2:
        return ()
    found = []
    started = words
    server = catalog.servers().get(server_of(command))
    if server is not None and server.configuration is not None:
        made = server.configuration(tuple(words))
        found.append(File(made.name, made.text))
        started = [*made.command]
    found.append(File("app.service", _unit([wishes.python, *started[1:]], variables, wishes)))
    found.append(File("Dockerfile", _docker(words, variables, wishes)))
    return tuple(found)


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
        words = [*words[:-1], *_replacing(server_of(command), wishes.full), words[-1]]
    return variables, words


def _replacing(server: str, full: Full) -> tuple[str, ...]:
    """Return the options by which a server replaces a worker that is full; none where it cannot."""
    known = catalog.servers().get(server)
    if known is None or known.replace_worker is None:
        return ()
    return known.replace_worker(full.requests, full.memory_bytes)


def _unit(words: list[str], variables: Mapping[str, str], wishes: Wishes) -> str:
    limits = []
    if wishes.cpus is not None:
        limits.append(f"CPUQuota={wishes.cpus * 100}%")
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
            f"WorkingDirectory={wishes.folder.replace('%', '%%')}",
            *(f"Environment={_of_unit(f'{name}={value}')}" for name, value in variables.items()),
            *needed,
            f"ExecStart={' '.join(started)}",
            "KillSignal=SIGTERM",
            # Also after an end without an error: so ends a server of one process that is to be replaced.
            "Restart=always",
            # A listen queue and a descriptor for each connection: the usual limit is 1 024.
            "LimitNOFILE=65536",
            *limits,
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


def _docker(words: list[str], variables: Mapping[str, str], wishes: Wishes) -> str:
    everywhere = [word.replace("127.0.0.1", EVERYWHERE) for word in words]
    lines = [f"ENV {name}={_of_docker(value)}" for name, value in variables.items()]
    if wishes.variables:
        lines += ["# Given when it is run, so that no value is in the image: docker run --env-file app.env"]
        lines += [f"ENV {name}=" for name in wishes.variables]
    return "\n".join([*lines, "EXPOSE 8000", f"CMD {json.dumps(everywhere)}", ""])


def _of_docker(value: str) -> str:
    """Return a value as an ENV line takes it, which fills in variables."""
    if re.fullmatch(r"[A-Za-z0-9_@+=:,./%-]+", value):
        return value
    return '"' + re.sub(r'(["\\$])', r"\\\1", value) + '"'

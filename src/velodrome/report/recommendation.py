"""Which setting to deploy, as text and as JSON, with the command line and the files to paste.

The text is the answer, why, what would change it, proof, and files. JSON: schema `velodrome/tune/1`,
docs/tune.schema.json.
"""

import json
import math
import re
import shlex
import signal
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

from velodrome.guest import catalog
from velodrome.guest.stack import KnobValue, Server, Stack
from velodrome.model import quantity
from velodrome.model.measurement import Purpose
from velodrome.model.tuning import (
    SCHEMA,
    AsPasted,
    Candidate,
    Entry,
    Fate,
    Goal,
    Growth,
    Observation,
    Recommendation,
    Tuned,
    TuneEnding,
)
from velodrome.report import names, searches
from velodrome.report.diagnoses import suspect_lines
from velodrome.report.typeset import columns, plural, visible

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


def bound_command(command: str, wishes: Wishes) -> str:
    """Return the command line as it is to be deployed."""
    variables, words = _deployed_words(command, wishes)
    return " ".join(
        [*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), shlex.join(words)]
    )


def server_of(command: str) -> str:
    """Return which program a command line starts."""
    _, words = _split_command(command)
    return words[2] if len(words) > 3 and words[1] == "-m" else " ".join(words[:2])


def replaces_workers(command: str, wishes: Wishes) -> bool:
    """Return whether the server of a command line has an option to replace a worker."""
    return bool(_replacing(wishes.server(command), Full(1, MIB)))


def files(command: str, wishes: Wishes) -> tuple[File, ...]:
    """Return what can be pasted; nothing where a stack has no command line of its own."""
    variables, words = _deployed_words(command, wishes)
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


def _split_command(command: str) -> tuple[dict[str, str], list[str]]:
    """Return the variables that stand before a command line, and its words."""
    words = shlex.split(command)
    variables: dict[str, str] = {}
    while words and _VARIABLE.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    return variables, words


def _deployed_words(command: str, wishes: Wishes) -> tuple[dict[str, str], list[str]]:
    """Return the variables that stand before a command line, and its words as they are to be deployed."""
    variables, words = _split_command(command)
    if wishes.full is not None:
        more = _replacing(wishes.server(command), wishes.full)
        options = {word.partition("=")[0] for word in more}
        kept = (word for word in words[:-1] if word.partition("=")[0] not in options)
        words = [*kept, *more, words[-1]]
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


FOR = {
    Goal.CAPACITY: "the highest throughput",
    Goal.CPU: "the least CPU",
    Goal.MEMORY: "the least memory",
}
BETTER = {Goal.CAPACITY: "does more", Goal.CPU: "takes less CPU", Goal.MEMORY: "takes less memory"}
WHY = 64
"""Letters of a reason, cut between words."""
AFTER = (Purpose.CONFIRM, Purpose.PROOF, Purpose.PASTED)
"""What loads are made for once the best was chosen."""
SHOWN = 12
"""Candidates in the table; the JSON document has all."""


def load_line(candidate: Candidate, observed: Observation) -> str:
    """Return a line for one load: `uvicorn[workers=2]  620/s held`."""
    load = (
        quantity.rate(observed.ask.rate) if observed.ask.rate else f"{observed.ask.connections} connections"
    )
    if observed.failed or observed.spoilt:
        came = f"failed: {observed.failed}" if observed.failed else f"does not count: {observed.spoilt}"
    elif observed.ask.rate:
        came = "held" if observed.held else f"broke  {observed.why}"
    else:
        came = f"{quantity.rate(observed.throughput_rps)}" + (f"  {observed.why}" if observed.why else "")
    why = f"{observed.ask.purpose.value}: " if observed.ask.purpose in AFTER else ""
    return visible(f"{candidate.label:<44} {load:>14}  {why}{came}")


def sentence(found: Recommendation) -> str:
    """Return the answer in a sentence, with the CPUs that it is for."""
    scope = f" This is {found.scope}." if found.scope else ""
    return f"{_answer(found)}{scope}"


def _answer(found: Recommendation) -> str:
    tuned, best = found.tuned, found.tuned.best
    wanted = f"with {' and '.join(found.conditions)}" if found.conditions else "that the server keeps up with"
    wanted += f" ({searches.ARRIVALS[found.arrivals]})"
    if best is None or best.value is None:
        why = tuned.because.rstrip(".")
        if tuned.ending is TuneEnding.NEVER and found.rate:
            return visible(f"No setting carries {quantity.rate(found.rate)} {wanted}: {why}.")
        if tuned.ending is TuneEnding.NEVER:
            return visible(f"No setting has a rate {wanted}: {why}.")
        return visible(f"Cannot tell: {why}.")
    if tuned.goal is Goal.CAPACITY and found.claim is not None:
        about = f"estimate {_value(tuned.goal, best)}, {plural(best.boots, 'start')} of its server"
        return visible(
            f"{found.title}: carries {quantity.rate(found.claim)} {wanted} ({about}), {FOR[tuned.goal]} of what was "
            "tried."
        )
    if tuned.goal is Goal.CAPACITY:
        return visible(
            f"{found.title}: {_value(tuned.goal, best)} {wanted}, {FOR[tuned.goal]} of what was tried."
        )
    return visible(
        f"{found.title}: {_value(tuned.goal, best)} at {quantity.rate(found.rate)} {wanted}, {FOR[tuned.goal]} of what "
        "was tried."
    )


def lines(found: Recommendation) -> list[str]:
    """Return the whole report."""
    shown = ["", f" {visible(found.of)}", "", f" → {sentence(found)}"]
    shown += [f"   {line}" for line in _about(found)]
    shown += ["", *_table(found)]
    if found.mind:
        shown += ["", " What would change this:"]
        shown += [f"   · {visible(reason.sentence)}." for reason in found.mind]
    if suspected := suspect_lines(found.suspects):
        shown += ["", *(f" {line}" for line in suspected)]
    shown += ["", f" {_took(found)}", *(f" {line}" for line in _hosts(found.tuned))]
    if found.folder:
        shown += [f" Every measurement is in {visible(found.folder)}; velodrome judge judges them again."]
    if found.before:
        shown += ["", " Before it:", *(f"   {line}" for line in visible_lines(found.before))]
    for file in files_to_paste(found):
        shown += ["", f" {file.name}", *(f"   {line}" for line in file.text.splitlines())]
    return [line.rstrip() for line in shown]


def visible_lines(text: str) -> list[str]:
    """Return lines that hold what a user called their app."""
    return [visible(line) for line in text.splitlines()]


def _about(found: Recommendation) -> Iterator[str]:
    tuned, proof = found.tuned, found.proof
    if tuned.runner_up is not None:
        yield f"Runner-up: {visible(found.runner_up)}, {_value(tuned.goal, tuned.runner_up)}."
    yield from _how_sure(tuned)
    if proof is not None:
        facts, cpu = proof.load, proof.cpu_us_per_request
        used = proof.server.cpu_s / facts.duration_s if facts.duration_s else 0.0
        cost = f" ({quantity.number(cpu)} µs a request)" if cpu else ""
        for proven in found.proofs[:-1]:
            yield visible(
                f"At {quantity.rate(proven.rate)} it did not hold for {quantity.duration(proven.seconds)}: "
                f"{proven.why.rstrip('.')}; so less is claimed."
            )
        yield (
            f"At {quantity.rate(facts.throughput_rps)} for {quantity.duration(facts.duration_s)}: p50 "
            f"{quantity.milliseconds(facts.due.p50)} ms, p99 {quantity.milliseconds(facts.due.p99)} ms, "
            f"{quantity.number(used, 2)} CPUs{cost}, {quantity.memory(proof.memory_bytes)}."
        )
        for flag in proof.flags:
            yield f"⚑ {visible(flag.sentence)}"
    if found.workers is not None:
        yield visible(found.workers.sentence)
    if found.cold_start_s is not None:
        low, mid, high = (quantity.number(end, 2) for end in astuple(found.cold_start_s))
        yield f"Cold start: {mid} s to the first correct response (between {low} and {high} s)."
    if found.pasted is not None:
        yield visible(_as_pasted(found.pasted))
    if found.growth is not None:
        yield _growth(found.growth, visible(server_that_keeps_workers(found)))
    if found.withheld:
        yield "Nothing to paste, as nothing is settled; --paste gives it all the same."
    if found.command:
        if found.measured:
            yield visible(found.measured)
        yield f"deploy:  {visible(command_line(found))}"


def _as_pasted(pasted: AsPasted) -> str:
    """Return `Pasted as it stands: 1 190/s held for 20 s, p99 141 ms.`"""
    if not pasted.rate:
        return f"⚑ Pasted as it stands, it did not start: {pasted.why.rstrip('.')}."
    loaded = f"{quantity.rate(pasted.rate)} for {quantity.duration(pasted.seconds)}"
    if pasted.within is None:
        return f"Pasted as it stands, at {loaded}: cannot tell, because {pasted.why.rstrip('.')}."
    if not pasted.within:
        return f"⚑ Pasted as it stands, it is not what was measured: at {loaded} {pasted.why.rstrip('.')}."
    cost = f", {quantity.number(pasted.cpu_us)} µs of CPU a request" if pasted.cpu_us else ""
    return (
        f"Pasted as it stands, it does {loaded} as well: p99 {quantity.milliseconds(pasted.p99_ms)} ms{cost}."
    )


def _growth(growth: Growth, keeps: str) -> str:
    per_request = quantity.memory(growth.bytes_per_request)
    text = f"⚑ Memory rose by {per_request} with every request"
    if growth.seconds_to_limit is not None:
        after = quantity.duration(growth.seconds_to_limit)
        text += f": at {quantity.rate(growth.at_rps)} the limit is reached after {after}"
    seen = quantity.duration(growth.seen_s)
    if not growth.goes_on:
        return (
            f"{text}, seen for {seen}. A cache that fills looks the same for so long: load it for ten minutes "
            "(velodrome load -z 10m) before you replace workers for it."
        )
    text += f", seen for {seen} and no slower in the end"
    restart = quantity.thousands(growth.requests_to_restart)
    if keeps:
        return (
            f"{text}. Find the leak; {keeps} has no option to replace a worker: until then restart it before one has "
            f"served {restart} requests."
        )
    has = quantity.memory(growth.bytes_to_restart)
    return f"{text}. Find the leak; until then replace a worker after {restart} requests (with {has})."


def _table(found: Recommendation) -> list[str]:
    goal = found.tuned.goal
    head = {Goal.CAPACITY: "requests/s", Goal.CPU: "CPU µs/req", Goal.MEMORY: "memory at the rate"}[goal]
    shown = [entry for entry in found.tuned.entries if entry.trials or entry.fate is Fate.FAILED][:SHOWN]
    rows = [
        (
            entry.candidate.label,
            entry.fate.value,
            _value(goal, entry),
            quantity.memory(entry.memory_bytes),
            str(entry.trials),
            textwrap.shorten(visible(entry.why), WHY, placeholder=" …"),
        )
        for entry in shown
    ]
    if not rows:
        return []
    table = columns(("setting", "", head, "memory", "loads", "why"), rows, left=("", head, "why"))
    unmeasured = [entry for entry in found.tuned.entries if entry not in shown]
    by_fate = {
        fate: [entry.candidate.label for entry in unmeasured if entry.fate is fate]
        for fate in (Fate.BY_ARITHMETIC, Fate.ALIKE, Fate.UNTRIED)
    }
    named = [
        f"{fate.value}: {names.join_words(labels, most=5)}" for fate, labels in by_fate.items() if labels
    ]
    return [*table, *(f" Not measured, {each}." for each in named)]


def _took(found: Recommendation) -> str:
    tuned = found.tuned
    share = quantity.percent(tuned.trials / found.grid_trials) if found.grid_trials else quantity.MISSING
    return (
        f"{plural(tuned.trials, 'load')} of {plural(tuned.candidates, 'candidate')} in "
        f"{quantity.duration(found.seconds)}; the whole grid takes about {plural(found.grid_trials, 'load')} ({share})."
    )


def _hosts(tuned: Tuned) -> Iterator[str]:
    """Yield what each host did, and which of them differ from that of the proof."""
    home = next((host.host for host in tuned.hosts if host.final), "")
    for host in tuned.hosts:
        line = f"{host.host}: {plural(host.loads, 'load')} of {plural(len(host.stacks), 'stack')}"
        line += ", and the proof." if host.final else "."
        if host.differs and (beside := host.beside_final) is not None:
            low, mid, high = (quantity.number(number, 2) for number in astuple(beside))
            line += f" The same settings did {mid} [{low}, {high}] times what they did on {home}."
        line += " Its loads do not count." if host.apart else ""
        yield visible(line)


def _how_sure(tuned: Tuned) -> Iterator[str]:
    if tuned.ending is TuneEnding.SPENT:
        yield visible(f"Not settled: {tuned.because.rstrip('.')}.")
    if tuned.within is not None:
        most = quantity.percent(max(tuned.within, 0.01))
        yield f"No other setting that was tried {BETTER[tuned.goal]} by more than {most}."


def _value(goal: Goal, entry: Entry) -> str:
    if entry.value is None:
        return quantity.MISSING
    low, mid, high = entry.value.low, entry.value.mid, entry.value.high
    if goal is Goal.MEMORY:
        return f"{quantity.memory(mid)} [{quantity.memory(low)}, {quantity.memory(high)}]"
    unit = "/s" if goal is Goal.CAPACITY else " µs a request"
    return f"{quantity.number(mid)}{unit} [{quantity.number(low)}, {quantity.number(high)}]"


def document(found: Recommendation) -> dict[str, Any]:
    """Return it as plain values."""
    tuned = found.tuned
    return {
        "schema": SCHEMA,
        "of": found.of,
        "goal": tuned.goal.value,
        "rate": found.rate or None,
        "conditions": list(found.conditions),
        "arrivals": found.arrivals,
        "limits": asdict(found.limits),
        "cpus": found.cpus,
        "ending": tuned.ending.value,
        "because": tuned.because,
        "within": tuned.within,
        "sentence": sentence(found),
        "recommended": _entry(tuned.best, found.title),
        "runner_up": _entry(tuned.runner_up, found.runner_up),
        "candidates": [_entry(entry, "") for entry in tuned.entries],
        "looks": {name: asdict(look) for name, look in tuned.looks.items()},
        "mind": [asdict(reason) for reason in found.mind],
        "growth": asdict(found.growth) if found.growth else None,
        "proof": searches.of_measurement(found.proof) if found.proof else None,
        "claim": found.claim,
        "proofs": [asdict(proof) for proof in found.proofs],
        "cold_start_s": asdict(found.cold_start_s) if found.cold_start_s else None,
        "folder": found.folder,
        "workers": asdict(found.workers) if found.workers else None,
        "suspects": [asdict(suspected) for suspected in found.suspects],
        "before": found.before,
        "command": command_line(found),
        "pasted": asdict(found.pasted) if found.pasted else None,
        "files": {file.name: file.text for file in files_to_paste(found)},
        "hosts": [asdict(host) for host in tuned.hosts],
        "trials": tuned.trials,
        "grid_trials": found.grid_trials,
        "seconds": found.seconds,
    }


def _entry(entry: Entry | None, called: str) -> dict[str, Any] | None:
    if entry is None:
        return None
    contestant = entry.candidate.contestant
    return {
        "label": contestant.label,
        **({"called": called} if called else {}),
        "stack": contestant.stack,
        "knobs": dict(contestant.knobs),
        "fate": entry.fate.value,
        "why": entry.why,
        "trials": entry.trials,
        "value": asdict(entry.value) if entry.value else None,
        "memory_bytes": entry.memory_bytes,
        "grew_bytes": entry.grew_bytes,
        "forecast": asdict(entry.forecast) if entry.forecast else None,
        "boots": entry.boots,
    }


def command_line(found: Recommendation) -> str:
    """Return the command line to deploy; empty where there is none."""
    return bound_command(found.command, _wishes(found)) if found.command else ""


def files_to_paste(found: Recommendation) -> tuple[File, ...]:
    """Return the files to paste; none where there is no command line."""
    return files(found.command, _wishes(found)) if found.command else ()


def server_that_keeps_workers(found: Recommendation) -> str:
    """Return the server that has no setting to replace a worker, where a worker would have to be replaced; else
    nothing."""
    if not found.command or found.growth is None or replaces_workers(found.command, _wishes(found)):
        return ""
    return server_of(found.command)


def _wishes(found: Recommendation) -> Wishes:
    cpus, growth = found.limits.cpus, found.growth
    return Wishes(
        cpus if isinstance(cpus, int) else None,
        found.limits.memory_bytes,
        Full(growth.requests_to_restart, growth.bytes_to_restart) if growth and growth.goes_on else None,
        found.python or PYTHON,
        found.cwd or FOLDER,
        found.variables,
        found.stack,
        found.knobs,
        found.measured,
        found.proof.python if found.proof else "",
        found.proof.packages if found.proof else {},
    )

"""Load generators that others wrote (ab, wrk, oha, h2load, ghz): found, started, and their reports read.

A file of this folder that drives a program holds what is particular to it, its `Dialect`, and nothing else:

    driver = generator(Dialect(tool, unfit, words, read, …))

`Tool` says where the program is and in which version; `Dialect` what it can carry, the command line for a load and
what its report means; `spawn` runs it to its end on the CPUs for load, in the network of the thread that calls
(`run/link.py`); `ForeignDriver` does all of it, and believes a report only as far as it adds up.
"""

import json
import math
import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from velodrome.model import secrets
from velodrome.model.bottleneck import generator_fault
from velodrome.model.errors import (
    DriverError,
    DriverFailedError,
    DriverMissingError,
    DriverOutputError,
    DriverStoppedError,
    DriverTimedOutError,
    DriverTooOldError,
    MostlyFailedError,
    NothingAskedError,
    StartRefusedError,
    UnfitLoadError,
)
from velodrome.model.load import Load, Open, Schedule
from velodrome.model.measurement import UNKNOWN_LATENCY, Latency, LoadFacts, LoadSecond
from velodrome.run.calls import DescribedCall
from velodrome.run.drivers.driver import Found, Generator, LoadEvent, OnEvent, Target
from velodrome.run.drivers.foreign_process import ERRORS, OUTPUT, SIZE_DIGITS
from velodrome.run.supervision import python, scratch
from velodrome.run.supervision.python import LAST_LINES, Child

PATIENCE_S = 10.0
"""To tell its version, which takes milliseconds."""
NUMBERS = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True)
class Tool:
    """What is known of a generator."""

    name: str
    about: str
    """What it can carry, in a line."""
    oldest: str
    """The oldest version whose arguments and output are as here."""
    cure: str
    """How to install it."""
    version_argument: str = "--version"
    version_in: Callable[[str, str], str] = lambda output, path: output
    """Given its output and its path, return the text that holds its version."""

    def find(self) -> Found:
        """Return where it is. Raises DriverMissingError or DriverTooOldError, both with the cure."""
        path = _where(self.name)
        if path is None:
            raise DriverMissingError(self.name, self.cure)
        version = self.version_of(path)
        if not version or _numbers(version) < _numbers(self.oldest):
            raise DriverTooOldError(self.name, path, version, self.oldest, self.cure)
        return Found(path, version)

    def version_of(self, path: str) -> str:
        """Return the version of the program at a path; empty when it names none."""
        return _version(self, path, os.stat(path).st_mtime_ns)


def tool_folders() -> list[str]:
    """Return the folders that are searched, in order: PATH, then where Go and Cargo put programs."""
    home = Path.home()
    found = os.environ.get("PATH", os.defpath).split(os.pathsep)
    found += [os.environ.get("GOBIN", "")]
    found += [os.path.join(part, "bin") for part in os.environ.get("GOPATH", "").split(os.pathsep) if part]
    found += [str(home / "go" / "bin"), os.path.join(os.environ.get("CARGO_HOME", ""), "bin")]
    return [place for place in [*found, str(home / ".cargo" / "bin")] if os.path.isabs(place)]


def _where(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join(tool_folders()))


@lru_cache(maxsize=32)
def _version(tool: Tool, path: str, changed_ns: int) -> str:
    """Ask a program for its version; empty when it names none. A new program has another `changed_ns`."""
    try:
        done = subprocess.run(
            [path, tool.version_argument],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,  # wrk tells its version and ends with status 1
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    output = (done.stdout + done.stderr).decode(errors="replace")
    number = NUMBERS.search(tool.version_in(output, path))
    return number.group() if number else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


RISING = ("p50", "p75", "p90", "p95", "p99", "p99_9", "max")


@dataclass(frozen=True)
class Report:
    """Fields as in `LoadFacts`."""

    requests: int
    ok: int
    duration_s: float
    throughput_rps: float
    outcomes: Mapping[str, int]
    due: Latency = UNKNOWN_LATENCY
    sent: Latency = UNKNOWN_LATENCY
    hdr_due: str | None = None
    hdr_sent: str | None = None
    series: tuple[LoadSecond, ...] = ()
    examples: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    corrected: bool = False

    @property
    def failed(self) -> int:
        """Requests that came to anything but a right answer or the end of the load."""
        return sum(number for kind, number in self.outcomes.items() if kind not in ("ok", "unfinished"))

    def __post_init__(self) -> None:
        """Raise ValueError for figures that no load can have: then the output was misunderstood."""
        numbers = {"duration": self.duration_s, "rate": self.throughput_rps, "requests": self.requests}
        for name, value in {**numbers, **self.outcomes}.items():
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"its {name} is {value}")
        if self.duration_s <= 0:
            raise ValueError("it took no time")
        if self.ok > self.requests or sum(self.outcomes.values()) != self.requests:
            raise ValueError(
                f"{self.ok} answers, {dict(self.outcomes)} and {self.requests} requests do not agree"
            )
        for latency in (self.due, self.sent):
            _check(latency)


def _check(latency: Latency) -> None:
    """Raise ValueError unless percentiles are durations that rise."""
    values = {field.name: getattr(latency, field.name) for field in fields(latency)}
    for name, value in values.items():
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise ValueError(f"its latency at {name} is {value}")
    known = [values[name] for name in RISING if values[name] is not None]
    if any(high < low for low, high in pairwise(known)):
        raise ValueError("its percentiles do not rise")


UNITS_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
_TIME = re.compile(r"^(\d+(?:\.\d+)?)(us|ms|s|m|h)$")


def match_in(pattern: str, text: str, what: str) -> re.Match[str]:
    """Return where a line matches. Raises ValueError, saying which is missing."""
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise ValueError(f"it does not report {what}")
    return found


def number_in(pattern: str, text: str, what: str) -> float:
    """Return the first group of a line as a number. Raises ValueError."""
    return float(match_in(pattern, text, what)[1])


def count_in(pattern: str, text: str, what: str | None = None) -> int:
    """Return the first group of a line as a whole number; 0 where it is missing and has no name `what`."""
    if what is None:
        found = re.search(pattern, text, re.MULTILINE)
        return int(found[1]) if found else 0
    return int(match_in(pattern, text, what)[1])


def milliseconds(text: str) -> float:
    """Return `1.31ms` or `701.00us` in milliseconds. Raises ValueError."""
    found = _TIME.match(text.strip())
    if found is None:
        raise ValueError(f"'{text[:20]}' is no time")
    return float(found[1]) * UNITS_MS[found[2]]


MODULE = "velodrome.run.drivers.foreign_process"
CHECK_EVERY_S = 0.25
"""How often the caller decides whether the load goes on: a foreign program reports nothing while it runs."""

SLACK_S = 15.0
"""Beyond the time it should take: start-up on a busy machine, requests in flight at the end, writing a report."""


@dataclass(frozen=True)
class Finished:
    """A program that ran to its end."""

    argv: tuple[str, ...]
    status: int
    """As in `subprocess`: negative is the number of the signal that killed it."""
    output: str
    errors: str
    files: Mapping[str, bytes]
    """What else it left in its folder."""
    cpu_user_s: float
    cpu_sys_s: float
    wall_s: float

    @property
    def cpu_s(self) -> float:
        """All its CPU time, seconds."""
        return self.cpu_user_s + self.cpu_sys_s

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The end of its standard error or, without any, of its output."""
        output = self.errors.strip() or self.output.strip()
        return tuple(line.rstrip() for line in output.splitlines()[-LAST_LINES:])


def spawn(
    argv: Sequence[str],
    cpus: Sequence[int] = (),
    *,
    span_s: float,
    slack_s: float = SLACK_S,
    files: Mapping[str, bytes] | None = None,
    on_event: OnEvent = lambda _: True,
    measured: bool = True,
    hangs: str = "",
) -> Finished:
    """Run a program, which should take `span_s`, in a folder that holds `files`; `argv[0]` is an absolute path.

    Tells `on_event` of `started` and, if `measured`, of its start and end as the measured span, and asks in
    between whether to go on (`alive`). Raises DriverTimedOutError `slack_s` after its time (`hangs` says why that
    may be), DriverStoppedError when `on_event` ended it, StartRefusedError, and DriverError when what holds it
    was killed.
    """
    sent = files or {}
    with (
        scratch.hold_folder("driver") as folder,
        python.start_own(MODULE, cpus=cpus) as child,
    ):
        talk = _Talk(child, Path(argv[0]).name, (span_s, slack_s), on_event, hangs)
        # Numbers as the parsers read them, wherever the user lives.
        order = {
            "argv": list(argv),
            "folder": str(folder),
            "env": {"LC_ALL": "C"},
            "files": [[name, len(data)] for name, data in sent.items()],
        }
        text = json.dumps(order).encode()
        child.send(f"{len(text):0{SIZE_DIGITS}}".encode() + text + b"".join(sent.values()))
        talk.tell("started", pid=talk.hear("started")["pid"])
        if measured:
            talk.tell("measuring", monotonic_ns=time.monotonic_ns())
        child.send(b"go\n")
        exited = talk.hear("exited")
        if measured:
            on_event(LoadEvent("span_ended", {"monotonic_ns": exited["monotonic_ns"]}))
        child.send(b"reap\n")
        ended = talk.hear("ended")
        left = {name: talk.take(size) for name, size in ended["files"]}
    return Finished(
        argv=tuple(argv),
        status=ended["status"],
        output=left.pop(OUTPUT, b"").decode(errors="replace"),
        errors=left.pop(ERRORS, b"").decode(errors="replace"),
        files={name: data for name, data in left.items() if name not in sent},
        cpu_user_s=ended["cpu_user_s"],
        cpu_sys_s=ended["cpu_sys_s"],
        wall_s=exited["wall_s"],
    )


class _Talk:
    """What the holding process says, read with a deadline."""

    def __init__(
        self, child: Child, name: str, deadlines: tuple[float, float], on_event: OnEvent, hangs: str
    ) -> None:
        self.child, self.name, self.on_event, self.hangs = child, name, on_event, hangs
        span_s, self.slack_s = deadlines
        self.until = time.monotonic() + span_s + self.slack_s
        self.rest = bytearray()

    def tell(self, kind: str, **facts: object) -> None:
        """Pass an event on. Raises DriverStoppedError when the load is to end."""
        if not self.on_event(LoadEvent(kind, facts)):
            raise DriverStoppedError(self.name)

    def hear(self, kind: str) -> Mapping[str, Any]:
        """Return the next event, which must be of this kind."""
        while b"\n" not in self.rest:
            self._read()
        line = self.take(self.rest.index(b"\n") + 1)
        event: dict[str, Any] = json.loads(line)
        if event["event"] == "refused":
            raise StartRefusedError(event["stage"], event["what"], event["errno"])
        assert event["event"] == kind, event
        return event

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        while len(self.rest) < size:
            self._read()
        taken = bytes(self.rest[:size])
        del self.rest[:size]
        return taken

    def _read(self) -> None:
        until = min(self.until, time.monotonic() + CHECK_EVERY_S)
        if select.select([self.child.output], [], [], max(0.0, until - time.monotonic()))[0]:
            data = self.child.output.read(1 << 20)
            if not data:
                raise DriverError(self.name, self.child.end(), self.child.last_lines())
            self.rest += data
        elif time.monotonic() >= self.until:
            raise DriverTimedOutError(self.name, self.slack_s, self.child.last_lines(), self.hangs)
        else:
            self.tell("alive")


BODY = "body"
"""Name of the file that a request's body is in."""


@dataclass(frozen=True)
class Unfit:
    """Which field of a load a tool cannot carry, and what it can."""

    field: str
    value: object
    can: str


@dataclass(frozen=True)
class Command:
    """Arguments, without the program itself, and the files they name."""

    arguments: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What is not quite as requested, as sentences."""


def no_hint(finished: Finished) -> str:
    """Know no cure."""
    return ""


@dataclass(frozen=True)
class Dialect:
    """A tool. `words` takes a load to be measured or, with `requests` None, a warm-up."""

    tool: Tool
    unfit: Callable[[Load, Target], Unfit | None]
    words: Callable[[Load, Target], Command]
    read: Callable[[Finished, Load], Report]
    """Raises ValueError, KeyError or TypeError for anything that is not its report."""
    latency_is: str
    checks: Callable[[Target], str]
    """What it looks at to call an answer right."""
    threads: Callable[[Load, int], int]
    """How many of so many CPUs it can use."""
    hint: Callable[[Finished], str] = no_hint
    """Given a run that failed, what to do about it, or nothing."""
    hangs: str = ""
    """When it does not end by itself, as a sentence."""
    whole_seconds: bool = False
    """Whether it knows no parts of a second."""
    blind: Callable[[Target], bool] = lambda target: False
    """Whether it cannot tell a failure from a right answer."""


def over_http(target: Target) -> Unfit | None:
    """Refuse what is no plain HTTP."""
    scheme = urlsplit(target.url).scheme
    return None if scheme == "http" else Unfit("protocol", scheme, "it speaks plain HTTP")


def open_to_all(arguments: Sequence[str]) -> Unfit | None:
    """Refuse a command line with a secret in it: every program of this machine can read it while the tool runs."""
    if all(secrets.mask(argument) == argument for argument in arguments):
        return None
    can = (
        "it takes headers and URLs on its command line, which every program of this machine can read; velodrome "
        "is given them by a pipe, and wrk by a file"
    )
    return Unfit("secret", secrets.MARK, can)


def one_request(target: Target) -> Unfit | None:
    """Refuse several requests, and what is filled in, encoded or looked at as only velodrome does."""
    if isinstance(target.call, DescribedCall):
        return Unfit("call", target.call.path, "it makes the call of velodrome's own recipes only")
    if not target.mix:
        return None
    several = f"{len(target.mix)} requests" if len(target.mix) > 1 else "a template, or a text to look for"
    return Unfit("mix", several, "it sends one request, the same each time; velodrome sends more")


def steady(load: Load) -> Unfit | None:
    """Refuse a rate that changes."""
    if isinstance(load.pace, Schedule):
        return Unfit("rate", load.pace.ends, "it knows one rate or none; velodrome's may change")
    return None


def closed_only(load: Load) -> Unfit | None:
    """Refuse an open loop."""
    if isinstance(load.pace, Open):
        return Unfit("rate", load.pace.rate, "it knows the closed loop alone; velodrome and oha know rates")
    return None


def one_stream(load: Load) -> Unfit | None:
    """Refuse several requests at once on a connection."""
    if load.streams > 1:
        return Unfit(
            "streams", load.streams, "it sends one request at a time on a connection; h2load sends more"
        )
    return None


def constant_arrivals(load: Load) -> Unfit | None:
    """Refuse random arrivals."""
    if isinstance(load.pace, Open) and load.pace.arrivals != "constant":
        return Unfit("arrivals", load.pace.arrivals, "its arrivals are constant; velodrome's may be random")
    return None


def in_whole_seconds(load: Load) -> tuple[str, ...]:
    """Say that a span was rounded up, of a tool that knows no parts of a second."""
    if load.requests is not None or load.duration_s == int(load.duration_s):
        return ()
    return (f"It loads for whole seconds: {math.ceil(load.duration_s)} s instead of {load.duration_s:g} s.",)


def first_unfit(*found: Unfit | None) -> Unfit | None:
    """Return the first thing that does not fit."""
    return next((unfit for unfit in found if unfit is not None), None)


MOSTLY = 0.5
"""Share of failed requests from which a rate counts as a rate of failures."""


class ForeignDriver:
    """Runs a tool on the CPUs given (all when none are)."""

    def __init__(
        self,
        dialect: Dialect,
        cpus: Sequence[int] = (),
        seed: int = 1,
        slack_s: float = SLACK_S,
    ) -> None:
        """`seed` is for velodrome's own arrivals: no tool takes a seed."""
        self.dialect, self.cpus, self.slack_s = dialect, tuple(cpus), slack_s

    @property
    def name(self) -> str:
        """As `Load.driver` says it."""
        return self.dialect.tool.name

    def run(self, load: Load, target: Target, on_event: OnEvent) -> LoadFacts:
        """Load `target`; see `Driver.run`.

        Raises UnfitLoadError, DriverMissingError or DriverTooOldError before anything is loaded, DriverError
        (in one of its kinds) when what it did is no result.
        """
        unfit = one_request(target) or steady(load) or self.dialect.unfit(load, target)
        unfit = unfit or open_to_all(self.dialect.words(load, target).arguments)
        if unfit is not None:
            raise UnfitLoadError(self.name, unfit.field, unfit.value, unfit.can)
        found = self.dialect.tool.find()
        warmed = self._warm_up(found, load, target, on_event)
        words = self.dialect.words(load, target)
        finished = self._spawn(found, words, load, on_event, measured=True)
        report = understand(self.dialect, found.version, finished, load)
        _mostly_right(self.name, report)
        facts = self._facts(load, target, finished, report)
        notes = (*warmed, *words.notes, *report.notes)
        return replace(facts, driver_version=found.version, driver_notes=notes)

    def _warm_up(self, found: Found, load: Load, target: Target, on_event: OnEvent) -> tuple[str, ...]:
        """Run it once unmeasured, for the whole warm-up: no tool separates a warm-up from its own figures."""
        if load.warmup_s <= 0:
            return ()
        seconds = math.ceil(load.warmup_s) if self.dialect.whole_seconds else load.warmup_s
        warmup = replace(load, duration_s=seconds, requests=None)
        self._spawn(found, self.dialect.words(warmup, target), warmup, on_event, measured=False)
        return (f"It was warmed up by a run of its own of {seconds:g} s, whose connections were not kept.",)

    def _spawn(self, found: Found, words: Command, load: Load, on_event: OnEvent, measured: bool) -> Finished:
        finished = spawn(
            (found.path, *words.arguments),
            self.cpus,
            span_s=load.duration_s + load.timeout_s + load.drain_s,
            slack_s=self.slack_s,
            files=words.files,
            on_event=on_event,
            measured=measured,
            hangs=self.dialect.hangs,
        )
        if finished.status != 0:
            hint = self.dialect.hint(finished)
            raise DriverFailedError(self.name, finished.status, finished.last_lines, hint)
        return finished

    def _facts(self, load: Load, target: Target, finished: Finished, report: Report) -> LoadFacts:
        threads = self.dialect.threads(load, len(self.cpus) or os.cpu_count() or 1)
        return LoadFacts(
            requests=report.requests,
            ok=report.ok,
            duration_s=report.duration_s,
            throughput_rps=report.throughput_rps,
            outcomes=report.outcomes,
            due=report.due,
            sent=report.sent,
            lag=UNKNOWN_LATENCY,
            connections_asked=load.pace.connections,
            connections_opened=None,
            connections_reopened=None,
            connections_answered=None,
            mean_in_flight=None,
            generator_cpu_s=finished.cpu_s,
            generator_cpu_user_s=finished.cpu_user_s,
            generator_cpu_sys_s=finished.cpu_sys_s,
            generator_transport="",
            generator_saturated=saturated(finished, threads),
            engine_flags=(),
            series=report.series,
            hdr_due=report.hdr_due,
            hdr_sent=report.hdr_sent,
            examples=report.examples,
            generator_threads=threads,
            generator_ran_s=finished.wall_s,
            driver=self.name,
            driver_command=finished.argv,
            latency_is=self.dialect.latency_is,
            latency_corrected=report.corrected,
            checks=self.dialect.checks(target),
            blind=self.dialect.blind(target),
        )


def generator(dialect: Dialect) -> Generator:
    """Return a tool as what `velodrome` finds and makes drivers of."""
    tool = dialect.tool

    def make(cpus: Sequence[int], seed: int) -> ForeignDriver:
        return ForeignDriver(dialect, cpus, seed)

    return Generator(tool.name, tool.about, make, tool.find)


def saturated(finished: Finished, threads: int) -> bool:
    """Return whether a tool that can use so many CPUs used them up, from its start to its end."""
    return generator_fault(finished.cpu_s / max(finished.wall_s * threads, 1e-9)) is not None


def understand(dialect: Dialect, version: str, finished: Finished, load: Load) -> Report:
    """Return what a report says. Raises DriverOutputError for a report that is not understood."""
    try:
        return dialect.read(finished, load)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        # JSON of another shape fails in any of these ways
        what = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise DriverOutputError(dialect.tool.name, version, what, finished.last_lines) from error


def _mostly_right(name: str, report: Report) -> None:
    if not report.requests:
        raise NothingAskedError(name, report.duration_s)
    if report.failed > MOSTLY * report.requests:
        raise MostlyFailedError(name, report.failed, report.requests, report.examples)

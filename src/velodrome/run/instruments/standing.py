"""A server that stands, its processes treated or as they are, and carries one closed loop after the other.

    with standing(trial, lab, Treatment("tokens 400", {"anyio-tokens": 400})) as server:
        server.warm()
        measured = server.run_closed_loop(64, seconds=3.0)
        assert "anyio-tokens" in server.took()

Whatever the treatment writes is in a folder that is removed at the end.
"""

import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from velodrome.guest.injected.allocations import COUNT
from velodrome.guest.injected.giving import WARM
from velodrome.guest.stack import Stack
from velodrome.model.app import ThirdParty
from velodrome.model.diagnosis import AS_IT_IS, Figures, Treatment
from velodrome.model.errors import NoServerError
from velodrome.model.load import Closed, Load
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.symptoms import InUse
from velodrome.model.trial import Contestant, Session, Trial
from velodrome.run import account, third_party
from velodrome.run.drivers.driver import OnEvent
from velodrome.run.injecting import Injected
from velodrome.run.lab import Lab
from velodrome.run.racing.opening import host_beside
from velodrome.run.racing.plan import plan_session
from velodrome.run.racing.session import Booted, ImpossibleError, boot, measure, refusal
from velodrome.run.supervision import scratch

WARM_CONNECTIONS, WARM_S = 8, 0.5
WARMUP_S = 0.2
TIMEOUT_S = 10.0
COUNTED_S, COUNT_POLL_S = 1.0, 0.05
"""A count of all processes takes so long at most, and ends when in so much no further one comes."""
WORKED = "worked-"
"""Before the pid of a process whose file has a byte for each time that it had others work."""
MOST_BYTES = 16 * 2**20
"""Read of what one process wrote: a foreign one may write anything into its folder."""


@contextmanager
def standing(trial: Trial, lab: Lab, treatment: Treatment = AS_IT_IS) -> Iterator["Standing"]:
    """Start the server of a trial under a treatment, and end it with the block.

    Raises NoServerError where it does not start, AppAnswersWrongError where the app does not answer as it is to.
    """
    with serve_treated(trial, lab, treatment) as (mine, given, folder), ExitStack() as running:
        yield Standing(mine, given, _start(mine, given, running), folder)


def _start(trial: Trial, lab: Lab, running: ExitStack) -> Booted:
    """Start a server; `running` ends it. Raises as `standing` does."""
    try:
        return boot(plan_session(Session((trial,)), lab), lab, running)
    except ImpossibleError as why:
        if trial.app is not None:
            raise refusal(trial.app, trial.contestant.label, why.kind, why.reason, why.last_lines) from why
        raise NoServerError(trial.contestant.label, why.reason, why.last_lines) from why


@contextmanager
def serve_treated(trial: Trial, lab: Lab, treatment: Treatment) -> Iterator[tuple[Trial, Lab, Path]]:
    """Yield what serves a trial under a treatment, and the folder that its processes write to while the block lasts."""
    contestant = contestant_of(trial.contestant, treatment, lab.stacks)
    with scratch.hold_folder("injected") as folder:
        account.hand_over(folder)
        otherwise = treatment.give or treatment.environment
        injected = Injected(folder, treatment.give, treatment.environment) if otherwise else None
        given = replace(lab, injected=injected)
        mine = replace(trial, contestant=contestant)
        if treatment.third_parties != 1:
            mine, given = _slower(mine, given, treatment.third_parties, folder)
        yield mine, given, folder


def _slower(trial: Trial, lab: Lab, times: float, folder: Path) -> tuple[Trial, Lab]:
    """Return them with third parties that take so many times as long."""
    if trial.app is None:
        return trial, lab

    def slower(every: Sequence[ThirdParty]) -> tuple[ThirdParty, ...]:
        return tuple(replace(one, latency=third_party.slower(one.latency, times, folder)) for one in every)

    app = replace(trial.app, third_parties=slower(trial.app.third_parties))
    return replace(trial, app=app), replace(lab, third_parties=slower(lab.third_parties))


def say_warm(folder: Path) -> None:
    """Have treatments that wait for a warm app begin."""
    _make_empty(folder / WARM)


def _make_empty(path: Path) -> None:
    """Make an empty file that treatments wait for."""
    # The folder belongs to whom the server runs as: nothing is written through what may stand there by that name.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))


def contestant_of(contestant: Contestant, treatment: Treatment, stacks: Mapping[str, Stack]) -> Contestant:
    """Return a contestant with the settings of a treatment; on another stack, with those that one has as well."""
    knobs = {**contestant.knobs, **treatment.knobs}
    if not treatment.stack:
        return replace(contestant, knobs=knobs)
    there = stacks[treatment.stack].knobs
    return replace(
        contestant,
        stack=treatment.stack,
        knobs={name: value for name, value in knobs.items() if name in there},
    )


@dataclass(frozen=True)
class Standing:
    """The server."""

    trial: Trial
    lab: Lab
    booted: Booted
    folder: Path
    loads: list[Measurement] = field(default_factory=list)
    """What it carried so far."""

    @contextmanager
    def another(self) -> Iterator["Standing"]:
        """Start one more beside it, under the same treatment; it listens, and has got no request.

        Raises as `standing` does.
        """
        lab = replace(self.lab, unasked=True)
        with ExitStack() as running:
            yield replace(self, lab=lab, booted=_start(self.trial, lab, running), loads=[])

    def warm(self) -> None:
        """Load it for a while, and have treatments that wait for a warm app begin. Raises NoServerError."""
        self.load(Load(Closed(WARM_CONNECTIONS), WARM_S, 0.0, timeout_s=TIMEOUT_S))
        say_warm(self.folder)

    def run_closed_loop(
        self,
        connections: int,
        seconds: float = 1.0,
        *,
        keepalive: bool = True,
        also: OnEvent | None = None,
    ) -> Measurement:
        """Measure a closed loop; `also` hears the generator's events. Raises NoServerError where the server dies."""
        load = Load(
            Closed(connections),
            seconds,
            WARMUP_S,
            timeout_s=TIMEOUT_S,
            drain_s=TIMEOUT_S,
            keepalive=keepalive,
        )
        return self.load(load, also)

    def load(self, load: Load, also: OnEvent | None = None) -> Measurement:
        """Measure a load; `also` hears the generator's events. Raises NoServerError where nothing comes of it."""
        with host_beside(self.booted.placed):
            found = measure(replace(self.trial, load=load), self.booted, self.lab, also)
        if isinstance(found, Failed):
            raise NoServerError(self.trial.contestant.label, found.reason, found.last_lines)
        self.loads.append(found)
        if self.lab.measured is not None:
            self.lab.measured(found)
        return found

    def in_use(self) -> InUse:
        """Return what was in use after each load it carried."""
        answered, opened = 0, 0
        memory, descriptors, connections = (list[tuple[int, float]]() for _ in range(3))
        for load in self.loads:
            answered += round(load.load.answers)
            last = load.server.samples[-1].rss_bytes if load.server.samples else load.server.rss_peak_bytes
            memory.append((answered, float(last)))
            if load.server.fds_peak is not None:
                descriptors.append((answered, float(load.server.fds_peak)))
            opened += load.load.connections_opened or 0
            connections.append((answered, float(opened)))
        return InUse(tuple(memory), tuple(descriptors), tuple(connections))

    def live_blocks(self) -> float | None:
        """Return how many blocks of memory the Python objects of all its processes have; None: nobody counts them.

        Under the treatment `live-blocks`. Garbage is collected first.
        """
        number = sum(name.startswith("count-") for name in os.listdir(self.folder))
        before = len(_files(self.folder, "blocks-"))
        lines = self.ask(COUNT % number, "blocks", lambda line: line.get("number") == number, before)
        return sum(float(line["blocks"]) for line in lines) if lines else None

    def ask(
        self,
        question: str,
        what: str,
        answers: Callable[[dict[str, Any]], bool],
        least: int = 1,
        *,
        without: Collection[int] = (),
        within_s: float = COUNTED_S,
        settles_s: float = COUNT_POLL_S,
    ) -> list[dict[str, Any]]:
        """Ask its processes by an empty file, and return the lines of what they write that are answers.

        `without` those of some processes. How many will answer is not known: all have, when there are `least` and in
        `settles_s` no further one comes.
        """
        _make_empty(self.folder / question)
        until = time.monotonic() + within_s
        found, since = list[dict[str, Any]](), time.monotonic()
        while time.monotonic() < until:
            time.sleep(COUNT_POLL_S)
            lines = [line for line in self.read_lines(what, without) if answers(line)]
            if len(lines) != len(found):
                found, since = lines, time.monotonic()
            elif len(lines) >= max(least, 1) and time.monotonic() - since >= settles_s:
                break
        return found

    def took(self) -> frozenset[str]:
        """Return the treatments that met what they change."""
        lines = (line for name in _files(self.folder, "took-") for line in _lines(self.folder / name))
        return frozenset(str(line.get("took")) for line in lines)

    def worked(self) -> dict[int, int]:
        """Return how often each of its processes had others work so far, under `work-counted`; those that did."""
        names = _files(self.folder, WORKED)
        return {
            int(name[len(WORKED) :]): (self.folder / name).lstat().st_size
            for name in names
            if name[len(WORKED) :].isdecimal()
        }

    def read_lines(self, what: str = "heart", without: Collection[int] = ()) -> list[dict[str, Any]]:
        """Return every line of its heartbeats, or of what else its processes write, process by process.

        `without` those of some processes.
        """
        left_out = {f"{what}-{pid}.jsonl" for pid in without}
        names = [name for name in _files(self.folder, f"{what}-") if name not in left_out]
        return [line for name in names for line in _lines(self.folder / name)]


def figures(measured: Measurement) -> Figures:
    """Return what arms are compared by. Raises NoServerError where nothing was answered right."""
    load = measured.load
    answers, sent = load.answers, load.sent
    if not answers or sent.mean is None:
        sentence = f": {load.examples[0]}" if load.examples else ""
        raise NoServerError(measured.trial.contestant.label, f"nothing was answered right{sentence}")
    return Figures(
        load.throughput_rps,
        sent.mean,
        sent.p50 or sent.mean,
        sent.p99 or sent.mean,
        measured.server.cpu_s / answers * 1e6,
        1 - load.ok / max(load.requests, 1),
    )


def _files(folder: Path, beginning: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith(beginning))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield what a process wrote, line by line; what is none of ours is passed over."""
    # Not through a link: the folder belongs to whom the server runs as.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    with open(descriptor, "rb") as file:
        data = file.read(MOST_BYTES)
    for line in data.splitlines():
        with suppress(ValueError, RecursionError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield found

"""A heat: one server is started and its trials run; each gives a measurement or a failure, no exception.

    for result in run_heat(heat, lab):
        store.append(result)

In order: environment, third party, port, server, readiness; for each load: rest, warm-up, measured span and
flags; then stop. A server that dies while loaded gives a measurement flagged `server-died` (never ranked) if
it had answered anything, else `Failed(DIED)`; the trials that remain get a fresh server.
"""

import os
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.model.errors import EnvironmentFailedError, LimitError, VelodromeError
from velodrome.model.flag import Flag, FlagKind, Severity
from velodrome.model.measurement import Failed, FailureKind, Measurement, Placement, UpstreamFacts
from velodrome.model.results import Result
from velodrome.model.trial import Heat, Trial
from velodrome.run import limits, placement, ports, readiness, upstream, validity
from velodrome.run.drivers.choosing import choose
from velodrome.run.drivers.driver import Driver, LoadEvent, Target
from velodrome.run.environment import Environment, environment_for
from velodrome.run.limits import Bounds, Hierarchy
from velodrome.run.readiness import NotReady
from velodrome.run.sampler import Sampler
from velodrome.run.server import STOP_SECONDS, Server, Serving, Stopped
from velodrome.run.upstream import Upstream

START_SECONDS = 10.0
"""To the first right answer, on top of what the recipe takes."""


class DriverOf(Protocol):
    """Makes the driver of one load, on the CPUs for load."""

    def __call__(self, name: str, placed: Placement, seed: int) -> Driver:
        """Raise UsageError for a driver that is not known."""


@dataclass(frozen=True)
class Lab:
    """What all heats of a race share: plain data, and the parts that tests replace."""

    stacks: Mapping[str, Stack]
    guest_tree: Path
    driver: DriverOf = choose
    cpus: tuple[int, ...] = field(default_factory=placement.usable_cpus)
    where: Mapping[str, Hierarchy] = field(default_factory=dict)
    """Where control groups can be made; empty: affinity and rlimits."""
    environment: Callable[[Stack, str | None], Environment] = environment_for
    turn_ns: Mapping[str, str] = field(default_factory=dict)
    """Nanoseconds of one turn of the recipes' CPU loop, by version of Python; one not told calibrates itself."""
    start_seconds: float = START_SECONDS
    stop_seconds: float = STOP_SECONDS


@dataclass(frozen=True)
class _Booted:
    server: Server
    environment: Environment
    placed: Placement
    bounds: Bounds
    target: Target
    boot_s: float
    upstream: Upstream | None


class _ImpossibleError(Exception):
    """The heat cannot go on: kind, sentence, last lines."""

    def __init__(self, kind: FailureKind, reason: str, last_lines: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.last_lines = kind, reason, last_lines


def run_heat(heat: Heat, lab: Lab) -> Generator[Result, None, None]:
    """Yield one result for each trial, in order, as soon as it is certain.

    Close the iterator (`contextlib.closing`) to stop everything early.
    """
    waiting = deque(heat.trials)
    while waiting:
        yield from _one_server(waiting, lab)


def _one_server(waiting: deque[Trial], lab: Lab) -> Iterator[Result]:
    """Run as many trials as one server carries: all of them, unless it dies."""
    started_at = _now()
    try:
        with ExitStack() as running:
            booted = _boot(waiting[0], lab, running)
            while True:
                result = _measure(waiting.popleft(), booted, lab)
                if not waiting or booted.server.exit() is not None:
                    break
                yield result
            # The last result waits for the stop, because hanging on it is told with that result.
            yield _with_end(result, booted.server.stop(lab.stop_seconds), booted.server)
    except _ImpossibleError as why:
        while waiting:
            yield Failed(waiting.popleft(), started_at, why.kind, why.reason, why.last_lines)


def _boot(trial: Trial, lab: Lab, running: ExitStack) -> _Booted:
    """Start what the trial needs; `running` ends it. Raises _ImpossibleError."""
    stack = lab.stacks.get(trial.contestant.stack)
    if stack is None:
        raise _ImpossibleError(FailureKind.UNAVAILABLE, f"no stack is called '{trial.contestant.stack}'")
    if (why := catalog.serves(stack, trial.recipe)) is not None:
        raise _ImpossibleError(
            FailureKind.UNAVAILABLE, f"{stack.name} cannot serve {trial.recipe.name}: {why}"
        )
    try:
        interface = catalog.interface(stack.interface)
        environment = lab.environment(stack, trial.python or None)
        placed = placement.place(lab.cpus, trial.limits, placement.cores(lab.cpus))
        bounds = limits.bounds(trial.limits, placed.server_cpus, lab.where)
        third = None
        if trial.recipe.calls_upstream:
            third = running.enter_context(upstream.start(cpus=placed.upstream_cpus, seed=seed_of(trial)))
        serving = Serving(
            stack,
            trial.recipe,
            environment.python,
            lab.guest_tree,
            ports.fresh_port(),
            knobs=trial.contestant.knobs,
            upstream=third.url if third else "",
            turn_ns=lab.turn_ns.get(environment.version, ""),
        )
        server = running.enter_context(Server(serving, bounds, placed.server_cpus))
    except Exception as error:  # also what a third party's stack raises: it must not stop the study
        raise _ImpossibleError(_kind(error), _sentence(error)) from error
    target = Target.of_recipe(server.url, trial.recipe)
    target = replace(target, expect_body=interface.answer(trial.recipe))
    boot_s = _await(server, target, trial, lab)
    placed = replace(placed, enforced_by=bounds.enforced_by, notes=placed.notes + bounds.notes)
    return _Booted(server, environment, placed, bounds, target, boot_s, third)


def _await(server: Server, target: Target, trial: Trial, lab: Lab) -> float:
    wait_s = trial.recipe.wait_ms / 1000
    answered = readiness.await_right_answer(
        target, server.exit, server.started, lab.start_seconds + wait_s, answer_s=wait_s
    )
    if isinstance(answered, NotReady):
        server.stop(min(2.0, lab.stop_seconds))
        raise _ImpossibleError(
            answered.failure, f"{trial.contestant.label}: {answered.reason}", server.last_lines()
        )
    return answered.boot_s


def _kind(error: Exception) -> FailureKind:
    if isinstance(error, EnvironmentFailedError):
        return FailureKind.INSTALL
    return FailureKind.UNAVAILABLE if isinstance(error, LimitError) else FailureKind.START


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, VelodromeError) else f"{type(error).__name__}: {error}"


class _Watch:
    """What listens to the driver: sampler and third party, and whether the server still lives."""

    def __init__(self, sampler: Sampler, booted: _Booted) -> None:
        self.sampler, self.booted = sampler, booted
        self.upstream: UpstreamFacts | None = None

    def on(self, event: LoadEvent) -> bool:
        third = self.booted.upstream
        self.sampler.on(event)  # first: asking the third party would delay its reading of the clocks
        if event.kind == "measuring" and third is not None:
            third.begin()
        if event.kind == "span_ended" and third is not None:
            self.upstream = third.end()
        return self.booted.server.exit() is None  # nothing is learnt from loading a dead server


def _measure(trial: Trial, booted: _Booted, lab: Lab) -> Result:
    """Run one load against a server that is ready."""
    started_at = _now()
    server = booted.server
    sampler = Sampler(server.pid, server.serving.port, trial.load.duration_s, booted.bounds.account)
    if booted.upstream is not None:
        sampler.accompany(booted.upstream.pid)
    watch = _Watch(sampler, booted)
    try:
        driver = lab.driver(trial.load.driver, booted.placed, seed_of(trial))
        sampler.rest()
        with sampler:
            facts = driver.run(trial.load, booted.target, watch.on)
        sampled = sampler.result(booted.boot_s)
    except (VelodromeError, ValueError) as error:
        return _failed(trial, started_at, error, server)
    died = server.exit()
    if died is not None and facts.ok == 0:
        return _died(trial, started_at, server)
    evidence = validity.Evidence(
        load=trial.load,
        facts=facts,
        sampled=sampled,
        machine_cpus=os.cpu_count() or 1,
        upstream=watch.upstream,
        wait_ms=trial.recipe.wait_ms,
        workers=_workers(server.serving),
        exit_status=died.code if died else None,
    )
    return Measurement(
        trial=trial,
        started_at=started_at,
        load=facts,
        server=sampled.server,
        queue=sampled.queue,
        host=sampled.host,
        placement=booted.placed,
        flags=validity.flags(evidence),
        upstream=watch.upstream,
        command=server.command,
        packages=booted.environment.packages,
        python=booted.environment.version,
        last_lines=server.last_lines() if died else (),
    )


def _workers(serving: Serving) -> int | None:
    value = {**serving.stack.knobs, **serving.knobs}.get("workers")
    return value if isinstance(value, int) else None


def _failed(trial: Trial, started_at: str, error: Exception, server: Server) -> Failed:
    if server.exit() is not None:
        return _died(trial, started_at, server)
    return Failed(trial, started_at, FailureKind.LOAD, _sentence(error), server.last_lines())


def _died(trial: Trial, started_at: str, server: Server) -> Failed:
    ended = server.exit()
    how = ended.sentence if ended else "its process is gone"
    reason = f"{trial.contestant.label} died under load: {how}"
    return Failed(trial, started_at, FailureKind.DIED, reason, server.last_lines())


def _with_end(result: Result, stopped: Stopped, server: Server) -> Result:
    """Tell with the last result of a server that it did not end as asked."""
    ending = stopped.ending
    if ending.stuck:
        survivors = ", ".join(map(str, ending.stuck))
        reason = f"processes {survivors} of it survived SIGKILL and load this machine. Restart the machine"
        return Failed(result.trial, result.started_at, FailureKind.STOP, reason, server.last_lines())
    if not isinstance(result, Measurement):
        return result
    troubles = []
    if ending.hung:
        troubles.append("did not end when it was asked to and was killed")
    elif ending.orphans:
        troubles.append(f"left {ending.orphans} of its processes running, which were killed")
    if stopped.left:
        troubles.append(f"left behind {', '.join(stopped.left)}")
    if not troubles:
        return result
    flag = Flag(
        FlagKind.HUNG_ON_STOP,
        Severity.NOTE,
        f"The server {' and '.join(troubles)}.",
        "Expect slow deploys: a supervisor will have to kill it as well.",
        {"orphans": ending.orphans},
    )
    return replace(result, flags=(*result.flags, flag), last_lines=server.last_lines())


def seed_of(trial: Trial) -> int:
    """Return the seed of arrivals: the same for all contestants of a block, another in the next block."""
    return zlib.crc32(f"{trial.study}/{trial.question}/{trial.load.label}/{trial.block}".encode()) or 1


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

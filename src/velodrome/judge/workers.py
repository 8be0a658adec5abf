"""Whether a setting that leads with the workers it raced with survives more of them.

Each load is measured with the fewest workers and with more, close together in time; what differs by more than chance
does is measured once more, and counts only if it is seen again. `next_step` says what is to be measured next,
`judge_check` what all of it comes to. Thresholds stand beside their reasons.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from velodrome.guest.stack import Stack
from velodrome.judge.words import list_names, sentence
from velodrome.model import quantity
from velodrome.model.bottleneck import USED_UP
from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import Failed, FailureKind, FlagKind, Measurement
from velodrome.model.results import Result
from velodrome.model.trial import Contestant
from velodrome.model.workers import UNEQUAL, WorkerCheck, WorkersSeen, busiest

LOST = 0.7
"""Of the throughput of one worker. Workers beyond the CPUs cost switches and caches, which is a tenth or two; spans of
a second of two equal servers differ by 8 %, so that a loss of three tenths is over three standard deviations, twice."""
APPEARS_MS, APPEARS = 5.0, 0.15
"""Latency that appears at a low rate, in milliseconds and of that with one worker. Pauses of a virtual machine last 3
to 9 ms and hit one request in a hundred, not every second or tenth; a delayed acknowledgement lasts 40 ms."""
ENOUGH = {"p50_ms": 6, "p90_ms": 30}
"""Requests under a load for a percentile of it: three lie beyond it."""
ERRORS = 0.01
"""Of the requests, more than with one worker: as a measurement is set aside for."""
SCALES = 0.5
"""Of what as many separate workers would give, where CPU is what limits a worker and there is a CPU for each."""
BY_GENERATOR = {FlagKind.GENERATOR_SATURATED, FlagKind.CPU_SHARED}
"""Then a rate is what the server does at least."""
LATE = {FlagKind.GENERATOR_LAGGED, FlagKind.GENERATOR_SATURATED}
"""Then a latency is the generator's."""
LOST_WORKERS = {FlagKind.SERVER_DIED, FlagKind.SERVER_RESTARTED}


@dataclass(frozen=True)
class Step:
    """What is to be measured next: one server with so many workers, and its loads in order."""

    workers: int
    again: int
    loads: tuple[Load, ...]


def same_setting(contestant: Contestant, other: Contestant) -> bool:
    """Return whether two contestants differ in nothing but their number of workers."""
    return _without(contestant) == _without(other)


def _without(contestant: Contestant) -> tuple[object, ...]:
    knobs = {name: value for name, value in contestant.knobs.items() if name != "workers"}
    return contestant.stack, knobs, dict(contestant.packages), contestant.python


def with_workers(contestant: Contestant, count: int) -> Contestant:
    """Return the same setting with so many workers, named even where that is the default."""
    return Contestant(
        contestant.stack, {**contestant.knobs, "workers": count}, contestant.packages, contestant.python
    )


def next_step(
    contestant: Contestant, counts: Sequence[int], loads: Sequence[Load], checks: Sequence[Result]
) -> Step | None:
    """Return what is to be measured next of a setting; None: it is settled.

    `counts` are the numbers of workers, the fewest first; every other is compared with the fewest.
    """
    seen = _Seen(contestant, checks)
    for count in counts:
        missing = tuple(load for load in loads if not seen.has(count, load.label, 0))
        if missing:
            return Step(count, 0, missing)
        if count == counts[0]:
            continue
        doubted = {label for problem in seen.problems(counts[0], count, 0) for label in problem.loads}
        for which in (counts[0], count):
            repeat = tuple(
                load for load in loads if load.label in doubted and not seen.has(which, load.label, 1)
            )
            if repeat:
                return Step(which, 1, repeat)
        if any(problem.disqualifies for problem in seen.confirmed(counts[0], count)):
            return None
    return None


def judge_check(
    contestant: Contestant, stack: Stack | None, counts: Sequence[int], checks: Sequence[Result]
) -> WorkerCheck | None:
    """Return what the check of a contestant came to; None: nothing of it was measured."""
    label = contestant.label
    if stack is not None and "workers" not in stack.knobs:
        return WorkerCheck(label, None, f"{stack.title} has no setting for the number of workers.")
    seen = _Seen(contestant, checks)
    if not seen.results:
        return None
    trials = tuple(map(_workers_seen, seen.results))
    fewest, more = counts[0], [count for count in counts[1:] if seen.count(count)]
    confirmed = [problem for count in more for problem in seen.confirmed(fewest, count)]
    problems = [problem for problem in confirmed if problem.disqualifies]
    if problems:
        sentences = tuple(dict.fromkeys(problem.sentence for problem in problems))
        return WorkerCheck(label, False, sentence("; ".join(sentences)), sentences, None, trials)
    missing = [count for count in counts if not seen.measured(count)]
    if missing or len(more) < len(counts) - 1:
        which = list_names([str(count) for count in missing or counts])
        return WorkerCheck(
            label, None, f"It could not be measured with {which} workers{seen.why_not()}.", (), None, trials
        )
    limits = [problem for problem in confirmed if not problem.disqualifies]
    scales_to = max(count for count in counts if all(problem.workers > count for problem in limits))
    kept = f"With {list_names([str(count) for count in counts])} workers it loses nothing"
    sentences = (f"{kept}, at a low rate and in a closed loop, on {seen.connections} connections",)
    sentences += tuple(problem.sentence for problem in limits)
    return WorkerCheck(
        label,
        True,
        sentence("; ".join(sentences)),
        (),
        scales_to if limits or seen.bound_by_cpu(fewest, more) else None,
        trials,
    )


# --- What was seen, sorted by workers, load and repeat, and what of it is a problem.


@dataclass(frozen=True)
class _Problem:
    """One difference between the fewest workers and more."""

    kind: str
    workers: int
    loads: tuple[str, ...]
    """Labels of the loads that show it."""
    sentence: str
    disqualifies: bool = True


class _Seen:
    """All results of one setting."""

    def __init__(self, contestant: Contestant, checks: Sequence[Result]) -> None:
        self.results = [result for result in checks if same_setting(result.trial.contestant, contestant)]
        self._by: dict[tuple[int, str, int], Result] = {
            (_workers(result), result.trial.load.label, result.trial.block): result for result in self.results
        }

    def has(self, workers: int, label: str, again: int) -> bool:
        """Return whether there is a result, of whatever kind."""
        return (workers, label, again) in self._by

    def count(self, workers: int) -> bool:
        """Return whether there is any result with so many workers."""
        return any(which == workers for which, _, _ in self._by)

    def measured(self, workers: int) -> bool:
        """Return whether any load could be measured with so many workers."""
        return any(_workers(result) == workers and isinstance(result, Measurement) for result in self.results)

    def why_not(self) -> str:
        """Return the reason of the first failure, as an addition to a sentence; empty: there is none."""
        failed = next((result for result in self.results if isinstance(result, Failed)), None)
        return f": {failed.reason.rstrip('.')}" if failed else ""

    @property
    def connections(self) -> str:
        """On which connections loads were measured: `fresh and reused`, or either."""
        kinds = {result.trial.load.keepalive for result in self.results if isinstance(result, Measurement)}
        return " and ".join(name for name, keeps in (("fresh", False), ("reused", True)) if keeps in kinds)

    def problems(self, fewest: int, workers: int, again: int) -> list[_Problem]:
        """Return all that differs between so many workers and the fewest, in one of the repeats."""
        found: list[_Problem] = []
        pairs: list[tuple[Measurement, Measurement]] = []
        for (which, label, when), many in self._by.items():
            few = self._by.get((fewest, label, again))
            if which != workers or when != again or not isinstance(few, Measurement):
                continue
            if isinstance(many, Failed):
                found += _unserved(many, workers)
                continue
            pairs.append((few, many))
            found += [problem for look in _LOOKS for problem in look(few, many, workers, fewest)]
        return [*found, *_unequal([many for _, many in pairs], workers)]

    def confirmed(self, fewest: int, workers: int) -> list[_Problem]:
        """Return what differed both times."""
        first, second = (self.problems(fewest, workers, again) for again in (0, 1))
        again = {(problem.kind, label) for problem in second for label in problem.loads}
        return [
            problem for problem in first if any((problem.kind, label) in again for label in problem.loads)
        ]

    def bound_by_cpu(self, fewest: int, more: Sequence[int]) -> bool:
        """Return whether CPU limits one worker, and there was a CPU for each of the most."""
        return any(
            _computes(result)
            and isinstance(self._by.get((more[-1], label, 0)), Measurement)
            and _room(result, more[-1])
            for (which, label, again), result in self._by.items()
            if which == fewest and again == 0 and more and isinstance(result, Measurement)
        )


def _unserved(many: Failed, workers: int) -> Iterator[_Problem]:
    if many.failure.is_missing or many.failure is FailureKind.LOAD:
        return  # of this machine or of the load, not of the server
    yield _Problem(
        "unserved",
        workers,
        (many.trial.load.label,),
        f"with {workers} workers it does not serve: {many.reason.rstrip('.')}",
    )


def _slow(few: Measurement, many: Measurement, workers: int, fewest: int) -> Iterator[_Problem]:
    """Latency at a low rate that is not there with the fewest workers."""
    if not isinstance(many.trial.load.pace, Open) or many.doubts & LATE or few.doubts & LATE:
        return
    for name in ("p50", "p90"):
        before, after = getattr(few.load.due, name), getattr(many.load.due, name)
        enough = min(few.load.ok, many.load.ok) >= ENOUGH[f"{name}_ms"]
        if before is None or after is None or not enough:
            continue
        if after - before > max(APPEARS_MS, APPEARS * before):
            pace = quantity.exact(many.trial.load.pace.rate)
            yield _Problem(
                "slow",
                workers,
                (many.trial.load.label,),
                f"at {pace} on {_connections(many)} {name} is {_ms(after)} with {_workers_of(workers)} and "
                f"{_ms(before)} with {_workers_of(fewest)}",
            )
            return


def _lost(few: Measurement, many: Measurement, workers: int, fewest: int) -> Iterator[_Problem]:
    """Throughput that is gone, or does not come with the CPUs that are there for it."""
    if not isinstance(many.trial.load.pace, Closed) or many.doubts & BY_GENERATOR:
        return
    before, after = few.load.throughput_rps, many.load.throughput_rps
    figures = (
        f"in a closed loop on {_connections(many)} {quantity.rate(after)} with {_workers_of(workers)} and "
        f"{quantity.rate(before)} with {_workers_of(fewest)}"
    )
    label = many.trial.load.label
    if after < LOST * before:
        yield _Problem("lost", workers, (label,), figures)
    elif (
        _computes(few)
        and _room(many, workers)
        and not few.doubts & BY_GENERATOR
        and after < SCALES * workers / fewest * before
    ):
        yield _Problem("scales", workers, (label,), f"does not scale: {figures}", disqualifies=False)


def _failing(few: Measurement, many: Measurement, workers: int, fewest: int) -> Iterator[_Problem]:
    """Requests that fail, or workers that die, only with more of them."""
    before, after = _error_share(few), _error_share(many)
    where = f"{_of_load(many)} on {_connections(many)}"
    if after >= before + ERRORS:
        yield _Problem(
            "errors",
            workers,
            (many.trial.load.label,),
            f"{where} {quantity.percent(after)} of the requests fail with {_workers_of(workers)} and "
            f"{quantity.percent(before)} with {_workers_of(fewest)}",
        )
    kinds = {flag.kind for flag in many.flags} & LOST_WORKERS
    if kinds and not {flag.kind for flag in few.flags} & LOST_WORKERS:
        yield _Problem(
            "died", workers, (many.trial.load.label,), f"{where} workers end with {_workers_of(workers)}"
        )


_LOOKS: tuple[Callable[[Measurement, Measurement, int, int], Iterator[_Problem]], ...] = (
    _slow,
    _lost,
    _failing,
)


def _unequal(measured: Sequence[Measurement], workers: int) -> list[_Problem]:
    """One worker that does much more than its share on fresh and on reused connections alike.

    Reused connections alone stay where the first burst put them.
    """
    closed = [measurement for measurement in measured if isinstance(measurement.trial.load.pace, Closed)]
    shares = {
        measurement.trial.load.label: share
        for measurement in closed
        if (share := _busiest(measurement, workers)) is not None
    }
    if len(shares) < 2 or len(shares) < len(closed) or min(shares.values()) <= UNEQUAL:
        return []
    most = quantity.percent(min(shares.values()) / workers)
    sentence = f"in closed loops one of {workers} workers does {most} of the work or more, on any connections"
    return [_Problem("unequal", workers, tuple(shares), sentence)]


def _busiest(measurement: Measurement, workers: int) -> float | None:
    """Return the work of the busiest worker, of an equal share; None where that says nothing."""
    pace = measurement.trial.load.pace
    if not isinstance(pace, Closed):
        return None
    return busiest((worker.cpu_s for worker in measurement.server.workers), workers, pace.connections)


def _workers(result: Result) -> int:
    return int(result.trial.contestant.knobs.get("workers", 1))


def _computes(measurement: Measurement) -> bool:
    """Whether CPU is what limits a single worker."""
    closed = isinstance(measurement.trial.load.pace, Closed)
    return (
        closed
        and _workers(measurement) == 1
        and measurement.server.cpu_s >= USED_UP * measurement.load.duration_s
    )


def _room(measurement: Measurement, workers: int) -> bool:
    """Whether there was a CPU for each worker."""
    return measurement.server_cpus >= workers


def _error_share(measurement: Measurement) -> float:
    return measurement.failed / max(measurement.load.requests, 1)


def _workers_seen(result: Result) -> WorkersSeen:
    load, count = result.trial.load, _workers(result)
    if isinstance(result, Failed):
        return WorkersSeen(count, load.label, not load.keepalive, result.trial.block, failed=result.reason)
    return WorkersSeen(
        count,
        load.label,
        not load.keepalive,
        result.trial.block,
        result.load.throughput_rps,
        _error_share(result),
        result.load.due.p50,
        result.load.due.p90,
        result.server.cpu_s / result.load.duration_s if result.load.duration_s else 0.0,
        _busiest(result, count),
    )


def _connections(measurement: Measurement) -> str:
    return "reused connections" if measurement.trial.load.keepalive else "fresh connections"


def _of_load(measurement: Measurement) -> str:
    pace = measurement.trial.load.pace
    return f"at {quantity.exact(pace.rate)}" if isinstance(pace, Open) else "in a closed loop"


def _workers_of(count: int) -> str:
    return "one worker" if count == 1 else f"{count} workers"


def _ms(value: float) -> str:
    return f"{quantity.milliseconds(value)} ms"


def disqualified(checks: Mapping[str, WorkerCheck]) -> set[str]:
    """Return the labels of those that are not recommended."""
    return {label for label, check in checks.items() if check.survived is False}

"""Which faults of the doctor's catalogue the figures of another command make likely, and the command that proves each.

    suspects(results.trials, catalog.stacks(), machine_cpus=2)      # of a race, a search, a tuning
    seen = symptoms(measured, stack)      # of one contestant in one question, as the doctor's screens would see it
    glances(seen)                         # diagnoses/fault.py: {"nodelay": "p50 42.5 ms on reused connections, …"}

Nothing is measured for it, and nothing is proven by it: a suspect is worth a `velodrome doctor`, no more. So most of
what the doctor sees is missing: there is no heartbeat, and the slope has two ends, a load with hardly any request in
flight and the load with the most throughput. By Little's law the second's throughput times what a request takes in the
first is how many are in work at once. Where that is clearly less than there are in flight, something bounds it.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from velodrome.diagnoses.fault import glances
from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.judge.field import spoilt
from velodrome.judge.standings import app_words, around_words
from velodrome.model.bottleneck import USED_UP
from velodrome.model.diagnosis import Suspected
from velodrome.model.load import QUEUE_STANDS, Closed, Open
from velodrome.model.measurement import FlagKind, Measurement
from velodrome.model.quantity import Interval
from velodrome.model.results import Header, Result
from velodrome.model.symptoms import (
    FEW,
    Counted,
    Point,
    Reused,
    Setting,
    Slope,
    Symptoms,
    all_but_the_fastest,
)
from velodrome.model.trial import Trial
from velodrome.model.workers import busiest
from velodrome.usecases.workers import closes

FLAGS = ("workers", "threads", "loop")
"""Settings with an option of their own; the others are given by `--knob`."""
LOW = 0.35
"""Of the most throughput: at a lower rate hardly any request waits for another."""
SURE = 0.1
"""Share by which requests in work may be off: two spans of a few seconds, of one start each."""
FULL = 0.85
"""Of the requests in flight, so many in work: nothing bounds them but how many there are."""
FAILS, HARDLY = 0.01, 0.001
"""Share of the requests that fail, and of those that do where hardly any does."""
HANGS, IDLE_CPUS = 0.05, 0.1
"""Of the throughput with fewer in flight, what is left where requests hang, and CPUs in use meanwhile."""
SAMPLES = 4
"""Of a load, half a second apart, in each of which what leaks has to be more than before."""
LOADS = 2
"""In each of which memory has to rise: one alone may fill a cache."""
AFTER = (Closed, Open)
"""Loads of one rate: in a schedule the figures are of several."""


def suspects(
    results: Iterable[Result], stacks: Mapping[str, Stack], machine_cpus: int = 0
) -> tuple[Suspected, ...]:
    """Return what loads of apps make likely, contestant by contestant: of velodrome's own recipes that is known.

    `machine_cpus` are those of the machine they were measured on; 0: not known.
    """
    groups: dict[tuple[str, object], list[Measurement]] = {}
    for result in results:
        trial = result.trial
        stack = stacks.get(trial.contestant.stack)
        if not isinstance(result, Measurement) or stack is None or trial.app is None:
            continue
        settings = tuple(sorted(stack.settings(trial.contestant.knobs).items()))
        who = (stack.name, settings, tuple(sorted(trial.contestant.packages.items())), trial.interpreter)
        groups.setdefault((trial.question, who), []).append(result)
    questions = {question for question, _ in groups}
    found = []
    for (question, _), measured in groups.items():
        trial, stack = measured[-1].trial, stacks[measured[-1].trial.contestant.stack]
        called = trial.contestant.called(stack)
        of = f"{called} ({question})" if len(questions) > 1 else called
        for name, why in glances(symptoms(measured, stack, machine_cpus)).items():
            found.append(Suspected(name, of, why, command(name, trial, stack)))
    return tuple(found)


def machine_cpus(header: Header) -> int:
    """Return how many CPUs the machine of stored results has; 0: not known."""
    count = header.machine.get("cpus")
    return count if isinstance(count, int) else 0


def command(fault: str, trial: Trial, stack: Stack) -> str:
    """Return the command line that proves a fault of an app that a trial measured, or rules it out."""
    assert trial.app is not None
    words = ["velodrome", "doctor", trial.app.path, "--stack", trial.contestant.stack]
    usual = stack.settings({})
    for name, value in stack.settings(trial.contestant.knobs).items():
        if value != usual.get(name):
            words += [f"--{name}", str(value)] if name in FLAGS else ["--knob", f"{name}={value}"]
    # What a revision was checked out to is gone when its race is over: it is proven on what is there now.
    app = replace(trial.app, cwd=".") if trial.app.revision else trial.app
    words += [*app_words(app), *around_words(trial.link, trial.limits)]
    return shlex.join([*words, "--only", fault])


# --- What loads show, as symptoms.


def symptoms(measured: Iterable[Measurement], stack: Stack, machine_cpus: int = 0) -> Symptoms:
    """Return what loads of one contestant show; what the lab itself spoilt says nothing.

    `machine_cpus` are those of the whole machine; 0: not known. A driver that is not velodrome's own is left out.
    """
    every = [
        measurement
        for measurement in measured
        if not spoilt(measurement)
        and isinstance(measurement.trial.load.pace, AFTER)
        and measurement.load.driver == "velodrome"
    ]
    contestant = every[0].trial.contestant if every else None
    workers = int(stack.settings(contestant.knobs).get("workers", 1)) if contestant else 1
    cpus = min((measurement.server_cpus for measurement in every), default=1)
    return Symptoms(
        _slope(every),
        None,
        _compare_reused(every) or _steady(every, min(workers, max(cpus, 1))),
        workers,
        max(cpus, 1),
        setting=setting_of(every[-1].trial, stack) if every else Setting(),
        counted=_count(every, workers, machine_cpus),
    )


def setting_of(trial: Trial, stack: Stack) -> Setting:
    """Return how the server of a trial is set."""
    knobs, app, server = stack.settings(trial.contestant.knobs), trial.app, stack.server
    bodies = [request.body for request in app.requests] if app else [trial.recipe.upload]
    return Setting(
        stack.name,
        knobs,
        int(knobs.get("workers", 1)),
        stack.slots(knobs),
        stack.keeps_alive,
        server.keeps_idle_s(knobs) if server else None,
        closes(stack, trial),
        any(bodies),
        stack.interface,
        catalog.interface(stack.interface).awaits,
        server.reloads(knobs) if server else False,
        server.replaces(knobs) if server else False,
    )


# --- Requests on a connection of their own, and on a reused connection.


def _compare_reused(every: Sequence[Measurement]) -> Reused | None:
    """Return both medians at one low rate; of several pairs that which differs least."""
    found = []
    for fresh in every:
        if fresh.trial.load.keepalive or not isinstance(fresh.trial.load.pace, Open):
            continue
        for reused in every:
            if not reused.trial.load.keepalive or reused.trial.load.pace != fresh.trial.load.pace:
                continue
            first, later = _median(fresh), _median(reused)
            if first is not None and later is not None:
                found.append(Reused(first, later))
    return min(found, key=lambda reused: reused.later_ms - reused.first_ms, default=None)


def _steady(every: Sequence[Measurement], room: int) -> Reused | None:
    """Return the fastest request of all and the lowest median, where all others take as long as each other.

    The fastest was the first of its connection, as far as figures go that tell no more: only where in every load, at
    whatever rate, the requests take about as long as the median, and the CPUs are not what they wait for.
    """
    reused = [
        measurement
        for measurement in every
        if measurement.trial.load.keepalive and not _fell_behind(measurement)
    ]
    if any(_cpus(measurement) >= USED_UP * room for measurement in reused):
        return None
    return all_but_the_fastest(
        [
            (measurement.load.fastest_ms, _median(measurement), measurement.load.sent.mean)
            for measurement in reused
        ]
    )


def _median(measurement: Measurement) -> float | None:
    return measurement.load.sent.p50 if measurement.load.ok >= FEW else None


def _fell_behind(measurement: Measurement) -> bool:
    """Return whether its latency tells how long the load was."""
    pace, facts = measurement.trial.load.pace, measurement.load
    return isinstance(pace, Open) and not pace.kept_up(facts.throughput_rps, facts.duration_s, QUEUE_STANDS)


# --- The two ends of the slope.


def _slope(every: Sequence[Measurement]) -> Slope | None:
    """Return them; None: there is no load with hardly a request in flight, or nothing but that."""
    kept = [
        measurement
        for measurement in every
        if measurement.trial.load.keepalive and measurement.load.ok >= FEW
    ]
    top = max(kept, key=lambda measurement: measurement.load.throughput_rps, default=None)
    if top is None:
        return None
    alone = _alone(kept, top.load.throughput_rps)
    in_flight = _in_flight(top)
    if alone is None or alone is top or alone.load.sent.mean is None or in_flight is None:
        return None
    in_work = top.load.throughput_rps * alone.load.sent.mean / 1000
    interval = Interval((1 - SURE) * in_work, in_work, (1 + SURE) * in_work)
    points = (_point(alone, 1), _point(top, max(round(in_flight), 1)))
    return Slope(points, interval, points[-1].connections, rises=interval.high >= FULL * in_flight)


def _alone(kept: Sequence[Measurement], most_rps: float) -> Measurement | None:
    """Return the load in which a request waits for others least: one connection, else the lowest of low rates."""
    single = [measurement for measurement in kept if measurement.trial.load.pace == Closed(1)]
    if single:
        return single[0]
    low = [
        measurement
        for measurement in kept
        if isinstance(measurement.trial.load.pace, Open) and measurement.load.throughput_rps <= LOW * most_rps
    ]
    return min(low, key=lambda measurement: measurement.load.throughput_rps, default=None)


def _in_flight(measurement: Measurement) -> float | None:
    pace = measurement.trial.load.pace
    return float(pace.connections) if isinstance(pace, Closed) else measurement.load.mean_in_flight


def _point(measurement: Measurement, connections: int) -> Point:
    return Point(
        connections,
        measurement.load.throughput_rps,
        _cpus(measurement),
        measurement.server.threads_peak,
        _failing(measurement),
    )


def _cpus(measurement: Measurement) -> float:
    return measurement.server.cpu_s / measurement.load.duration_s if measurement.load.duration_s else 0.0


def _failing(measurement: Measurement) -> float:
    # As of a closed loop: above a server's capacity an open loop leaves most of its requests in flight at the end.
    return measurement.load.count_failed("closed") / max(measurement.load.requests, 1)


# --- Counters and outcomes.


def _count(every: Sequence[Measurement], workers: int, machine_cpus: int) -> Counted:
    closed = [measurement for measurement in every if isinstance(measurement.trial.load.pace, Closed)]
    overflows = [
        measurement.queue.overflows for measurement in closed if measurement.queue.overflows is not None
    ]
    replaced, lost = max(
        ((_replaced(measurement), _lost(measurement)) for measurement in every), default=(0, 0.0)
    )
    grew = list(_left_bytes(every))
    return Counted(
        sum(overflows) if overflows else None,
        max(_throttled(every), default=None),
        min(_busiest(every, workers), default=None),
        _fails_from(every),
        machine_cpus,
        _hangs_from(closed),
        max(map(_never_in, closed), default=0.0),
        max(map(_unread, every), default=0.0),
        max(map(_burning, every), default=0),
        replaced,
        lost,
        min(map(_left_open, _reusing(closed)), default=0.0),
        min(grew) if len(grew) >= LOADS else 0.0,
        frozenset(every[-1].packages) if every else frozenset(),
    )


def _lost(measurement: Measurement) -> float:
    outcomes = measurement.load.outcomes
    return (outcomes.get("reset", 0) + outcomes.get("refused", 0)) / max(measurement.load.requests, 1)


def _facts(measurement: Measurement, kind: FlagKind) -> Mapping[str, float]:
    """Return the figures of the first flag of a kind; none where there is no such flag."""
    flags = (flag for flag in measurement.flags if flag.kind is kind)
    facts = next((flag.facts for flag in flags), {})
    return {name: float(value) for name, value in facts.items() if not isinstance(value, str)}


def _replaced(measurement: Measurement) -> int:
    return round(_facts(measurement, FlagKind.SERVER_RESTARTED).get("replaced", 0))


def _never_in(measurement: Measurement) -> float:
    facts = _facts(measurement, FlagKind.CONNECTIONS_NEVER_IN)
    return facts["outside"] / facts["connections"] if facts else 0.0


def _unread(measurement: Measurement) -> float:
    closed = _facts(measurement, FlagKind.CLOSED_UNREAD).get("closed_unread", 0.0)
    return closed / max(measurement.load.requests, 1)


def _burning(measurement: Measurement) -> int:
    facts = _facts(measurement, FlagKind.IDLE_WORKERS_BURN)
    # The other flag of this kind is of a server at rest, where something polls.
    return round(facts["processes"]) if "cpu_s" in facts else 0


def _reusing(every: Iterable[Measurement]) -> list[Measurement]:
    return [measurement for measurement in every if measurement.trial.load.keepalive]


def _hangs_from(closed: Sequence[Measurement]) -> int | None:
    """Return the fewest connections with which next to nothing is answered and nothing computed; None: with none."""
    known = [
        (float(measurement.trial.load.pace.connections), measurement)
        for measurement in closed
        if isinstance(measurement.trial.load.pace, Closed)
    ]
    hanging = []
    for connections, measurement in known:
        fewer = (other.load.throughput_rps for count, other in known if count <= connections / 2)
        if (
            measurement.load.throughput_rps < HANGS * max(fewer, default=0.0)
            and _cpus(measurement) < IDLE_CPUS
        ):
            hanging.append(connections)
    return round(min(hanging)) if hanging else None


def _left_open(measurement: Measurement) -> float:
    """Return how many descriptors a request leaves open; 0: not in every half second of the load."""
    counts = [sample.fds for sample in measurement.server.samples]
    known = [float(count) for count in counts if count is not None]
    return _left(known, measurement) if len(known) == len(counts) else 0.0


def _left_bytes(every: Sequence[Measurement]) -> Iterator[float]:
    for measurement in every:
        if len(measurement.server.samples) >= SAMPLES:
            yield _left([float(sample.rss_bytes) for sample in measurement.server.samples], measurement)


def _left(values: Sequence[float], measurement: Measurement) -> float:
    if len(values) < SAMPLES or any(after <= before for before, after in pairwise(values)):
        return 0.0
    samples = measurement.server.samples
    answers = measurement.load.throughput_rps * (samples[-1].at_s - samples[0].at_s)
    return (values[-1] - values[0]) / answers if answers else 0.0


def _throttled(every: Sequence[Measurement]) -> Iterator[float]:
    for measurement in every:
        samples = [sample for sample in measurement.server.samples if sample.throttled_s is not None]
        if samples and samples[-1].throttled_s is not None and samples[-1].at_s:
            yield samples[-1].throttled_s / samples[-1].at_s


def _busiest(every: Sequence[Measurement], workers: int) -> Iterator[float]:
    for measurement in every:
        pace = measurement.trial.load.pace
        if isinstance(pace, Closed):
            used = (worker.cpu_s for worker in measurement.server.workers)
            if (share := busiest(used, workers, pace.connections)) is not None:
                yield share


def _fails_from(every: Sequence[Measurement]) -> int | None:
    """Return the fewest requests in flight with which some fail; None: as many do with half of them, or none does."""
    known = [
        (in_flight, _failing(measurement))
        for measurement in every
        if (in_flight := _in_flight(measurement)) is not None
    ]
    failing = [in_flight for in_flight, share in known if share >= FAILS]
    if not failing:
        return None
    fewer = [share for in_flight, share in known if in_flight <= min(failing) / 2]
    return round(min(failing)) if fewer and max(fewer) < HARDLY else None

"""How long a race will take, before it is run: an estimate, right to about a fifth on an idle machine."""

from collections.abc import Iterable, Mapping

from velodrome.guest.stack import Stack
from velodrome.model.capacity import Ceiling, ceiling
from velodrome.model.load import Closed, Open, Schedule
from velodrome.model.trial import Session, Trial

START_S = 0.4
"""Start of a server until its first right answer has been checked; typical of two CPUs in 2026."""
STOP_S = 0.15
"""Orderly stop of a server and of the third party."""
COMPANION_S = 0.9
"""Start of a database, and its tables; several start at the same time, on the same CPU."""
LOAD_S = 0.12
"""Start of the generator, opening its connections, and writing down what it measured."""

COMMON_RPS = 3000.0
"""Of a Python server on one CPU, where nothing else bounds it."""


def session_s(heat: Session, stacks: Mapping[str, Stack]) -> float:
    """Return the seconds one heat will take, all included."""
    companions = COMPANION_S * len(heat.trials[0].recipe.companions)
    loads = sum(_load_s(trial, stacks.get(trial.contestant.stack)) for trial in heat.trials)
    return START_S + STOP_S + companions + loads


def race_s(heats: Iterable[Session], stacks: Mapping[str, Stack]) -> float:
    """Return the seconds that heats take one after the other."""
    return sum(session_s(heat, stacks) for heat in heats)


def _load_s(trial: Trial, stack: Stack | None) -> float:
    load = trial.load
    return (
        LOAD_S
        + load.warmup_s
        + _span_s(trial, stack)
        + (min(load.drain_s, _backlog_s(trial, stack)) if stack else 0)
    )


def _span_s(trial: Trial, stack: Stack | None) -> float:
    """Return the length of the measured span; that of a count is by what arithmetic allows, or a common rate."""
    load = trial.load
    if load.requests is None:
        return load.duration_s
    limit = _ceiling(trial, stack, load.pace) if stack else None
    return min(load.duration_s, load.requests / min(limit.rps if limit else COMMON_RPS, COMMON_RPS))


def _ceiling(trial: Trial, stack: Stack, pace: Closed | Open | Schedule) -> Ceiling | None:
    cpus = trial.limits.cpus
    given = cpus if isinstance(cpus, int) else None
    knobs, streams = trial.contestant.knobs, trial.load.streams
    rtt_ms = trial.link.rtt_ms if trial.link else 0.0
    return ceiling(stack, knobs, trial.recipe, pace, given, streams=streams, rtt_ms=rtt_ms)


def _backlog_s(trial: Trial, stack: Stack) -> float:
    """Return how long it takes to answer what is inside when the span ends."""
    limit = _ceiling(trial, stack, Closed(1_000_000))
    if limit is None or limit.bound == "connections":
        return trial.recipe.wait_ms / 1000
    pace, load = trial.load.pace, trial.load
    if isinstance(pace, Closed):
        return pace.connections / limit.rps
    return (
        max(0.0, pace.rate - limit.rps) * (load.duration_s + load.warmup_s) / limit.rps
        + trial.recipe.wait_ms / 1000
    )

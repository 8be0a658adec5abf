"""Measurements of a simulated server that takes the same time for each request, one at a time and in turn: M/D/1."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from tests.judge import made

from velodrome.model.load import Closed, Load, Open, Schedule, Step
from velodrome.model.measurement import Latency, LoadFacts, LoadSecond, LoadStep, Measurement
from velodrome.model.trial import Trial

Floats = NDArray[np.float64]

AWAY = 2
"""Connections of a closed loop that are not waiting, on average."""


def measured(of: Trial, service_s: float, seed: int) -> Measurement:
    """What one load gives; its arrivals follow from the seed."""
    pace, span = of.load.pace, of.load.duration_s
    random = np.random.default_rng(seed)
    if isinstance(pace, Closed):
        # Each connection needs some time to send its next request; figures differ by 1 % from time to time.
        rps = (
            pace.connections / (pace.connections + AWAY) / service_s * np.exp(0.01 * random.standard_normal())
        )
        return made.measured(of, float(rps), mean_ms=1000 * service_s * pace.connections)
    steps = pace.steps if isinstance(pace, Schedule) else (Step(pace.rate, span),)
    due = _due(random, steps)
    done = np.array(_in_turn(due, service_s))
    stay_ms = 1000 * (done - due)
    facts = made.measured(
        of, float((done <= span).sum() / span), latencies_ms=[*stay_ms], mean_ms=float(stay_ms.mean())
    )
    p50, p75, p90, p95, p99, p999 = map(float, np.percentile(stay_ms, [50, 75, 90, 95, 99, 99.9]))
    latency = Latency(float(stay_ms.mean()), p50, p75, p90, p95, p99, p999, float(stay_ms.max()))
    load: LoadFacts = replace(
        facts.load,
        due=latency,
        sent=latency,
        requests=len(due),
        ok=len(due),
        outcomes={"ok": len(due)},
        series=tuple(_seconds(due, done, round(span))),
        steps=tuple(_steps(steps, due, done)) if isinstance(pace, Schedule) else (),
    )
    return replace(facts, load=load)


def _due(random: np.random.Generator, steps: Sequence[Step]) -> Floats:
    """Arrivals of independent users."""
    found: list[float] = []
    began = 0.0
    for step in steps:
        count = random.poisson(step.rate * step.duration_s)
        found += sorted(began + step.duration_s * random.random(count))
        began += step.duration_s
    return np.array(found)


def _in_turn(due: Floats, service_s: float) -> list[float]:
    return [*accumulate(due[1:], lambda free, at: max(free, at) + service_s, initial=due[0] + service_s)]


def _seconds(due: Floats, done: Floats, span: int) -> list[LoadSecond]:
    found = []
    for at in range(span):
        ended = (done >= at) & (done < at + 1)
        stay = 1000 * (done - due)[ended]
        p50, p99, most = np.percentile(stay, [50, 99, 100]) if len(stay) else (None, None, None)
        in_flight = int(((due < at + 1) & (done >= at + 1)).sum())
        found.append(LoadSecond(float(at), len(stay), len(stay), 0, in_flight, p50, p99, most))
    return found


def _steps(steps: Sequence[Step], due: Floats, done: Floats) -> list[LoadStep]:
    found, began = [], 0.0
    none = Latency(*[None] * 8)
    for step in steps:
        ends = began + step.duration_s
        sent = int(((due >= began) & (due < ends)).sum())
        answered = int(((done >= began) & (done < ends)).sum())
        found.append(
            LoadStep(
                began,
                step.duration_s,
                step.rate,
                step.rate,
                sent,
                sent,
                answered / step.duration_s,
                none,
                none,
                None,
            )
        )
        began = ends
    return found


def open_trial(rate: float, seconds: float) -> Trial:
    """An open loop at a rate."""
    return made.trial("uvicorn", load=Load(Open(rate, "poisson"), seconds))

"""What a run teaches of the noise of its machine, for those after it.

    learn(results, stacks)     # {"throughput busy": Spread(0.061, df=34), …}

A contestant that is started anew in every block is its own equal: what is left of its figures after its level and that
of the block (two-way fit, as in a ranking) is by how much equals differ here. So no contestant needs to run twice.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from velodrome.guest.stack import Stack
from velodrome.judge.field import (
    Runner,
    cpu_cost,
    cpus_of,
    latency_noise,
    memory_use,
    rate_noise,
    rates,
    runners,
)
from velodrome.judge.statistics import Comparison, Sample, median_of_chi2
from velodrome.model.load import Load, Open
from velodrome.model.measurement import Measurement
from velodrome.model.noise import SHARES, SHIPPED, Spread
from velodrome.model.results import Results
from velodrome.model.study import Question

EFFICIENCY = 0.6
"""Of a median of variances, over their mean: it needs so much more of them to be as sure, and is not led astray."""
LEAST_S = 1.0
"""Spans that are shorter vary by what they catch, not by the machine."""
FACTOR = 25.0
"""No machine is so much calmer or more restless, in variances; more is a fault of a run."""


def learn(run: Results, stacks: Mapping[str, Stack]) -> dict[str, Spread]:
    """Return what was seen of each line of the table; `df` counts what was seen alone, without the table."""
    seen: dict[str, list[tuple[float, float]]] = {}
    for question in run.header.study.questions:
        field = runners(question, run.trials, stacks, SHIPPED)
        for load in question.loads:
            if load.duration_s >= LEAST_S and load.requests is None:
                for samples in _quantities(question, load, field):
                    _take(samples, seen)
    return {name: _spread(name, found) for name, found in seen.items()}


def _take(samples: Sequence[tuple[str, Sample]], seen: dict[str, list[tuple[float, float]]]) -> None:
    if len(samples) < 2:
        return
    restless = Comparison([sample for _, sample in samples]).restless
    for name, sample in samples:
        # Where counting alone varies as much, the rest is not seen.
        if sample.label in restless and sample.grain**2 < sample.noise**2 / 2:
            seen.setdefault(name, []).append(restless[sample.label])


def _spread(name: str, found: Sequence[tuple[float, float]]) -> Spread:
    df = math.fsum(df for _, df in found)
    if len(found) < 3:
        factor = math.fsum(df * own for own, df in found) / df
    else:
        df_each = df / len(found)
        factor = median(own for own, _ in found) * df_each / median_of_chi2(df_each)
    size = math.sqrt(min(max(factor, 1 / FACTOR), FACTOR))
    return Spread(SHARES[name].share * size, SHARES[name].floor_ms * size, EFFICIENCY * df)


def _quantities(
    question: Question, load: Load, field: Sequence[Runner]
) -> Iterator[list[tuple[str, Sample]]]:
    """Yield each quantity of a load: all contestants of which nothing sets a block aside, with their line."""
    valid = [
        (runner, measured)
        for runner in field
        if (measured := runner.valid_under(load)) and runner.bound_under(load) is None
    ]
    answered = [
        (runner, measured)
        for runner, measured in valid
        if all(measurement.load.answers for measurement in measured)
    ]
    yield [
        (_name(rate_noise(SHIPPED, measured, question, load)), rates(runner, measured, question, load))
        for runner, measured in answered
    ]
    yield [
        (_name(SHIPPED.cpu(cpus_of(measured))), cost)
        for runner, measured in answered
        if (cost := cpu_cost(runner, load)) is not None
    ]
    yield [("memory", used) for runner, _ in valid if (used := memory_use(runner, load)) is not None]
    if isinstance(load.pace, Open):
        for part in ("mean", "p50", "p90", "p99"):
            yield [
                found
                for runner, measured in answered
                if (found := _latency(runner, measured, question, part))
            ]


def _latency(
    runner: Runner, measured: Sequence[Measurement], question: Question, part: str
) -> tuple[str, Sample] | None:
    values = {
        measurement.trial.block: value
        for measurement in measured
        if (value := getattr(measurement.load.due, part)) is not None and value > 0
    }
    if not values:
        return None
    known = latency_noise(SHIPPED, question, part, median(values.values()))
    return part, Sample(runner.label, values, noise=known.share)


def _name(spread: Spread) -> str:
    return next(name for name, share in SHARES.items() if share is spread)

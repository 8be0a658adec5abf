"""Each step of a load whose rate changes, all blocks together, and up to which rate a contestant kept up.

Percentiles of blocks are not averaged, and steps have no histograms to merge: those of all blocks together lie between
the lowest and the highest of them.
"""

from collections.abc import Mapping, Sequence

from velodrome.model.load import Load, Schedule
from velodrome.model.measurement import LoadStep, Measurement
from velodrome.model.quantity import exact
from velodrome.model.verdict import LatencyView, StepView

KEPT_UP = 0.97
"""Share of what fell due in a step that has to be answered right in it, as for rates that are sustained."""
FEW = 3.0
"""Requests that the ends of a step alone cost it, beside this share."""


def views(measured: Sequence[Measurement]) -> tuple[StepView, ...]:
    """Return what became of each step that all blocks came to."""
    blocks = [one.load.steps for one in measured]
    return tuple(_view(same) for same in zip(*blocks, strict=False)) if blocks and all(blocks) else ()


def _view(same: Sequence[LoadStep]) -> StepView:
    first = same[0]
    answered = [step.throughput_rps for step in same]
    return StepView(
        at_s=first.at_s,
        rate=first.rate,
        to_rate=first.to_rate,
        achieved_rps=sum(answered) / len(answered),
        p50_ms=_between([step.due.p50 for step in same]),
        p99_ms=_between([step.due.p99 for step in same]),
        errors=sum(step.requests - step.ok for step in same),
        kept_up=all(map(_kept_up, same)),
    )


def _kept_up(step: LoadStep) -> bool:
    """Return whether as much was answered in a step as fell due in it.

    What falls due at its end is answered in the next: by Little's law as many requests as it has a second, times the
    time each one takes once it is sent.
    """
    lost = step.requests - step.throughput_rps * step.duration_s
    inside = step.requests / step.duration_s * (step.sent.mean or 0.0) / 1000 if step.duration_s > 0 else 0.0
    return lost <= max(FEW + inside, (1 - KEPT_UP) * step.requests)


def _between(values: Sequence[float | None]) -> tuple[float, float] | None:
    told = [value for value in values if value is not None]
    return (min(told), max(told)) if told and len(told) == len(values) else None


def kept_up_to(steps: Sequence[StepView]) -> float | None:
    """Return the highest rate before the first step that was not kept up with; None: the first was not."""
    highest = None
    for step in steps:
        if not step.kept_up:
            return highest
        highest = max(highest or 0.0, step.rate, step.to_rate)
    return highest


def sentence(load: Load, found: Mapping[str, LatencyView]) -> list[str]:
    """Return up to which rate each kept up, the highest first; `found` by what they are called."""
    if not isinstance(load.pace, Schedule):
        return []
    reached = {called: kept_up_to(view.steps) for called, view in found.items() if view.steps}
    top = load.pace.top
    all_of_it = [called for called, rate in reached.items() if rate is not None and rate >= top]
    partly = {called: rate for called, rate in reached.items() if called not in all_of_it}
    if not reached:
        return []
    told = [f"{', '.join(all_of_it)} up to the end"] if all_of_it else []
    told += [
        f"{called} up to {exact(rate)}" if rate is not None else f"{called} from the beginning not"
        for called, rate in sorted(partly.items(), key=lambda one: -(one[1] or 0.0))
    ]
    went = load.pace.ends.replace("..", " to ")
    return [f"As the rate went from {went}/s, these kept up with it: {'; '.join(told)}"]

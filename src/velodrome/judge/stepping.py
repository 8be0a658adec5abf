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
    if not blocks or not all(blocks):
        return ()
    usual = [step.sent.p50 for steps in blocks for step in steps if step.sent.p50 is not None]
    usual_s = min(usual, default=0.0) / 1000
    before, found = 0.0, []
    for same in zip(*blocks, strict=False):
        found.append(_view(same, before, usual_s))
        before = same[0].to_rate
    return tuple(found)


def _view(same: Sequence[LoadStep], before: float, usual_s: float) -> StepView:
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
        kept_up=all(_kept_up(step, before, usual_s) for step in same),
    )


def _kept_up(step: LoadStep, before: float, usual_s: float) -> bool:
    """Return whether as much was answered in a step as fell due in it.

    By Little's law a higher rate has more requests inside: as many as it rose by since the step `before`, times what
    one usually takes. That is taken from the quickest step, and is at most a quarter of this one: where all steps were
    overloaded, the time a request takes is that of the queue, and would excuse it.
    """
    lost = step.requests - step.throughput_rps * step.duration_s
    more_inside = max(0.0, step.to_rate - before) * min(usual_s, step.duration_s / 4)
    return lost <= more_inside + max(FEW, (1 - KEPT_UP) * step.requests)


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

"""Right answers a second, and how near they come to what arithmetic allows."""

from dataclasses import replace

from velodrome.judge import field
from velodrome.judge.figures.cell import Cell, Taking
from velodrome.judge.figures.number import Known, Missing, Number, Series
from velodrome.model.interval import Interval
from velodrome.model.load import Load


def throughput(cell: Cell, load: Load) -> Number:
    """Right answers that arrived within the span, over its length."""
    found = cell.valid(load)
    if isinstance(found, Missing):
        return found
    sample = field.throughput(replace(cell.runner, measured=tuple(found)), cell.question, load)
    if sample is None or not any(one.load.answers for one in found):
        return Missing(f"{cell.runner.called} gave no right answer under {load.label}")
    return Series(sample.values, sample.grain)


def answered(cell: Cell, load: Load) -> Number:
    """The same, also of measurements set aside because the server turned requests away or left them waiting."""
    found = cell.seen(load)
    if isinstance(found, Missing):
        return found
    values = {one.trial.block: one.load.throughput_rps for one in found if one.load.throughput_rps > 0}
    if not values:
        return Missing(f"{cell.runner.called} gave no right answer under {load.label}")
    return Series(values)


def ceiling(cell: Cell, load: Load) -> Number:
    """What Little's law allows: slots, or connections, over the time each is held. Known exactly."""
    found = cell.runner.ceiling(cell.question, load)
    if found is None:
        return Missing(f"arithmetic bounds {cell.runner.called} by nothing under {load.label}")
    return Known(Interval(found.rps, found.rps, found.rps))


def of_ceiling(cell: Cell, load: Load) -> Number:
    """Right answers a second over that."""
    rate, limit = throughput(cell, load), ceiling(cell, load)
    if isinstance(rate, Missing) or not isinstance(limit, Known):
        return rate if isinstance(rate, Missing) else limit
    assert isinstance(rate, Series)
    values = {block: value / limit.interval.mid for block, value in rate.values.items()}
    return replace(rate, values=values)


FIGURES = {
    "throughput_rps": Taking(throughput),
    "answered_rps": Taking(answered),
    "ceiling_rps": Taking(ceiling),
    "ceiling_share": Taking(of_ceiling),
}

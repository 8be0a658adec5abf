"""Right answers a second, and how near they come to what arithmetic allows."""

from collections.abc import Iterable
from dataclasses import replace

from velodrome.judge import field
from velodrome.judge.comparing import NOISE
from velodrome.judge.figures.cell import Cell, Taking
from velodrome.judge.figures.number import Known, Limit, Missing, Number, Series, Side
from velodrome.model.flag import FlagKind
from velodrome.model.interval import Interval
from velodrome.model.load import Load, Open
from velodrome.model.measurement import Measurement

KEPT_UP = 0.97
NOISE_KEPT_UP = 0.01
"""Of the rate of an open loop that a server keeps up with: it is the generator's, not the server's."""
GENERATOR_ENDED = frozenset({FlagKind.GENERATOR_SATURATED, FlagKind.LITTLES_LAW})
"""A generator without CPU leaves its connections waiting for itself, which Little's law then misses."""


def throughput(cell: Cell, load: Load) -> Number:
    """Right answers that arrived within the span, over its length.

    Where the generator had no CPU left the server could have done more: that many is what it does at least.
    """
    bounded = [one for one in cell.runner.under(load) if _ended_by_generator(one)]
    found = [*bounded, *cell.runner.valid_under(load)] if bounded else cell.valid(load)
    if isinstance(found, Missing):
        return found
    if not any(one.load.answers for one in found):
        return Missing(f"{cell.runner.called} gave no right answer under {load.label}")
    sample = field.rates(cell.runner.label, found, cell.question, load)
    limit = Limit(Side.AT_LEAST, "give the generator more CPUs") if bounded else None
    return Series(sample.values, sample.grain, _noise(load, sample.values.values()), limit)


def _ended_by_generator(one: Measurement) -> bool:
    return FlagKind.GENERATOR_SATURATED in one.doubts and one.doubts <= GENERATOR_ENDED


def answered(cell: Cell, load: Load) -> Number:
    """The same, also of measurements set aside because the server turned requests away or left them waiting."""
    found = cell.seen(load)
    if isinstance(found, Missing):
        return found
    values = {one.trial.block: one.load.throughput_rps for one in found if one.load.throughput_rps > 0}
    if not values:
        return Missing(f"{cell.runner.called} gave no right answer under {load.label}")
    return Series(values, noise=_noise(load, values.values()))


def _noise(load: Load, rates: Iterable[float]) -> float:
    kept_up = isinstance(load.pace, Open) and min(rates) >= KEPT_UP * load.pace.rate
    return NOISE_KEPT_UP if kept_up else NOISE


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


def span(cell: Cell, load: Load) -> Number:
    """Seconds that a load of so many requests took."""
    if load.requests is None:
        return Missing(f"{load.label} takes as long as it is told to")
    found = cell.valid(load)
    if isinstance(found, Missing):
        return found
    return Series({one.trial.block: one.load.duration_s for one in found})


FIGURES = {
    "throughput_rps": Taking(throughput),
    "answered_rps": Taking(answered),
    "span_s": Taking(span),
    "ceiling_rps": Taking(ceiling),
    "ceiling_share": Taking(of_ceiling),
}

"""The number a check is about: one figure, the ratio of two, or the ratio of two ratios, with its interval."""

import math
from dataclasses import dataclass, replace

from velodrome.judge.claims.finding_cells import Evidence
from velodrome.judge.comparing import Comparison, Pair, Sample
from velodrome.judge.figures.cell import Cell
from velodrome.judge.figures.number import Known, Limit, Missing, Number, Series
from velodrome.judge.figures.taking import TAKING
from velodrome.model.claim import Check, Figure
from velodrome.model.interval import Interval
from velodrome.model.load import Load


@dataclass(frozen=True)
class Measured:
    """A number with its interval, and what would narrow it."""

    interval: Interval
    limit: Limit | None = None
    comparison: Comparison | None = None
    pair: Pair | None = None
    """Of a ratio, block by block."""
    blocks: int = 0
    cells: tuple[Cell, ...] = ()
    loads: tuple[Load, ...] = ()


def measure(check: Check, evidence: Evidence) -> Measured | Missing:
    """Return what was measured for a check of cells, or why it cannot be told."""
    figures = [figure for figure in (check.figure, check.over, *(check.than or ())) if figure]
    places: list[tuple[Cell, Load]] = []
    numbers: list[Series | Known] = []
    for figure in figures:
        place = _place(figure, check, evidence)
        if isinstance(place, Missing):
            return place
        number: Number = TAKING[figure.metric].take(*place)
        if isinstance(number, Missing):
            return number
        places.append(place)
        numbers.append(number)
    found = _combined(numbers)
    if isinstance(found, Missing):
        return found
    return replace(found, cells=tuple(cell for cell, _ in places), loads=tuple(load for _, load in places))


def _place(figure: Figure, check: Check, evidence: Evidence) -> tuple[Cell, Load] | Missing:
    if figure.metric not in TAKING:
        return Missing(f"this velodrome knows no metric '{figure.metric}'")
    cell = evidence.cell(figure, check.bound_ms)
    if isinstance(cell, Missing):
        return cell
    if not figure.load:
        return cell, TAKING[figure.metric].load(cell.question)
    load = evidence.load(cell.question, figure.load)
    return load if isinstance(load, Missing) else (cell, load)


def _combined(numbers: list[Series | Known]) -> Measured | Missing:
    if len(numbers) == 1:
        return _alone(numbers[0])
    if len(numbers) == 2:
        return _over(numbers[0], numbers[1])
    gain, other = _quotient(numbers[0], numbers[1]), _quotient(numbers[2], numbers[3])
    for found in (gain, other):
        if isinstance(found, Missing):
            return found
    assert not isinstance(gain, Missing)
    assert not isinstance(other, Missing)
    return _over(gain, other)


def _alone(number: Series | Known) -> Measured:
    if isinstance(number, Known):
        return Measured(number.interval)
    # A pair's noise is that of two; a value alone has the half of its variance (Comparison.alone does this).
    comparison = Comparison([Sample("of", number.values, number.grain)], number.noise)
    return Measured(comparison.alone("of"), number.limit, blocks=len(number.values))


def _over(number: Series | Known, other: Series | Known) -> Measured | Missing:
    if isinstance(number, Known) or isinstance(other, Known):
        return _apart(_alone(number), _alone(other))
    samples = [Sample("of", number.values, number.grain), Sample("over", other.values, other.grain)]
    comparison = Comparison(samples, max(number.noise, other.noise))
    pair = comparison.pair("of", "over")
    if pair is None:
        return Missing("no block holds both")
    limit = _limit(number, other)
    if isinstance(limit, Missing):
        return limit
    return Measured(pair.ratio, limit, comparison, pair, pair.blocks)


def _apart(one: Measured, other: Measured) -> Measured | Missing:
    """Return the ratio of two numbers that no block pairs: as wide as both together allow."""
    a, b = one.interval, other.interval
    if b.mid == 0:
        return Missing("it would be divided by nothing: the other number is 0")
    limit = _limit(one, other)
    if isinstance(limit, Missing):
        return limit
    return Measured(Interval(a.low / b.high, a.mid / b.mid, a.high / b.low if b.low else math.inf), limit)


def _quotient(number: Series | Known, other: Series | Known) -> Series | Known | Missing:
    """Return a ratio as a number of its own, to be compared again."""
    if isinstance(number, Known) or isinstance(other, Known):
        found = _apart(_alone(number), _alone(other))
        return found if isinstance(found, Missing) else Known(found.interval)
    values = {
        block: value / other.values[block] for block, value in number.values.items() if block in other.values
    }
    if not values:
        return Missing("no block holds both")
    limit = _limit(number, other)
    if isinstance(limit, Missing):
        return limit
    noise = math.sqrt(number.noise**2 + other.noise**2)
    return Series(values, math.hypot(number.grain, other.grain), noise, limit)


def _limit(one: Series | Measured, other: Series | Measured) -> Limit | Missing | None:
    """Return how a quotient is bounded by the limits of both, if it can be."""
    above, below = one.limit, other.limit.flipped if other.limit else None
    if above and below and above.side is not below.side:
        return Missing(f"both reach the end of what was tried; {above.cure} for both")
    return above or below

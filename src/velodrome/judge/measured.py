"""A measured figure that knows how sure it is, so that comparing it with a limit never passes by luck.

    figure < ms(50)     True, False, or InsufficientDataError: «p99 is 49 ms [44, 56], …; 12 more seconds would tell»

Its interval is that of its mean over the blocks of a load, by the method of «Comparing» (docs/method.md); a percentile
is taken of each block, and what is shown is that of all of them, histograms merged.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from velodrome.judge.comparing import NOISE_DF, Comparison, Sample
from velodrome.judge.confidence import student_t
from velodrome.model.bound import Bound, within
from velodrome.model.errors import InsufficientDataError
from velodrome.model.interval import Interval
from velodrome.model.metric import Unit
from velodrome.model.quantity import in_unit

LONGEST = 60
"""Times as long as it was: nobody waits for more."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One figure of a load."""

    name: str
    unit: Unit
    interval: Interval | None
    """None: it was not measured."""
    missing: str = ""
    """Why not, and what to do."""
    more: Callable[[float], str] = lambda _: ""
    """Given a limit within the interval: what would tell on which side of it the figure is."""

    @property
    def value(self) -> float:
        """The estimate, in its unit: milliseconds, microseconds, a share of one, bytes. NaN where there is none."""
        return self.interval.mid if self.interval else math.nan

    def __float__(self) -> float:
        return self.value

    def __lt__(self, limit: Bound | float) -> bool:
        return self._surely_below(limit)

    def __le__(self, limit: Bound | float) -> bool:
        return self._surely_below(limit)

    def __gt__(self, limit: Bound | float) -> bool:
        return not self._surely_below(limit)

    def __ge__(self, limit: Bound | float) -> bool:
        return not self._surely_below(limit)

    def __repr__(self) -> str:
        return f"{self.name} {in_unit(self.interval, self.unit)}"

    def _surely_below(self, limit: Bound | float) -> bool:
        """Return on which side of a limit the figure surely is. Raises InsufficientDataError where that is not sure."""
        bound = within(limit, self.unit, self.name)
        if self.interval is None:
            raise InsufficientDataError(f"{self.name} was not measured: {self.missing}")
        if self.interval.high < bound:
            return True
        if self.interval.low > bound:
            return False
        shown = in_unit(self.interval, self.unit)
        reaches = f"{self.name} is {shown}, which reaches across {in_unit(bound, self.unit)}"
        raise InsufficientDataError(reaches, self.more(bound))


def of_blocks(
    name: str,
    unit: Unit,
    values: Mapping[int, float],
    *,
    noise: float,
    seconds: float,
    whole: float | None = None,
) -> Measured:
    """Return a figure of its value in each block, all above 0.

    `noise` is presumed of the ratio of two equal servers in a block of `seconds`; `whole` is the figure of all blocks
    together, where that is no mean.
    """
    interval = Comparison([Sample(name, values)], noise).alone(name)
    if whole:
        shift = whole / interval.mid
        interval = Interval(interval.low * shift, whole, interval.high * shift)
    half = math.log(interval.high / interval.low) / 2
    blocks = len(values)

    def more(bound: float) -> str:
        distance = abs(math.log(bound / interval.mid)) if bound > 0 else math.inf
        needed = _needed(half, blocks, distance)
        if needed is None:
            return "it is so near to the limit that no load that anybody waits for would tell"
        length = needed * seconds
        return (
            f"{math.ceil(length - blocks * seconds)} more seconds would tell: load for {math.ceil(length)} s"
        )

    return Measured(name, unit, interval, more=more)


def _needed(half: float, blocks: int, distance: float) -> int | None:
    """Return how many blocks would narrow half the interval, in logs, to less than a distance; None: too many."""
    scale = half * math.sqrt(blocks) / _t(blocks)
    for needed in range(blocks + 1, LONGEST * blocks + 1):
        if scale * _t(needed) / math.sqrt(needed) < distance:
            return needed
    return None


def _t(blocks: int) -> float:
    return student_t(NOISE_DF + blocks - 1)

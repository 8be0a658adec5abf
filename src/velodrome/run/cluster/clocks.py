"""How far the clock of another machine is from this one's, by the round trip that took least.

Each latency is taken on one clock. So what is not known of an offset moves only the alignment of agents: when they
begin, and which second of the series a response is in.

A reading bounds the offset: the other clock was read somewhere within the round trip. The bounds hold however unequal
the two ways are. Nothing is averaged, because that would take the ways for equal.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

FASTEST = 500e-6
"""By which share a clock may run too fast or too slow: the kernel corrects no more (adjtimex(2)), and crystals are
within 100 ppm."""
MOST_WINDOWS = 32
"""Of the readings during a load so many are kept, the best of as many equal spans, however long it takes."""


class Clock:
    """The monotonic clock of a machine, which its agent reads and its engine begins by."""

    def now(self) -> int:
        """Return what it shows, nanoseconds."""
        return time.monotonic_ns()

    def for_engine(self, at: int) -> int:
        """Return what the engine's clock shows at a moment of this one: the same clock."""
        return at


@dataclass(frozen=True)
class Reading:
    """A question for the time: nanoseconds of monotonic clocks."""

    sent: int
    """Here."""
    theirs: int
    """There, some time between."""
    received: int
    """Here."""

    @property
    def round_trip_ns(self) -> int:
        """How long it took."""
        return self.received - self.sent

    @property
    def offset(self) -> "Offset":
        """What it says: half of the round trip is the bound, and what a clock may drift in that."""
        middle = (self.sent + self.received) / 2
        return Offset(round(self.theirs - middle), self.round_trip_ns / 2 * (1 + FASTEST), round(middle))


@dataclass(frozen=True)
class Offset:
    """The other clock is `ns` ahead of this one, give or take `uncertainty_ns`, at the moment `at` of this one."""

    ns: int
    uncertainty_ns: float
    at: int

    def uncertainty_at(self, moment: int) -> float:
        """Return how far from it the offset may be at another moment, as clocks drift."""
        return self.uncertainty_ns + abs(moment - self.at) * FASTEST


def best(readings: Iterable[Reading]) -> Reading:
    """Return the reading that took least, whose bounds are the narrowest. Raises ValueError where there is none."""
    return min(readings, key=lambda reading: reading.round_trip_ns)


def best_at(readings: Iterable[Reading], moment: int) -> Offset:
    """Return the offset that says most about a moment: of an old reading that took little, or of a fresh one.

    Raises ValueError where there is none.
    """
    return min((reading.offset for reading in readings), key=lambda reading: reading.uncertainty_at(moment))


@dataclass
class Windows:
    """The best readings of equal spans of a load: narrower bounds than single ones, in a fixed room."""

    span_ns: int = 1_000_000_000
    kept: list[Reading] = field(default_factory=list)

    def add(self, reading: Reading) -> None:
        """Take a reading in; they come in the order of time."""
        if self.kept and self.kept[-1].sent // self.span_ns == reading.sent // self.span_ns:
            self.kept[-1] = best((self.kept[-1], reading))
            return
        self.kept.append(reading)
        while len(self.kept) > MOST_WINDOWS:
            self.span_ns *= 2
            windows: dict[int, Reading] = {}
            for kept in self.kept:
                number = kept.sent // self.span_ns
                windows[number] = best((windows[number], kept)) if number in windows else kept
            self.kept = list(windows.values())


@dataclass(frozen=True)
class Alignment:
    """The clock of one agent: how it stood when a load began, during it, and after it."""

    before: Offset
    """By which it began."""
    during: Sequence[Offset]
    after: Offset
    round_trip_ns: int

    @property
    def drift_ppm(self) -> float | None:
        """By how much the other clock runs faster; None: within what the readings cannot tell."""
        moved, unsure = self.after.ns - self.before.ns, self.drift_uncertainty_ppm
        if unsure is None or abs(moved) <= self.before.uncertainty_ns + self.after.uncertainty_ns:
            return None
        return moved / self._span * 1e6

    @property
    def drift_uncertainty_ppm(self) -> float | None:
        """How far the true drift may be from `drift_ppm`, or from none; None: there was no time to see one."""
        if self._span <= 0:
            return None
        return (self.before.uncertainty_ns + self.after.uncertainty_ns) / self._span * 1e6

    @property
    def _span(self) -> int:
        return self.after.at - self.before.at

    @property
    def uncertainty_ns(self) -> float:
        """How far the agent's timeline may be from this one's at any moment of the load, as it began by `before`.

        Between the readings before and after, a clock is taken to run evenly. A reading during the load that
        contradicts this (a clock that jumps, a machine that slept) widens it by as much as it does.
        """
        moved = abs(self.after.ns - self.before.ns) + self.after.uncertainty_ns
        return max(self.before.uncertainty_ns, moved) + max(map(self._beyond, self.during), default=0.0)

    def _beyond(self, offset: Offset) -> float:
        """Return by how much a reading lies outside of the band from before to after."""
        share = min(1.0, max(0.0, (offset.at - self.before.at) / self._span)) if self._span > 0 else 0.0
        middle = self.before.ns + share * (self.after.ns - self.before.ns)
        width = max(self.before.uncertainty_ns, self.after.uncertainty_ns)
        return max(0.0, abs(offset.ns - middle) - offset.uncertainty_ns - width)

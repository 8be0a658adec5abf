"""How far the clock of another machine is from this one's, by the round trip that took least.

Each latency is taken on one clock. So what is not known of an offset moves only the alignment of agents: when they
begin, and which second of the series a response is counted in.
"""

from collections.abc import Iterable
from dataclasses import dataclass


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
        """What it says: the other clock was read somewhere within the round trip, which bounds the error."""
        middle = (self.sent + self.received) / 2
        return Offset(round(self.theirs - middle), self.round_trip_ns / 2, round(middle))


@dataclass(frozen=True)
class Offset:
    """The other clock is `ns` ahead of this one, give or take `uncertainty_ns`, at the moment `at` of this one."""

    ns: int
    uncertainty_ns: float
    at: int


def best(readings: Iterable[Reading]) -> Reading:
    """Return the reading that took least, whose bounds are the narrowest. Raises ValueError where there is none."""
    return min(readings, key=lambda one: one.round_trip_ns)


@dataclass(frozen=True)
class Alignment:
    """The clock of one agent, from the readings before a load, during it and after it."""

    before: Offset
    after: Offset
    round_trip_ns: int

    @property
    def drift_ppm(self) -> float | None:
        """By how much the other clock runs faster; None: within what the readings cannot tell."""
        span, moved = self.after.at - self.before.at, self.after.ns - self.before.ns
        if span <= 0 or abs(moved) <= self.before.uncertainty_ns + self.after.uncertainty_ns:
            return None
        return moved / span * 1e6

    @property
    def uncertainty_ns(self) -> float:
        """How far the agent's timeline may be from this one's at any moment of the load, as it began by `before`."""
        moved = abs(self.after.ns - self.before.ns) + self.after.uncertainty_ns
        return max(self.before.uncertainty_ns, moved)

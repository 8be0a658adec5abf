"""How much one contestant can do of one service (`track/capacity.py` finds it out)."""

from dataclasses import dataclass
from enum import StrEnum

from velodrome.model.measurement import Measurement
from velodrome.model.scalability import Scalability
from velodrome.model.search import ConnectionsFound, Ending, RateFound


class Bound(StrEnum):
    """What a contestant has no more of."""

    CPU = "cpu"
    """Its CPUs, or the one that its only process can use."""
    SLOTS = "slots"
    """Requests it can serve at once."""
    OTHER = "other"
    """Neither: what it waits on, a lock, the network."""


@dataclass(frozen=True)
class Bottom:
    """What bounds a contestant, as far as its own use tells."""

    bound: Bound
    sentence: str


@dataclass(frozen=True)
class RateCapacity:
    """The highest rate at which a condition holds."""

    conditions: tuple[str, ...]
    found: RateFound
    best: Measurement | None
    """Of the highest rate that held."""
    bottom: Bottom | None
    trials: int
    """Loads that were measured, the first looks included."""
    seconds: float
    """It took."""

    @property
    def ending(self) -> Ending:
        """How the search ended."""
        return self.found.ending


@dataclass(frozen=True)
class Knee:
    """Where throughput of a closed loop stops rising, and the law it follows."""

    found: ConnectionsFound
    law: Scalability | None
    """None: too few numbers of connections could be measured."""
    best: Measurement | None
    bottom: Bottom | None
    trials: int
    seconds: float

    @property
    def ending(self) -> Ending:
        """How the search ended."""
        return self.found.ending

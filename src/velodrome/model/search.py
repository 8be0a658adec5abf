"""What a search for a limit tries and what it comes to (`judge/search/` does it)."""

from dataclasses import dataclass
from enum import StrEnum

from velodrome.model.interval import Interval


class Ending(StrEnum):
    """How a search can end."""

    CONVERGED = "converged"
    SPENT = "not converged"
    """The budget was spent before the interval was as narrow as asked; it is told as it is."""
    NEVER = "never holds"
    """Not even at the lowest that was to be tried."""
    BEYOND = "at least"
    """It holds as far as could be tried; what stopped the trying is told."""
    CANNOT = "cannot tell"


@dataclass(frozen=True)
class Probe:
    """A rate that was tried."""

    rate: float
    held: bool | None
    """None: it cannot be told whether it held."""
    why: str = ""
    """What broke, or why it cannot be told: a sentence without its end."""
    spoilt: str = ""
    """Why the trial says nothing of the server: the generator was the limit."""
    everywhere: bool = False
    """Whether it breaks at any rate for the same reason, so that there is none to look for."""


@dataclass(frozen=True)
class RateFound:
    """What came of a search for the highest rate that holds."""

    ending: Ending
    interval: Interval | None
    """Where the edge is, with 95 %; of `BEYOND` the highest rate that held."""
    because: str
    """Why it did not converge; empty: it did."""
    probes: tuple[Probe, ...]


@dataclass(frozen=True)
class Sample:
    """A closed loop that was run."""

    connections: int
    rps: float
    spoilt: str = ""
    """Why it says nothing of the server: the generator was the limit."""


@dataclass(frozen=True)
class ConnectionsFound:
    """What came of a search for the connections at which throughput stops rising."""

    ending: Ending
    connections: Interval | None
    """Enough of them, with the interval in which 95 % of the most is reached."""
    rps: Interval | None
    """Throughput with so many."""
    because: str
    """Why it did not converge; empty: it did."""
    samples: tuple[Sample, ...]

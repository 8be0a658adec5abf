"""What a Universal Scalability Law fitted to a closed loop says (`judge/search/scalability.py` fits it)."""

from dataclasses import dataclass
from enum import StrEnum

from velodrome.model.interval import Interval


class Peak(StrEnum):
    """What is known of the connections from which on throughput falls."""

    FOUND = "found"
    BEYOND = "beyond what was tried"
    """The law has one, further out than anything that was measured."""
    NONE = "no peak within what was tried"
    """That throughput ever falls cannot be told from noise."""


@dataclass(frozen=True)
class Scalability:
    """X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1)), each with a 95 % interval."""

    rate: Interval
    """λ: answers a second of one connection, from the law."""
    contention: Interval
    """σ: the part of the work that only one can do at a time."""
    coherency: Interval
    """κ: what each pays for each other; above 0 throughput falls in the end."""
    peak: Peak
    peak_connections: Interval | None
    """√((1 − σ) ÷ κ); its upper end is infinite where κ may be 0. None: κ itself is not above 0."""
    peak_rps: Interval | None
    """Throughput there."""
    misfit: float
    """Largest distance of a mean from the law, as part of it."""
    fits: bool
    """Whether the means lie around the law no further than repeats lie around their means (5 %)."""
    points: int
    """Closed loops it was fitted to."""

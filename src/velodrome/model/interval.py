"""A number that is not known exactly."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """An estimate with a bootstrap interval (95 % unless told)."""

    low: float
    mid: float
    high: float

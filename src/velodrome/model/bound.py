"""A number that somebody chose, with its unit, to hold a measured one against: `ms(50)`, `percent(0.1)`."""

from dataclasses import dataclass

from velodrome.model.metric import Unit
from velodrome.model.quantity import in_unit


@dataclass(frozen=True)
class Bound:
    """In the unit that figures of that kind are kept in: milliseconds, microseconds of CPU, a share, bytes."""

    value: float
    unit: Unit

    def __repr__(self) -> str:
        return in_unit(self.value, self.unit)


def ms(value: float) -> Bound:
    """Return milliseconds."""
    return Bound(value, Unit.MILLISECONDS)


def seconds(value: float) -> Bound:
    """Return seconds."""
    return Bound(value * 1000, Unit.MILLISECONDS)


def us(value: float) -> Bound:
    """Return microseconds: of latency, or of CPU for a request."""
    return Bound(value, Unit.MICROSECONDS)


def percent(value: float) -> Bound:
    """Return a share: of requests that failed."""
    return Bound(value / 100, Unit.SHARE)


def per_second(value: float) -> Bound:
    """Return a rate."""
    return Bound(value, Unit.RATE)


def mb(value: float) -> Bound:
    """Return decimal megabytes."""
    return Bound(value * 1e6, Unit.BYTES)


def within(bound: Bound | float, unit: Unit, name: str) -> float:
    """Return a bound in the unit of a figure. Raises TypeError for one of another kind."""
    if isinstance(bound, Bound):
        if bound.unit is unit:
            return bound.value
        if {bound.unit, unit} == {Unit.MILLISECONDS, Unit.MICROSECONDS}:
            return bound.value / 1000 if unit is Unit.MILLISECONDS else bound.value * 1000
    elif unit in {Unit.RATE, Unit.SHARE, Unit.COUNT} and isinstance(bound, int | float):
        return float(bound)
    raise TypeError(f"{name} is in {_WORDS[unit]}: compare it with {_WRITE[unit]}, not with {bound!r}")


_WORDS = {
    Unit.MILLISECONDS: "milliseconds",
    Unit.MICROSECONDS: "microseconds",
    Unit.RATE: "answers a second",
    Unit.SHARE: "shares of the requests",
    Unit.BYTES: "bytes",
}
_WRITE = {
    Unit.MILLISECONDS: "ms(50)",
    Unit.MICROSECONDS: "us(500)",
    Unit.RATE: "per_second(200)",
    Unit.SHARE: "percent(0.1)",
    Unit.BYTES: "mb(100)",
}

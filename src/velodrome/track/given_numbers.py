"""Numbers that callers give as the terms of what is measured: a rate, and how many."""

import math

from velodrome.model.errors import UsageError


def refuse_rate(rate: float | None) -> None:
    """Raise UsageError for what is no rate; None was not given."""
    if rate is not None and not 0 < rate < math.inf:
        raise UsageError(f"rate={rate:g} is not a rate; give requests a second above 0")


def refuse_count(name: str, number: int | None) -> None:
    """Raise UsageError for fewer than one; None was not given."""
    if number is not None and number < 1:
        raise UsageError(f"{name}={number}: at least 1 is needed")

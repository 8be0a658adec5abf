"""Round numbers along an axis, and how Vega is told to write them."""

import math
from collections.abc import Sequence

from velodrome.model import quantity


def ticks_to(most: float) -> list[float]:
    """Return three to five round numbers from 0 to `most`."""
    rough = most / 4
    power = 10 ** math.floor(math.log10(rough)) if rough > 0 else 1
    step = next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= rough)
    return [step * i for i in range(int(most / step) + 1)]


def steps(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10 … between `low` and `high`; only powers of ten where those are many."""
    digits = (1, 2, 5) if math.log10(high / low) < 3 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [digit * 10.0**power for power in powers for digit in digits]
    return [value for value in found if low <= value <= high]


def lookup(values: Sequence[float], texts: dict[float, str] | None = None) -> str:
    """Return the Vega expression that shows each tick as we write numbers."""
    shown = [texts[value] if texts else quantity.short(float(f"{value:.6g}")) for value in values]
    choices = "".join(
        f"abs(datum.value - {v!r}) < {abs(v) * 1e-6 + 1e-9!r} ? '{t}' : "
        for v, t in zip(values, shown, strict=True)
    )
    return f"{choices}''"

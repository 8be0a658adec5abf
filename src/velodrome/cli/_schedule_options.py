"""The options of `velodrome load` that say when requests are due, and the schedule they make.

-R 5000                                 one rate
-R 100..5000 --step 100 --every 5s      steps: 100/s for 5 s, 200/s for 5 s, … 5000/s for 5 s
-R 100..5000 --ramp 60s                 a straight line
-R 500:10s,500..4000:60s,500:10s        pieces of any kind, one after the other
"""

import math
from dataclasses import dataclass, field
from typing import Annotated, Any

from velodrome.cli._declared import Option
from velodrome.model import duration
from velodrome.model.errors import UsageError

Rate = Annotated[
    str | None,
    Option(
        "-R",
        "-q",
        "--rate",
        help="Open loop: requests per second, whatever the server does; 100..5000 with --step or --ramp, or "
        "pieces with their spans: 500:10s,500..4000:60s. auto: search the highest without a --fail-if.",
    ),
]
Step = Annotated[
    float | None, Option(help="-R A..B: go from A to B in steps of so many requests per second.")
]
Every = Annotated[str | None, Option(help="--step: how long each step takes (10s).")]
Ramp = Annotated[str | None, Option(help="-R A..B: go from A to B in a straight line, in this time.")]

PARTS_OF_A_RAMP = 10
"""A ramp is told in so many parts, since a latency over all its rates says nothing about any of them."""
DEFAULT_EVERY = "10s"
MOST_STEPS = 500


@dataclass(frozen=True)
class Pace:
    """What the engine takes as `rate` or `schedule`; neither: a closed loop."""

    rate: float | None = None
    schedule: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether requests fall due whatever the server does."""
        return self.rate is not None or bool(self.schedule)


def pace(rate: str | None, step: float | None, every: str | None, ramp: str | None) -> Pace:
    """Return when requests are due. Raises UsageError for options that do not make a schedule together."""
    between = rate is not None and ".." in rate and ":" not in rate
    for option, value in (("--step", step), ("--ramp", ramp)):
        if value is not None and not between:
            raise UsageError(f"{option} needs two rates to go between: give -R 100..5000")
    if every is not None and step is None:
        raise UsageError("--every says how long a step takes: give --step too")
    if rate is None:
        return Pace()
    if ":" in rate:
        return Pace(schedule=[part for piece in rate.split(",") for part in _piece(piece)])
    if not between:
        return Pace(rate=_number(rate))
    if (step is None) == (ramp is None):
        raise UsageError(
            f"-R {rate} goes from one rate to another: give either --step 100 --every 5s, or --ramp 60s"
        )
    low, high = _ends(rate)
    if ramp is not None:
        return Pace(schedule=_ramp(low, high, _seconds("--ramp", ramp)))
    assert step is not None
    return Pace(schedule=_steps(low, high, step, _seconds("--every", every or DEFAULT_EVERY)))


def _steps(low: float, high: float, step: float, every_s: float) -> list[dict[str, Any]]:
    if not (math.isfinite(step) and step > 0):
        raise UsageError(f"--step: {step:g} is not a step; give requests per second above 0")
    count = math.floor(abs(high - low) / step + 1e-9)
    if count > MOST_STEPS:
        raise UsageError(
            f"--step: {count + 1} steps are too many, each is told by itself; at most {MOST_STEPS}"
        )
    rates = [low + math.copysign(step, high - low) * number for number in range(count + 1)]
    if not math.isclose(rates[-1], high):
        rates.append(high)
    return [{"rate": rate, "duration_s": every_s} for rate in rates]


def _ramp(low: float, high: float, over_s: float) -> list[dict[str, Any]]:
    def at(part: int) -> float:
        return low + (high - low) * part / PARTS_OF_A_RAMP

    part_s = over_s / PARTS_OF_A_RAMP
    return [
        {"rate": at(part), "to_rate": at(part + 1), "duration_s": part_s} for part in range(PARTS_OF_A_RAMP)
    ]


def _piece(text: str) -> list[dict[str, Any]]:
    """Read `500:10s` or `500..4000:60s`."""
    rate, colon, over = text.partition(":")
    if not colon:
        raise UsageError(
            f"-R: '{text}' says not how long: write {text.strip() or 500}:10s, as in the other pieces"
        )
    over_s = _seconds("-R", over)
    if ".." in rate:
        low, high = _ends(rate)
        return _ramp(low, high, over_s)
    return [{"rate": _number(rate), "duration_s": over_s}]


def _ends(text: str) -> tuple[float, float]:
    low, _, high = text.partition("..")
    return _number(low), _number(high)


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise UsageError(
            f"-R: '{text.strip()}' is not a rate; write 5000, 100..5000, or 500:10s,500..4000:60s"
        )
    return found


def _seconds(option: str, text: str) -> float:
    try:
        return duration.seconds(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error

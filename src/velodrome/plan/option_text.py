"""Options that hold more than a word, read at the start of a load: a rate that changes, and text or `@file`.

-R 100..5000 --step 100 --every 5s          steps: 100/s for 5 s, 200/s for 5 s, … 5000/s for 5 s
-R 100..5000 --ramp 60s                     a straight line
-R 500:10s,500..4000:60s,500:10s            pieces of any kind, one after the other
--body '{"a": 1}'      --body @body.json

A load starts within 30 ms, so this imports next to nothing.
"""

from __future__ import annotations

import math
import os

from velodrome.model import amounts
from velodrome.model.errors import UsageError

TYPE_CHECKING = False  # typing's own, without typing: a load must not wait for it
if TYPE_CHECKING:
    from velodrome.model.load import Step

PARTS_OF_A_RAMP = 10
"""A ramp is reported in so many parts, since a latency over all its rates says nothing about any of them."""
DEFAULT_EVERY_S = 10.0
MOST_STEPS = 500


class Names:
    """What the parts are called where they are typed."""

    def __init__(self, rate: str, step: str, every: str, ramp: str, example: str) -> None:
        self.rate, self.step, self.every, self.ramp = rate, step, every, ramp
        self.example = example


OF_OPTIONS = Names("-R", "--step", "--every", "--ramp", "-R 100..5000")
OF_STUDIES = Names("rate", "step", "every", "ramp", 'rate = "100..5000"')


def read_schedule(
    names: Names, rate: str | None, step: float | None, every_s: float | None, ramp_s: float | None
) -> float | tuple[Step, ...] | None:
    """Return one rate, the steps of a schedule, or None where no rate is given.

    Raises ValueError with a sentence for parts that do not make a pace together.
    """
    between = rate is not None and ".." in rate and ":" not in rate
    for option, value in ((names.step, step), (names.ramp, ramp_s)):
        if value is not None and not between:
            raise ValueError(f"{option} needs two rates to go between: give {names.example}")
    if every_s is not None and step is None:
        raise ValueError(f"{names.every} says how long a step takes: give {names.step} too")
    if rate is None:
        return None
    reading = _Reading(names)
    if ":" in rate:
        return tuple(part for piece in rate.split(",") for part in reading.piece(piece))
    if not between:
        return reading.number(rate)
    if (step is None) == (ramp_s is None):
        raise ValueError(
            f"{names.rate} {rate} goes from one rate to another: give either {names.step} 100 {names.every} 5s, or "
            f"{names.ramp} 60s"
        )
    low, high = reading.ends(rate)
    if ramp_s is not None:
        return _ramp(low, high, ramp_s)
    assert step is not None
    return reading.steps(low, high, step, DEFAULT_EVERY_S if every_s is None else every_s)


class _Reading:
    def __init__(self, names: Names) -> None:
        self.names = names

    def steps(self, low: float, high: float, step: float, every_s: float) -> tuple[Step, ...]:
        named = self.names.step
        if not (math.isfinite(step) and step > 0):
            raise ValueError(f"{named}: {step:g} is not a step; give requests per second above 0")
        count = math.floor(abs(high - low) / step + 1e-9)
        if count > MOST_STEPS:
            raise ValueError(
                f"{named}: {count + 1} steps are too many, each is given by itself; at most {MOST_STEPS}"
            )
        rates = [low + math.copysign(step, high - low) * number for number in range(count + 1)]
        if not math.isclose(rates[-1], high):
            rates.append(high)
        return tuple(_step(rate, every_s) for rate in rates)

    def piece(self, text: str) -> tuple[Step, ...]:
        """Read `500:10s` or `500..4000:60s`."""
        rate, colon, over = text.partition(":")
        if not colon:
            raise ValueError(
                f"{self.names.rate}: '{text}' has no duration: write {text.strip() or 500}:10s, as in the others"
            )
        try:
            over_s = amounts.seconds(over)
        except ValueError as error:
            raise ValueError(f"{self.names.rate}: {error}") from error
        return _ramp(*self.ends(rate), over_s) if ".." in rate else (_step(self.number(rate), over_s),)

    def ends(self, text: str) -> tuple[float, float]:
        low, _, high = text.partition("..")
        return self.number(low), self.number(high)

    def number(self, text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            raise ValueError(
                f"{self.names.rate}: '{text.strip()}' is not a rate; write 5000, 100..5000, or 500:10s,500..4000:60s"
            )
        return found


def _step(rate: float, duration_s: float, to_rate: float | None = None) -> Step:
    from velodrome.model.load import Step  # noqa: PLC0415 - a load of one rate does without

    return Step(rate, duration_s, to_rate)


def _ramp(low: float, high: float, over_s: float) -> tuple[Step, ...]:
    def at(part: int) -> float:
        return low + (high - low) * part / PARTS_OF_A_RAMP

    part_s = over_s / PARTS_OF_A_RAMP
    return tuple(_step(at(part), part_s, at(part + 1)) for part in range(PARTS_OF_A_RAMP))


def read_content(option: str, text: str | None, folder: os.PathLike[str] | str = "") -> bytes | None:
    """Return what `text` stands for: itself, or after `@` the contents of a file in `folder`.

    Raises UsageError for a file that cannot be read.
    """
    if text is None:
        return None
    if not text.startswith("@"):
        return text.encode()
    try:
        with open(os.path.join(folder, text[1:]), "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{option}: cannot read {text[1:]}: {error.strerror}") from error


def read_text(option: str, text: str | None) -> str | None:
    """Return the same as text. Raises UsageError also for a file that is none."""
    found = read_content(option, text)
    try:
        return None if found is None else found.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{option}: {(text or '')[1:]} is not text (UTF-8): {error.reason}") from error

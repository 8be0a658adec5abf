"""The options of `velodrome load` that say when requests are due, and the schedule they make.

-R 5000                                 one rate
-R 100..5000 --step 100 --every 5s      steps: 100/s for 5 s, 200/s for 5 s, … 5000/s for 5 s
-R 100..5000 --ramp 60s                 a straight line
-R 500:10s,500..4000:60s,500:10s        pieces of any kind, one after the other
"""

from __future__ import annotations

from velodrome.cli._declared import Annotated, Option
from velodrome.model import duration
from velodrome.model.errors import UsageError

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

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


class Pace:
    """What the engine takes as `rate` or `schedule`; neither: a closed loop."""

    def __init__(self, rate: float | None = None, schedule: Sequence[dict[str, Any]] = ()) -> None:
        self.rate, self.schedule = rate, list(schedule)

    @property
    def is_open(self) -> bool:
        """Whether requests fall due whatever the server does."""
        return self.rate is not None or bool(self.schedule)


def pace(rate: str | None, step: float | None, every: str | None, ramp: str | None) -> Pace:
    """Return when requests are due. Raises UsageError for options that do not make a schedule together."""
    if rate is None and step is None and every is None and ramp is None:
        return Pace()
    # Of a closed loop nothing is to be read.
    from velodrome.plan import schedule_text  # noqa: PLC0415

    try:
        every_s, ramp_s = _seconds("--every", every), _seconds("--ramp", ramp)
        found = schedule_text.read(schedule_text.OF_OPTIONS, rate, step, every_s, ramp_s)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if isinstance(found, tuple):
        from velodrome.run.drivers import load_document  # noqa: PLC0415

        return Pace(schedule=load_document.schedule_document(found))
    return Pace(rate=found)


def _seconds(option: str, text: str | None) -> float | None:
    try:
        return None if text is None else duration.seconds(text)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from error

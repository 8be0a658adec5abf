"""The `velodrome/tune/1` document as its schema spells it; `docs/tune.md` says what each field means.

Only the schema is made of this: `report/tune_json.py` writes the document.
"""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from velodrome.guest.stack import KnobValue
from velodrome.model.capacity_document import Measured
from velodrome.model.interval import Interval
from velodrome.model.limits import Limits
from velodrome.model.recommendation import Growth, Reason
from velodrome.model.tuning import Fate, Forecast, Goal, Looked, TuneEnding

SCHEMA = "velodrome/tune/1"


class Tried(TypedDict):
    """One candidate at the end."""

    label: str
    called: NotRequired[str]
    stack: str
    knobs: dict[str, KnobValue]
    fate: Fate
    why: str
    trials: int
    value: Interval | None
    memory_bytes: int | None
    grew_bytes: float | None
    forecast: Forecast | None


class TuneDocument(TypedDict):
    """What `velodrome tune --json` prints."""

    schema: Literal["velodrome/tune/1"]
    of: str
    goal: Goal
    rate: float | None
    conditions: list[str]
    limits: Limits
    ending: TuneEnding
    because: str
    sentence: str
    recommended: Tried | None
    runner_up: Tried | None
    candidates: list[Tried]
    looks: dict[str, Looked]
    mind: list[Reason]
    growth: Growth | None
    proof: Measured | None
    before: str
    command: str
    files: dict[str, str]
    trials: int
    grid_trials: int
    seconds: float

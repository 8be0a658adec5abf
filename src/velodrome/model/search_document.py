"""The `velodrome/search/1` document as its schema spells it; `docs/load-results.md` says what each field means.

Only the schema is made of this: `report/search_text.py` writes the document.
"""

from typing import Literal

from typing_extensions import TypedDict

from velodrome.model.interval import Interval
from velodrome.model.load_document import LoadDocument
from velodrome.model.search import Ending, Probe, Sample

SCHEMA = "velodrome/search/1"


class RateDocument(TypedDict):
    """What `velodrome load -R auto --json` prints."""

    schema: Literal["velodrome/search/1"]
    sought: Literal["rate"]
    conditions: list[str]
    ending: Ending
    interval: Interval | None
    because: str
    sentence: str
    trials: list[Probe]
    best: LoadDocument | None


class ConnectionsDocument(TypedDict):
    """What `velodrome load -c auto --json` prints."""

    schema: Literal["velodrome/search/1"]
    sought: Literal["connections"]
    conditions: list[str]
    ending: Ending
    connections: Interval | None
    rps: Interval | None
    because: str
    sentence: str
    trials: list[Sample]
    best: LoadDocument | None


SearchDocument = RateDocument | ConnectionsDocument

"""The `velodrome/capacity/1` document as its schema spells it; `docs/capacity.md` says what each field means.

Only the schema is made of this: `report/capacity_json.py` writes the document.
"""

from typing import Literal

from typing_extensions import TypedDict

from velodrome.model.capacity_found import Bottom
from velodrome.model.flag import FlagKind
from velodrome.model.interval import Interval
from velodrome.model.load import Load
from velodrome.model.measurement import Latency
from velodrome.model.scalability import Peak
from velodrome.model.search import Ending, Probe, Sample

SCHEMA = "velodrome/capacity/1"


class Latencies(TypedDict):
    """Milliseconds from when requests were due, and from when they were sent."""

    due: Latency
    sent: Latency


class Noted(TypedDict):
    """What to know of a load before its figures are believed."""

    kind: FlagKind
    sentence: str


class Measured(TypedDict):
    """What one load gave and cost."""

    load: Load
    throughput_rps: float
    latency_ms: Latencies
    errors: int
    requests: int
    cpu_us_per_request: float | None
    server_cpus: float | None
    memory_bytes: int | None
    command: list[str]
    python: str
    packages: dict[str, str]
    flags: list[Noted]


class Ends(TypedDict):
    """An estimate with its 95 % interval; null: an end that is not known."""

    low: float | None
    mid: float | None
    high: float | None


class Law(TypedDict):
    """The Universal Scalability Law of a closed loop."""

    rate: Ends
    contention: Ends
    coherency: Ends
    peak: Peak
    peak_connections: Ends | None
    peak_rps: Ends | None
    misfit: float | None
    fits: bool
    points: int


class RateDocument(TypedDict):
    """What `velodrome capacity --json` prints."""

    schema: Literal["velodrome/capacity/1"]
    sought: Literal["rate"]
    of: str
    ending: Ending
    conditions: list[str]
    interval: Interval | None
    because: str
    sentence: str
    bound: Bottom | None
    law: None
    tried: list[Probe]
    best: Measured | None
    trials: int
    seconds: float


class KneeDocument(TypedDict):
    """What `velodrome capacity --closed --json` prints."""

    schema: Literal["velodrome/capacity/1"]
    sought: Literal["connections"]
    of: str
    ending: Ending
    conditions: list[str]
    connections: Interval | None
    rps: Interval | None
    because: str
    sentence: str
    bound: Bottom | None
    law: Law | None
    tried: list[Sample]
    best: Measured | None
    trials: int
    seconds: float


CapacityDocument = RateDocument | KneeDocument

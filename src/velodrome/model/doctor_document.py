"""The document `velodrome/doctor/1` as its schema spells it, field by field; `docs/doctor.md` says what each means.

Only the schema is made of this: `Examination.document` writes the document.
"""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

Ends = Annotated[list[float], Field(min_length=3, max_length=3)]
"""Low end, estimate and high end of a 95 % interval."""


class Effect(TypedDict, total=False):
    """What a cause costs: requests a second that are lost (`slo_rps`: while the SLO holds), milliseconds and CPU added.

    Each as low end, estimate and high end.
    """

    rps: Ends
    mean_ms: Ends
    p50_ms: Ends
    p99_ms: Ends
    cpu_us: Ends
    slo_rps: Ends


class EvidenceDocument(TypedDict):
    """One thing that speaks for or against a diagnosis; each kind has further keys of its own."""

    kind: str
    said: str


class CureDocument(TypedDict):
    """What to change: a line, a flag or a setting. Empty texts: not known."""

    what: str
    where: str
    before: str
    after: str


class DiagnosisDocument(TypedDict):
    """One fault, and whether it is what is wrong."""

    id: str
    verdict: Literal["cause", "not-a-cause", "cannot-tell"]
    reason: str
    proof: Literal["cure", "dose"] | None
    effect: Effect
    evidence: list[EvidenceDocument]
    cure: CureDocument | None


class UntriedDocument(TypedDict):
    """A fault that was not tried."""

    id: str
    why: str


class SloRateDocument(TypedDict):
    """Whether an SLO holds at some rate; null: undecided."""

    holds: bool | None
    rate: Ends | None
    ending: str
    because: str


class SloDocument(TypedDict):
    """The highest rate at which the SLO holds, as the app is and with all causes cured; null: not searched."""

    conditions: list[str]
    as_it_is: SloRateDocument
    cured: SloRateDocument | None
    why_not_cured: str


class StallDocument(TypedDict):
    """A time in which the event loop gave no sign of life; `stack` is a place in `stacks`, null: none was taken."""

    at_s: float
    seconds: float
    ran_s: float
    blocked_s: float
    stack: int | None


class CollectionDocument(TypedDict):
    """A collection of garbage that took a millisecond or more."""

    at_s: float
    seconds: float
    generation: int


class CountsDocument(TypedDict):
    """Counters since the sample before; null: this system does not tell."""

    at_s: float
    cpus: float
    throttled_s: float | None
    overflows: int | None
    listen_queue: int | None


class TimelineDocument(TypedDict):
    """What happened when during the load with the heartbeat; seconds since the load began to be measured."""

    load: str
    seconds: float
    stacks: list[list[str]]
    stalls: list[StallDocument]
    collections: list[CollectionDocument]
    counts: list[CountsDocument]


class DoctorDocument(TypedDict):
    """What `velodrome doctor --json` prints."""

    schema: Literal["velodrome/doctor/1"]
    title: str
    stack: str
    healthy: bool
    diagnoses: list[DiagnosisDocument]
    not_tried: list[UntriedDocument]
    screens: list[EvidenceDocument]
    unexplained: float | None
    slo: SloDocument | None
    timeline: TimelineDocument | None
    seconds: float

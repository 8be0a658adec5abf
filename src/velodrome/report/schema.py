"""JSON Schemas of what velodrome writes, made from the nouns (`python -m velodrome.report.schema docs`)."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from velodrome.guest.recipe import STEPS
from velodrome.model import load_document
from velodrome.model import results as results_file
from velodrome.model.difference import Diff
from velodrome.model.load_document import LoadDocument
from velodrome.model.search import CapacityDocument, SearchDocument
from velodrome.model.tuning import TuneDocument
from velodrome.model.verdict import Verdict
from velodrome.report import differences
from velodrome.report.json import SCHEMA, to_json

DIALECT = "https://json-schema.org/draft/2020-12/schema"
HEADER = {
    "type": "object",
    "title": "Header",
    "description": "The first line of results.jsonl.",
    "properties": {
        "schema": {"const": results_file.SCHEMA},
        "study": {"type": "object"},
        "seed": {"type": "integer"},
        "machine": {"type": "object"},
        "velodrome": {"type": "string"},
        "started_at": {"type": "string"},
        "sought": {"type": "object"},
    },
    "required": ["schema", "study", "seed", "machine", "velodrome"],
}


# --- velodrome/doctor/1, field by field; docs/doctor.md says what each means. Only the schema is made of this:
# `Examination.document` writes the document.

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
    comes_of: str | None
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


class DisturbanceDocument(TypedDict):
    """What else happened to the machine in so many of the loads, so much that a race would set them aside."""

    kind: str
    loads: int
    of: int
    worst: str


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
    disturbed: list[DisturbanceDocument]
    started: str | None
    seconds: float


# --- The schemas.


def verdict() -> dict[str, Any]:
    """Return the schema of verdict.json."""
    found = TypeAdapter(Verdict).json_schema(mode="serialization")
    found["properties"] = {"schema": {"const": SCHEMA}, **found["properties"]}
    found["required"] = ["schema", *found["required"]]
    return {"$schema": DIALECT, **found}


def results() -> dict[str, Any]:
    """Return the schema of one line of results.jsonl: the header, or one of the kinds of result."""
    definitions: dict[str, Any] = {}
    lines: list[Mapping[str, Any]] = [HEADER]
    for kind, noun in results_file.NOUNS.items():
        found = TypeAdapter[Any](noun).json_schema(mode="serialization")
        definitions |= found.pop("$defs")
        found["properties"] = {"kind": {"const": kind}, **found["properties"]}
        found["required"] = ["kind", *found["required"]]
        lines.append(found)
    for kind, step in STEPS.items():
        # On disk a step is known by name: their fields alone do not distinguish steps.
        found = definitions[step.__name__]
        found["properties"] = {"do": {"const": kind}, **found.get("properties", {})}
        found["required"] = ["do", *found.get("required", ())]
    return {"$schema": DIALECT, "title": "Line of results.jsonl", "oneOf": lines, "$defs": definitions}


def diff() -> dict[str, Any]:
    """Return the schema of what `velodrome diff --format json` writes."""
    found = TypeAdapter(Diff).json_schema(mode="serialization")
    found["properties"] = {"schema": {"const": differences.SCHEMA}, **found["properties"]}
    found["required"] = ["schema", *found["required"]]
    return {"$schema": DIALECT, **found}


def load() -> dict[str, Any]:
    """Return the schema of what `velodrome load --json` prints."""
    return {"$schema": DIALECT, **_load(TypeAdapter(LoadDocument).json_schema(mode="serialization"))}


def _load(found: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a load's document with the name that each document bears."""
    found["properties"] = {"schema": {"const": load_document.SCHEMA}, **found["properties"]}
    found["required"] = ["schema", *found["required"]]
    return found


def search() -> dict[str, Any]:
    """Return the schema of what `velodrome load --json` prints of a search."""
    found = TypeAdapter[Any](SearchDocument).json_schema(mode="serialization")
    _load(found["$defs"]["LoadDocument"])
    return {"$schema": DIALECT, "title": "Search", **found}


def capacity() -> dict[str, Any]:
    """Return the schema of what `velodrome capacity --json` prints."""
    found = TypeAdapter[Any](CapacityDocument).json_schema(mode="serialization")
    return {"$schema": DIALECT, "title": "Capacity", **found}


def tune() -> dict[str, Any]:
    """Return the schema of what `velodrome tune --json` prints."""
    return {"$schema": DIALECT, **TypeAdapter(TuneDocument).json_schema(mode="serialization")}


def doctor() -> dict[str, Any]:
    """Return the schema of what `velodrome doctor --json` prints."""
    return {"$schema": DIALECT, **TypeAdapter(DoctorDocument).json_schema(mode="serialization")}


DOCUMENTS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "results.schema.json": results,
    "verdict.schema.json": verdict,
    "load.schema.json": load,
    "search.schema.json": search,
    "capacity.schema.json": capacity,
    "tune.schema.json": tune,
    "diff.schema.json": diff,
    "doctor.schema.json": doctor,
}
"""What returns each schema, by the name of its file."""


def text(name: str) -> str:
    """Return what stands in the file of a schema."""
    return to_json(DOCUMENTS[name]())


if __name__ == "__main__":
    for name in DOCUMENTS:
        (Path(sys.argv[1]) / name).write_text(text(name), encoding="utf-8")

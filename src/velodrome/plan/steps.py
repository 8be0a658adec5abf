"""Steps of a recipe written in a study file: `{do = "sleep", ms = 50}`."""

import dataclasses
from functools import cache
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from velodrome.guest.recipe import STEPS, Body, Call, Chat, Cpu, Query, ReadBody, Sleep, Step, Stream
from velodrome.model.quantity import grouped, short
from velodrome.plan.findings import Findings, nearest, shown
from velodrome.plan.toml_map import Path

TEN_MINUTES_MS = 600_000
_RANGES: dict[str, tuple[int, int]] = {
    "us": (0, 600_000_000),
    "ms": (0, TEN_MINUTES_MS),
    "latency_ms": (0, TEN_MINUTES_MS),
    "every_ms": (0, TEN_MINUTES_MS),
    "times": (1, 1000),
    "rows": (1, 1_000_000),
    "size": (0, 10**9),
    "chunks": (1, 1_000_000),
    "chunk_bytes": (1, 10**9),
}
_WORDS = {"database": "^sqlite$"}


@cache
def _model(kind: str) -> type[BaseModel]:
    """Return the form of one kind of step, made from its dataclass, so that no step is told twice."""
    step = STEPS[kind]
    hints = get_type_hints(step)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(step):
        low, high = _RANGES.get(field.name, (None, None))
        bounds = Field(ge=low, le=high, pattern=_WORDS.get(field.name), allow_inf_nan=None)
        default = ... if field.default is dataclasses.MISSING else field.default
        fields[field.name] = (Annotated[hints[field.name], bounds], default)
    return create_model(kind, __config__=ConfigDict(extra="forbid", strict=True), **fields)


def read_step(table: object, at: Path, findings: Findings) -> Step | None:
    """Return the step a table tells, or None after recording everything that is wrong with it."""
    if not isinstance(table, dict):
        findings.add(at, f'{shown(table)} is not a step; give a table such as {{do = "sleep", ms = 50}}')
        return None
    kind = table.get("do")
    if kind is None:
        findings.add((*at, "do"), f"is missing; a step names its kind, one of: {', '.join(STEPS)}")
        return None
    if not isinstance(kind, str) or kind not in STEPS:
        findings.add((*at, "do"), f"{shown(kind)} is not a kind of step; {nearest(str(kind), STEPS)}")
        return None
    values = {key: value for key, value in table.items() if key != "do"}
    checked = findings.check(_model(kind), values, at, ["do"])
    if checked is None:
        return None
    step: Step = STEPS[kind](**{name: getattr(checked, name) for name in type(checked).model_fields})
    return step


def told(steps: tuple[Step, ...]) -> str:
    """Return steps as a sentence that completes «for an endpoint that …»."""
    parts = [_told(step) for step in steps]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _told(step: Step) -> str:  # noqa: PLR0911  one return for each kind of step
    match step:
        case Cpu(us):
            return f"computes for {short(us / 1000)} ms"
        case Sleep(ms):
            return f"sleeps {short(ms)} ms"
        case Call(latency_ms, 1):
            return f"waits {short(latency_ms)} ms on a third party"
        case Call(latency_ms, times, parallel):
            return (
                f"waits {short(latency_ms)} ms on a third party {times} times{' at once' if parallel else ''}"
            )
        case Query(rows):
            return f"reads {grouped(rows)} row{'s' if rows > 1 else ''} from a database"
        case ReadBody():
            return "reads an upload"
        case Body(size):
            return f"answers {grouped(size)} bytes"
        case Stream(chunks, chunk_bytes, every_ms):
            return f"streams {grouped(chunks)} × {grouped(chunk_bytes)} bytes, {short(every_ms)} ms apart"
        case Chat(room):
            return f"holds a WebSocket and sends each message {'to all' if room else 'back'}"

"""Steps of a recipe written in a study file: `{do = "sleep", ms = 50}`."""

import dataclasses
from functools import cache
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from velodrome.guest.client import ROWS, clients, databases
from velodrome.guest.recipe import (
    AT_ONCE,
    PLACES,
    STEPS,
    Body,
    Call,
    Chat,
    Cpu,
    Keep,
    Query,
    ReadBody,
    Sleep,
    Step,
    Stream,
    Together,
    Write,
    kind_of,
)
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
    "rows": (1, ROWS),
    "size": (0, 10**9),
    "chunks": (1, 1_000_000),
    "chunk_bytes": (1, 10**9),
}
_WORDS = {"over": "^(http|grpc)$"}


@cache
def _model(kind: str) -> type[BaseModel]:
    """Return the form of one kind of step, made from its dataclass, so that no step is told twice."""
    step = STEPS[kind]
    hints = get_type_hints(step)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(step):
        low, high = _RANGES.get(field.name, (None, None))
        default = ... if field.default is dataclasses.MISSING else field.default
        if field.name == "steps":  # each of them is read by `read_step` in its turn
            fields[field.name] = (Annotated[list[Any], Field(min_length=1, max_length=100)], default)
            continue
        bounds = Field(ge=low, le=high, pattern=_WORDS.get(field.name), allow_inf_nan=None)
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
    told = {name: getattr(checked, name) for name in type(checked).model_fields}
    before = len(findings.problems)
    if kind == "together":
        told["steps"] = tuple(
            _at_once(one, (*at, "steps", n), findings) for n, one in enumerate(told["steps"])
        )
    if kind == "keep" and told["place"] not in PLACES:
        near = nearest(told["place"], PLACES)
        findings.add((*at, "place"), f"'{told['place']}' is not a place to keep a marker in; {near}")
    if "database" in told:
        _known(told["database"], told["driver"], at, findings)
    return STEPS[kind](**told) if len(findings.problems) == before else None


def _at_once(table: object, at: Path, findings: Findings) -> Step | None:
    step = read_step(table, at, findings)
    if step is not None and not isinstance(step, AT_ONCE):
        can = ", ".join(kind for kind, cls in STEPS.items() if cls in AT_ONCE)
        findings.add((*at, "do"), f"'{kind_of(step)}' cannot be done beside others; give one of: {can}")
    return step


def _known(database: str, driver: str, at: Path, findings: Findings) -> None:
    """Check that a database is one there is a client for, and that the client is one of its own."""
    if database not in databases():
        findings.add(
            (*at, "database"), f"no database is called '{database}'; {nearest(database, databases())}"
        )
        return
    own = [client.name for client in clients().values() if client.database == database]
    if driver and driver not in own:
        findings.add((*at, "driver"), f"no client of {database} is called '{driver}'; {nearest(driver, own)}")


def told(steps: tuple[Step, ...]) -> str:
    """Return steps as a sentence that completes «for an endpoint that …»."""
    parts = [_told(step) for step in steps]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _told_query(query: Query) -> str:
    taking = f", which takes {short(query.ms)} ms" if query.ms else ""
    through = f" through {query.driver}" if query.driver else ""
    return f"reads {_rows(query.rows)} from {_called(query.database)}{through}{taking}"


def _rows(rows: int) -> str:
    return f"{grouped(rows)} row{'s' if rows > 1 else ''}"


def _called(database: str) -> str:
    names = {"mariadb": "MariaDB", "postgresql": "PostgreSQL", "redis": "Redis", "mongodb": "MongoDB"}
    return names.get(database, "a database")


def _told_call(call: Call) -> str:
    how_often = "" if call.times == 1 else f" {call.times} times{' at once' if call.parallel else ''}"
    over = " over gRPC" if call.over == "grpc" else ""
    return f"waits {short(call.latency_ms)} ms on a third party{over}{how_often}"


def _told(step: Step) -> str:  # noqa: PLR0911  one return for each kind of step
    match step:
        case Cpu(us):
            return f"computes for {short(us / 1000)} ms"
        case Sleep(ms):
            return f"sleeps {short(ms)} ms"
        case Call():
            return _told_call(step)
        case Query():
            return _told_query(step)
        case Write(rows, database):
            return f"changes {_rows(rows)} in {_called(database)}"
        case Together(steps):
            return f"does at once ({', '.join(_told(one) for one in steps)})"
        case ReadBody():
            return "reads an upload"
        case Keep(place, ms):
            return f"keeps its upload in a {place} place for {short(ms)} ms"
        case Body(size):
            return f"answers {grouped(size)} bytes"
        case Stream(chunks, chunk_bytes, every_ms):
            return f"streams {grouped(chunks)} × {grouped(chunk_bytes)} bytes, {short(every_ms)} ms apart"
        case Chat(room):
            return "holds a WebSocket and sends each message to all" if room else "sends each message back"

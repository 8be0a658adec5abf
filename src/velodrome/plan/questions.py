"""Questions of a study file: the recipe, its loads, its links, its limits.

[[questions]]
recipe = "hello"                                                       or steps: {steps = [{do = "sleep", ms = 50}]}
links = ["loopback", {rtt = "160ms"}]                                  a question for each of them
loads = [
    {rate = [1000, 1200, 1500], connections = 500, duration = "5s"},   three open loops: a list is an axis
    {rate = "100..5000", step = 100, every = "5s", connections = 500}, an open loop whose rate rises
]
"""

import dataclasses
from collections.abc import Iterator
from functools import cache
from itertools import product
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
    Recipe,
    Sleep,
    Step,
    Stream,
    Together,
    Write,
    kind_of,
)
from velodrome.model.load import Closed, Limits, Link, Load, Open, Schedule
from velodrome.model.quantity import short, thousands
from velodrome.model.study import Question
from velodrome.plan import option_text, surroundings
from velodrome.plan.findings import Findings, Known, Place, nearest, show_value
from velodrome.plan.schema import DAY, MOST_RATE, LimitsTable, LoadTable, QuestionTable, RecipeTable

LOOPBACK = "loopback"
"""Stands in a list of links for none."""


def read_questions(
    entries: list[Any], at: Place, known: Known, findings: Findings
) -> list[tuple[Question, Place]]:
    """Return the questions that a list of tables tells, each with its place; what is wrong is in `findings`."""
    found = []
    for index, entry in enumerate(entries):
        here = (*at, index)
        question = _question(entry, here, known, findings)
        if question is not None:
            found += [(variant, here) for variant in question]
    return found


def read_limits(entry: object, at: Place, findings: Findings) -> Limits:
    """Return the limits a table tells; those that are wrong are left out and reported."""
    table = findings.check(LimitsTable, entry, at) or LimitsTable()
    return Limits(table.cpus, table.memory)


def _question(entry: object, at: Place, known: Known, findings: Findings) -> list[Question] | None:
    before = findings.count
    table = findings.check_in_part(QuestionTable, entry, at)
    if table is None:
        return None
    recipe = (
        _recipe(table.recipe, table.name, (*at, "recipe"), known, findings)
        if "recipe" in table.model_fields_set
        else None
    )
    loads = read_loads(table.loads, (*at, "loads"), known, findings)
    findings.once((*at, "loads"), [(load.label, place) for load, place in loads])
    limits = read_limits(table.limits, (*at, "limits"), findings) if table.limits is not None else None
    links = _links(table, at, findings)
    profile = (
        read_load(table.profile, (*at, "profile"), known, findings) if table.profile is not None else None
    )
    if findings.count > before or recipe is None:
        return None
    question = Question(
        table.name or recipe.name,
        recipe,
        tuple(load for load, _ in loads),
        limits=limits,
        contestants=tuple(table.contestants),
        profile=profile,
    )
    return [question.over(link) for link in links]


def _links(table: QuestionTable, at: Place, findings: Findings) -> list[Link | None]:
    if table.link is not None and table.links is not None:
        findings.add((*at, "links"), "stands beside link; give one of the two")
    if table.links is not None:
        return [_link(link, (*at, "links", index), findings) for index, link in enumerate(table.links)]
    return [_link(table.link, (*at, "link"), findings)] if table.link is not None else [None]


def _link(entry: object, at: Place, findings: Findings) -> Link | None:
    if entry == LOOPBACK:
        return None
    try:
        if isinstance(entry, str):
            return surroundings.read_link(entry)
        if isinstance(entry, dict):
            return surroundings.link_of(entry)
        findings.add(
            at, f'{show_value(entry)} is not a link; give one such as {{rtt = "160ms"}}, or "loopback"'
        )
    except ValueError as error:
        findings.add(at, str(error))
    return None


def _recipe(
    entry: object, question: str | None, at: Place, known: Known, findings: Findings
) -> Recipe | None:
    table = findings.check(RecipeTable, {"name": entry} if isinstance(entry, str) else entry, at)
    if table is None:
        return None
    if table.steps is not None:
        return _own_recipe(table, table.steps, question, at, findings)
    if table.name is None:
        findings.add(at, 'has neither name nor steps; give "hello", or {steps = [{do = "body", size = 84}]}')
        return None
    for key in sorted(table.model_fields_set - {"name"}):
        findings.add(
            (*at, key), f"a recipe that ships is taken as it is; leave {key} out, or write steps of your own"
        )
    if table.name not in known.recipes:
        near = nearest(table.name, known.recipes)
        findings.add(at, f"no recipe is called '{table.name}'; {near}. All: velodrome recipes")
    return known.recipes.get(table.name)


def _own_recipe(
    table: RecipeTable, entries: list[Any], question: str | None, at: Place, findings: Findings
) -> Recipe | None:
    name = table.name or question
    if name is None:
        findings.add(
            (*at[:-1], "name"), "is missing; a question whose recipe is written in the file needs a name"
        )
    read = [read_step(entry, (*at, "steps", index), findings) for index, entry in enumerate(entries)]
    steps = tuple(step for step in read if step)
    if len(steps) < len(entries) or name is None:
        return None
    recipe = Recipe(
        name,
        table.about or steps_in_words(steps),
        steps,
        table.method,
        table.upload_bytes,
        table.cookie_bytes,
    )
    for problem in recipe.problems():
        findings.add((*at, "steps"), problem)
    return recipe


AXES = ("connections", "rate", "streams", "idle")
"""Keys of a load that may hold a list of values."""
COUNTED_S = 60.0
"""How long a load of so many requests may take where the file does not say: it ends earlier, when they are done."""
MOST_LOADS = 200
"""Of one table: more is a slip of the pen."""


def read_loads(entries: list[Any], at: Place, known: Known, findings: Findings) -> list[tuple[Load, Place]]:
    """Return the loads that a list of tables tells, each with its place; what is wrong is in `findings`."""
    found = []
    for index, entry in enumerate(entries):
        here = (*at, index)
        for table in _expand(entry, here, findings):
            load = read_load(table, here, known, findings)
            if load is not None:
                found.append((load, here))
    return found


def _expand(entry: object, at: Place, findings: Findings) -> Iterator[object]:
    """Yield a table for each combination of the values of its axes."""
    axes = [
        key for key in AXES if isinstance(entry, dict) and isinstance(entry.get(key), list) and entry[key]
    ]
    if not isinstance(entry, dict) or not axes:
        yield entry
        return
    combinations = list(product(*(entry[key] for key in axes)))
    if len(combinations) > MOST_LOADS:
        findings.add(at, f"comes to {len(combinations)} loads; give at most {MOST_LOADS}")
        return
    for values in combinations:
        yield {**entry, **dict(zip(axes, values, strict=True))}


def read_load(entry: object, at: Place, known: Known, findings: Findings) -> Load | None:
    """Return the load that a table describes, or None after recording all that is wrong with it."""
    table = findings.check(LoadTable, entry, at)
    if table is None:
        return None
    pace = _pace(table, at, findings)
    if not _whole(table, at, known, findings) or pace is None:
        return None
    counted_s = pace.span_s if isinstance(pace, Schedule) and table.requests is None else COUNTED_S
    return Load(
        pace,
        table.duration if table.duration is not None else counted_s,
        table.warmup,
        table.timeout,
        table.drain,
        table.keepalive,
        table.driver,
        table.requests,
        table.threads,
        table.streams,
        table.idle,
    )


def _pace(table: LoadTable, at: Place, findings: Findings) -> Closed | Open | Schedule | None:
    """Return when requests are due, or None after recording why that cannot be."""
    text = table.rate if table.rate is None or isinstance(table.rate, str) else f"{table.rate!r}"
    try:
        found = option_text.read_schedule(option_text.OF_STUDIES, text, table.step, table.every, table.ramp)
    except ValueError as error:
        findings.add((*at, "rate"), str(error).removeprefix("rate: "))
        return None
    connections, arrivals = table.connections or 1000, table.arrivals or "constant"
    if found is None:
        return Closed(table.connections or 0)
    if isinstance(found, float):
        return Open(found, arrivals, connections)
    schedule = Schedule(found, arrivals, connections)
    if any(not 0 <= rate <= MOST_RATE for step in found for rate in (step.rate, step.to_rate or 0.0)):
        findings.add((*at, "rate"), f"goes from {schedule.ends}; give rates from 0 to {MOST_RATE:.0f}")
    elif schedule.top == 0:
        findings.add((*at, "rate"), "is 0 all the time; give a rate above 0 in one of the pieces")
    elif any(not 0 < step.duration_s <= DAY for step in found):
        findings.add((*at, "rate"), "has a piece of no time, or of days; give spans above 0")
    else:
        return schedule
    return None


def _whole(table: LoadTable, at: Place, known: Known, findings: Findings) -> bool:
    """Tell what each key alone cannot know; return whether nothing is wrong."""
    before = findings.count
    if table.rate is None and table.arrivals is not None:
        findings.add((*at, "arrivals"), "belongs to an open loop; add rate, or leave arrivals out")
    elif table.rate is None and table.connections is None:
        findings.add(
            at, "has neither connections nor rate; give connections (closed loop) or rate (open loop)"
        )
    if table.duration is None and table.requests is None and not isinstance(table.rate, str):
        findings.add((*at, "duration"), 'is missing; give one above 0, such as "1.5s", or requests')
    if table.driver not in known.drivers:
        near = nearest(table.driver, known.drivers)
        findings.add((*at, "driver"), f"no driver is called '{table.driver}'; {near}")
    return findings.count == before


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
    """Return the form of one kind of step, made from its dataclass, so that no step is described twice."""
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


def read_step(table: object, at: Place, findings: Findings) -> Step | None:
    """Return the step a table tells, or None after recording everything that is wrong with it."""
    if not isinstance(table, dict):
        findings.add(at, f'{show_value(table)} is not a step; give a table such as {{do = "sleep", ms = 50}}')
        return None
    kind = table.get("do")
    if kind is None:
        findings.add((*at, "do"), f"is missing; a step names its kind, one of: {', '.join(STEPS)}")
        return None
    if not isinstance(kind, str) or kind not in STEPS:
        findings.add((*at, "do"), f"{show_value(kind)} is not a kind of step; {nearest(str(kind), STEPS)}")
        return None
    values = {key: value for key, value in table.items() if key != "do"}
    checked = findings.check(_model(kind), values, at, ["do"])
    if checked is None:
        return None
    steps_in_words = {name: getattr(checked, name) for name in type(checked).model_fields}
    before = len(findings.problems)
    if kind == "together":
        steps_in_words["steps"] = tuple(
            _at_once(step, (*at, "steps", n), findings) for n, step in enumerate(steps_in_words["steps"])
        )
    if kind == "keep" and steps_in_words["place"] not in PLACES:
        near = nearest(steps_in_words["place"], PLACES)
        findings.add(
            (*at, "place"), f"'{steps_in_words['place']}' is not a place to keep a marker in; {near}"
        )
    if "database" in steps_in_words:
        _check_client(steps_in_words["database"], steps_in_words["driver"], at, findings)
    return STEPS[kind](**steps_in_words) if len(findings.problems) == before else None


def _at_once(table: object, at: Place, findings: Findings) -> Step | None:
    step = read_step(table, at, findings)
    if step is not None and not isinstance(step, AT_ONCE):
        can = ", ".join(kind for kind, cls in STEPS.items() if cls in AT_ONCE)
        findings.add((*at, "do"), f"'{kind_of(step)}' cannot be done beside others; give one of: {can}")
    return step


def _check_client(database: str, driver: str, at: Place, findings: Findings) -> None:
    """Check that there is a client for a database, and that the client is one of its own."""
    if database not in databases():
        findings.add(
            (*at, "database"), f"no database is called '{database}'; {nearest(database, databases())}"
        )
        return
    own = [client.name for client in clients().values() if client.database == database]
    if driver and driver not in own:
        findings.add((*at, "driver"), f"no client of {database} is called '{driver}'; {nearest(driver, own)}")


def steps_in_words(steps: tuple[Step, ...]) -> str:
    """Return steps as a sentence that completes «for an endpoint that …»."""
    parts = [_describe(step) for step in steps]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _describe_query(query: Query) -> str:
    taking = f", which takes {short(query.ms)} ms" if query.ms else ""
    through = f" through {query.driver}" if query.driver else ""
    return f"reads {_rows(query.rows)} from {_database_name(query.database)}{through}{taking}"


def _rows(rows: int) -> str:
    return f"{thousands(rows)} row{'s' if rows > 1 else ''}"


def _database_name(database: str) -> str:
    names = {"mariadb": "MariaDB", "postgresql": "PostgreSQL", "redis": "Redis", "mongodb": "MongoDB"}
    return names.get(database, "a database")


def _describe_call(call: Call) -> str:
    how_often = "" if call.times == 1 else f" {call.times} times{' at once' if call.parallel else ''}"
    over = " over gRPC" if call.over == "grpc" else ""
    return f"waits {short(call.latency_ms)} ms on a third party{over}{how_often}"


def _describe(step: Step) -> str:  # noqa: PLR0911  one return for each kind of step
    match step:
        case Cpu(us):
            return f"computes for {short(us / 1000)} ms"
        case Sleep(ms):
            return f"sleeps {short(ms)} ms"
        case Call():
            return _describe_call(step)
        case Query():
            return _describe_query(step)
        case Write(rows, database):
            return f"changes {_rows(rows)} in {_database_name(database)}"
        case Together(steps):
            return f"does at once ({', '.join(_describe(part) for part in steps)})"
        case ReadBody():
            return "reads an upload"
        case Keep(place, ms):
            return f"keeps its upload in a {place} place for {short(ms)} ms"
        case Body(size):
            return f"answers {thousands(size)} bytes"
        case Stream(chunks, chunk_bytes, every_ms):
            return f"streams {thousands(chunks)} × {thousands(chunk_bytes)} bytes, {short(every_ms)} ms apart"
        case Chat(room):
            return "holds a WebSocket and sends each message to all" if room else "sends each message back"

"""Loads of a question, as a study file tells them; a number that is a list is an axis, one load for each value.

{rate = [1000, 1200, 1500], connections = 500, duration = "5s"}      three open loops
{rate = "100..5000", step = 100, every = "5s", connections = 500}    one whose rate rises
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

from velodrome.model.load import Closed, Load, Open, Schedule
from velodrome.plan import option_text
from velodrome.plan.findings import Findings, nearest
from velodrome.plan.known import Known
from velodrome.plan.schema import DAY, MOST_RATE, LoadTable
from velodrome.plan.toml_map import Path

AXES = ("connections", "rate", "streams", "idle")
"""Keys of a load that may hold a list of values."""
COUNTED_S = 60.0
"""How long a load of so many requests may take where the file does not say: it ends earlier, when they are done."""
MOST_LOADS = 200
"""Of one table: more is a slip of the pen."""


def read_loads(entries: list[Any], at: Path, known: Known, findings: Findings) -> list[tuple[Load, Path]]:
    """Return the loads that a list of tables tells, each with its place; what is wrong is in `findings`."""
    found = []
    for index, entry in enumerate(entries):
        here = (*at, index)
        for table in _spread(entry, here, findings):
            load = read_load(table, here, known, findings)
            if load is not None:
                found.append((load, here))
    return found


def _spread(entry: object, at: Path, findings: Findings) -> Iterator[object]:
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


def read_load(entry: object, at: Path, known: Known, findings: Findings) -> Load | None:
    """Return the one load that a table tells, or None after recording all that is wrong with it."""
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


def _pace(table: LoadTable, at: Path, findings: Findings) -> Closed | Open | Schedule | None:
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


def _whole(table: LoadTable, at: Path, known: Known, findings: Findings) -> bool:
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

"""Tables of a verdict that terminal, Markdown and HTML share: a load by several drivers, a load step by step."""

from collections.abc import Sequence
from dataclasses import dataclass

from velodrome.model import quantity
from velodrome.model.verdict import Answer, DriverView, LatencyView, Standing, StepView
from velodrome.report import names
from velodrome.report.typeset import plural, visible

DRIVER_HEADS = (
    "contestant",
    "driver",
    "requests/s",
    "p50 ms",
    "p99 ms",
    "CPU µs/req",
    "generator CPU",
    "latency is",
)
TEXTS = ("contestant", "driver", "latency is")
"""Heads of columns that hold words."""
LEAST_NEEDED = ("generator CPU", "p50 ms", "CPU µs/req", "latency is")
"""Columns that a narrow terminal does without, in this order; a line below also explains latency."""
LEAST_NAME = 12
OWN = "velodrome"


@dataclass(frozen=True)
class DriverRow:
    """One contestant by one driver; texts under `HEADS`."""

    texts: tuple[str, ...]
    label: str
    """Of the contestant."""


@dataclass(frozen=True)
class DriverTable:
    """A load."""

    load: str
    rows: tuple[DriverRow, ...]


def driver_tables(answer: Answer) -> list[DriverTable]:
    """Return a table for each load that another driver than velodrome's own made, with ours beside it.

    A load of so many requests stands beside the same load by time; the row tells the number.
    """
    found: dict[str, list[tuple[Standing, LatencyView, DriverView]]] = {}
    for standing in answer.standings:
        for view in standing.latency:
            if view.by is not None:
                load, _ = names.without_count(names.without_driver(view.load))
                found.setdefault(load, []).append((standing, view, view.by))
    return [
        DriverTable(names.load_label(load), tuple(_row(*pair) for pair in here))
        for load, here in found.items()
        if any(by.name != OWN for _, _, by in here)
    ]


def _row(standing: Standing, view: LatencyView, by: DriverView) -> DriverRow:
    cpu = view.cpu_us_per_request
    _, count = names.without_count(view.load)
    counted = f", {plural(count, 'request')}" if count is not None else ""
    texts = (
        names.of_standing(standing),
        f"{by.name} {by.version}".strip() + counted,
        quantity.number(view.achieved_rps),
        names.milliseconds(view, "p50_ms"),
        names.milliseconds(view, "p99_ms"),
        quantity.number(cpu) if cpu is not None else quantity.MISSING,
        quantity.percent(by.generator_cpus),
        by.basis,
    )
    return DriverRow(tuple(map(visible, texts)), standing.contestant)


def reach(answer: Answer) -> list[str]:
    """Return for each other driver what it looks at, what it does not tell, and what it did not do as requested."""
    drivers: dict[str, list[DriverView]] = {}
    for standing in answer.standings:
        for view in standing.latency:
            if view.by is not None and view.by.name != OWN:
                drivers.setdefault(view.by.name, []).append(view.by)
    return [visible(_reach(name, views)) for name, views in drivers.items()]


def _reach(name: str, views: Sequence[DriverView]) -> str:
    missing = dict.fromkeys(what for view in views for what in view.untold)
    notes = dict.fromkeys(note for view in views for note in view.notes)
    basis = names.join_words(dict.fromkeys(view.basis for view in views))
    text = f"{name}: latency is {basis}; it looks at {views[0].checks}; not known: {', '.join(missing)}."
    return " ".join([text, *notes])


def driver_lines(answer: Answer, width: int) -> list[str]:
    """Return lines for a terminal, each load under a line that ends in a colon."""
    found: list[str] = []
    for table in driver_tables(answer):
        columns = [
            [head, *(row.texts[place] for row in table.rows)] for place, head in enumerate(DRIVER_HEADS)
        ]
        for least in LEAST_NEEDED:
            if _width(columns) > width:
                columns = [column for column in columns if column[0] != least]
        room = max(LEAST_NAME, width - _width(columns[1:]) - 2)
        columns[0] = [name if len(name) <= room else f"{name[: room - 1]}…" for name in columns[0]]
        found += [f"{table.load}, by each driver:", *_align(columns)]
    return found


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) + 2 for column in columns) - 2


def _align(columns: Sequence[Sequence[str]]) -> list[str]:
    sizes = [max(map(len, column)) for column in columns]
    return [
        "  ".join(
            cell.ljust(size) if column[0] in TEXTS else cell.rjust(size)
            for cell, size, column in zip(cells, sizes, columns, strict=True)
        ).rstrip()
        for cells in zip(*columns, strict=True)
    ]


STEP_HEADS = ("contestant", "step", "offered/s", "achieved/s", "p50 ms", "p99 ms", "failed", "")
BEHIND = "fell behind"


@dataclass(frozen=True)
class StepTable:
    """One load of one question; texts under `HEADS`."""

    load: str
    rows: tuple[tuple[str, ...], ...]


def step_tables(answer: Answer) -> list[StepTable]:
    """Return a table for each load of the question whose rate changes."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for standing in answer.standings:
        for view in standing.latency:
            for number, step in enumerate(view.steps):
                name = names.of_standing(standing) if number == 0 else ""
                found.setdefault(view.load, []).append((visible(name), *_texts(step)))
    return [StepTable(names.load_label(load), tuple(rows)) for load, rows in found.items()]


def _texts(step: StepView) -> tuple[str, ...]:
    low, high = (quantity.short(round(rate, 2)) for rate in (step.rate, step.to_rate))
    return (
        f"at {quantity.span(step.at_s)}",
        low if low == high else f"{low}–{high}",
        quantity.number(step.achieved_rps),
        _between(step.p50_ms),
        _between(step.p99_ms),
        quantity.thousands(step.errors),
        "" if step.kept_up else BEHIND,
    )


def _between(bounds: tuple[float, float] | None) -> str:
    if bounds is None:
        return quantity.MISSING
    low, high = map(quantity.milliseconds, bounds)
    return low if low == high else f"{low}–{high}"

"""Published tables beside what was measured here, figure by figure, as rows that every report shows alike."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from velodrome.model.claim import Compared, Here, Line
from velodrome.model.metric import METRICS, unit_of
from velodrome.model.quantity import MISSING, in_unit
from velodrome.report import folding, names
from velodrome.report.typeset import visible

FIGURES = {
    "throughput_rps": "requests/s",
    "answered_rps": "answers/s",
    "span_s": "time in all",
    "mean_service_ms": "mean",
    "stdev_service_ms": "deviation",
    "min_service_ms": "fastest",
    "max_service_ms": "slowest",
    "mean_ms": "mean from due",
    **{f"p{part}_service_ms": f"p{part}" for part in (50, 75, 90, 99)},
    **{f"p{part}_told_ms": f"p{part}" for part in (50, 99)},
    **{f"p{part}_ms": f"p{part} from due" for part in (50, 90, 99)},
}
"""Short names of metrics that publications tell."""
LEAST = 8
"""A column is never made narrower."""
HEAD = 20
"""A longer head is folded rather than that it makes its column wide."""
GAP = 2


@dataclass(frozen=True)
class Section:
    """One published table as texts."""

    title: str
    heads: tuple[str, ...]
    """`system`, `figure`, `published`, then one for each load: `here, ghz`."""
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    """Why some figures are missing here."""


def section(table: Compared) -> Section:
    """Return a table as texts."""
    loads = {tuple(here.load for here in line.here) for line in table.lines}
    heads = [_head(place, table) for place in range(max((len(line.here) for line in table.lines), default=0))]
    rows = tuple(
        (_system(line, len(loads) > 1), _figure(line), _published(line), *_cells(line, len(heads)))
        for line in table.lines
    )
    notes = dict.fromkeys(here.reason for line in table.lines for here in line.here if here.reason)
    return Section(
        visible(table.title), ("system", "figure", "published", *heads), rows, tuple(map(visible, notes))
    )


def _head(place: int, table: Compared) -> str:
    """Return `here, ghz`; where one driver stands twice, the load as well."""
    of_place = [line.here[place] for line in table.lines if len(line.here) > place]
    drivers = {here.driver for here in of_place}
    if len(drivers) > 1:
        return "here"
    beside = [here.driver for here in table.lines[0].here]
    driver = next(iter(drivers))
    if beside.count(driver) > 1:
        return f"here, {names.load_label(of_place[0].load)}"
    return f"here, {driver}" if len(beside) > 1 else "here"


def _system(line: Line, told: bool) -> str:
    question = line.of.partition("/")[0]
    load = f", {names.load_label(line.here[0].load)}" if told and line.here and line.here[0].load else ""
    return visible(f"{line.called}, {question}{load}")


def _figure(line: Line) -> str:
    about = METRICS[line.metric].about if line.metric in METRICS else visible(line.metric)
    return FIGURES.get(line.metric, about)


def _published(line: Line) -> str:
    if isinstance(line.published, str):
        return visible(line.published)
    return in_unit(line.published, unit_of(line.metric))


def _cells(line: Line, count: int) -> list[str]:
    return [_here(line.here[place], line) if place < len(line.here) else "" for place in range(count)]


def _here(here: Here, line: Line) -> str:
    if here.measured is None:
        return MISSING
    return " ".join(filter(None, (here.limit, in_unit(here.measured, unit_of(line.metric)))))


def lines(tables: Sequence[Compared], width: int) -> list[Text]:
    """Return the tables for a terminal, no wider than `width`."""
    found: list[Text] = []
    for one in map(section, tables):
        found += [Text(), *folding.paragraph(f"As published: {one.title}", width, 1, "bold")]
        sizes = _sizes(one, width)
        found += [Text(str(line), style="dim") for line in _folded(one.heads, sizes)]
        said: tuple[str, ...] = ()
        for row in one.rows:
            # The system stands once, in the first of its rows.
            found += _folded((row[0] if row[:1] != said else "", *row[1:]), sizes)
            said = row[:1]
        for note in one.notes:
            found += folding.paragraph(note, width, 1, "dim")
    return found


def _sizes(one: Section, width: int) -> list[int]:
    """Return the widths of columns: what they need; where that is too much, the widest give most."""
    sizes = [max(len(row[at]) for row in one.rows) for at in range(len(one.heads))]
    sizes = [max(size, min(len(head), HEAD)) for size, head in zip(sizes, one.heads, strict=True)]
    room = width - 2 - GAP * (len(sizes) - 1)
    while sum(sizes) > room and max(sizes) > LEAST:
        sizes[sizes.index(max(sizes))] -= 1
    return sizes


def _folded(row: Sequence[str], sizes: Sequence[int]) -> list[Text]:
    return [Text(_row(cells, sizes)) for cells in folding.rows(row, sizes)]


def _row(cells: Sequence[str], sizes: Sequence[int]) -> str:
    words = [f"{cell:<{size}}" for cell, size in zip(cells[:2], sizes[:2], strict=True)]
    numbers = [f"{cell:>{size}}" for cell, size in zip(cells[2:], sizes[2:], strict=True)]
    return " " + (" " * GAP).join([*words, *numbers]).rstrip()

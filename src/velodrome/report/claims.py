"""Claims, experiments and published tables of a study as texts that every report shows alike.

A claim is a row for each of its checks (published, here, judgement, reason); an experiment is a sentence; a published
table stands figure by figure beside what was measured here.
"""

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from velodrome.model.claim import Checked, Compared, Fact, Finding, Here, Judged, Judgement, Line
from velodrome.model.condition import METRICS, unit_of
from velodrome.model.quantity import MISSING, Unit, in_unit, number
from velodrome.report import names, typeset
from velodrome.report.typeset import visible


def finding_sentence(finding: Finding) -> str:
    """Return one finding as a sentence, or why there is none."""
    if finding.failed:
        return visible(f"could not be tried: {finding.failed}")
    return visible(finding.sentence) or facts(finding)


def facts(finding: Finding) -> str:
    """Return the facts of a finding on one line: `mismatches.uvicorn 0, timed_out no`."""
    return ", ".join(f"{visible(name)} {fact(value)}" for name, value in finding.facts.items())


def fact(value: Fact) -> str:
    """Return one fact as people read it."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return visible(value) if isinstance(value, str) else number(value)


def finding_rows(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """Return name and sentence of each finding."""
    return [(visible(finding.experiment.name), finding_sentence(finding)) for finding in findings]


STYLES = {
    Judgement.HOLDS: "bold green",
    Judgement.FAILS: "bold red",
    Judgement.CANNOT_TELL: "bold yellow",
}
SHORT = {Judgement.HOLDS: "holds", Judgement.FAILS: "does not", Judgement.CANNOT_TELL: "cannot tell"}
"""In the column of a check; a claim has its judgement in full."""
INDENT = 5
LEAST_ABOUT = 20


@dataclass(frozen=True)
class Row:
    """A check of a claim."""

    about: str
    published: str
    here: str
    judgement: Judgement
    reason: str = ""
    """Why it does not hold, or is undecided."""


@dataclass(frozen=True)
class Shown:
    """A claim."""

    name: str
    says: str
    judgement: Judgement
    reason: str
    """Where no row tells it."""
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]
    """Contradictions in what was published first, then the other notes."""


def show_claim(judged: Judged) -> Shown:
    """Return a claim as texts."""
    claim = judged.claim
    remarks = (*judged.contradictions, *((claim.remark,) if claim.remark else ()))
    rows = tuple(_row(checked) for checked in judged.checked)
    reason = "" if any(row.reason for row in rows) else judged.reason
    return Shown(
        claim.name,
        visible(claim.says),
        judged.judgement,
        visible(reason),
        rows,
        tuple(map(visible, remarks)),
    )


def _row(checked: Checked) -> Row:
    check = checked.check
    unit = Unit.RATIO if check.over else unit_of(check.figure.metric)
    published = in_unit(check.published, unit)
    if checked.found:
        here = visible(checked.found)
    elif checked.measured is None:
        here = MISSING
    else:
        here = " ".join(filter(None, (checked.limit, in_unit(checked.measured, unit))))
    explains = checked.judgement is not Judgement.HOLDS or check.informs
    beside = ", beside it" if check.informs else ""
    about = f"{visible(check.about) or _about(checked)}{beside}"
    return Row(about, published, here, checked.judgement, visible(checked.reason) if explains else "")


def _about(checked: Checked) -> str:
    """Return what a check compares where the study does not say."""
    figure, over = checked.check.figure, checked.check.over
    what = METRICS[figure.metric].about if figure.metric in METRICS else figure.metric
    if figure.experiment:
        return visible(f"{figure.experiment}: {figure.metric}{f' over {over.metric}' if over else ''}")
    versus = f" over {over.cell}" if over and over.cell != figure.cell else ""
    loads = f" ({figure.load} over {over.load})" if over and not versus and over.load != figure.load else ""
    return visible(f"{what}, {figure.cell}{versus}{loads}")


def bounds(checked: Checked) -> str:
    """Return when a check holds: `at least 1.5×`."""
    check = checked.check
    unit = Unit.RATIO if check.over else unit_of(check.figure.metric)
    if check.equals is not None:
        return fact(check.equals)
    limits = [("at least", check.at_least), ("at most", check.at_most)]
    return ", ".join(f"{word} {in_unit(bound, unit)}" for word, bound in limits if bound is not None)


def summary(claims: Sequence[Judged]) -> str:
    """Return `4 hold, 1 does not hold here, 2 undecided`."""
    counts = Counter(judged.judgement for judged in claims)
    words = {
        Judgement.HOLDS: ("holds", "hold"),
        Judgement.FAILS: ("does not hold here", "do not hold here"),
        Judgement.CANNOT_TELL: ("undecided", "undecided"),
    }
    return ", ".join(f"{counts[kind]} {words[kind][counts[kind] != 1]}" for kind in Judgement if counts[kind])


def lines(claims: Sequence[Judged], width: int) -> list[Text]:
    """Return the table of claims, no wider than `width`."""
    if not claims:
        return []
    every = [show_claim(judged) for judged in claims]
    rows = [row for claim in every for row in claim.rows]
    published = max([len("published"), *(len(row.published) for row in rows)])
    verdict = max(map(len, SHORT.values()))
    here = max([len("here"), *(len(row.here) for row in rows)])
    here = min(here, width - INDENT - published - verdict - 3 * 2 - LEAST_ABOUT)
    about = width - 1 - INDENT - published - here - verdict - 3 * 2
    sizes = (about, published, here, verdict)
    head = ("Claims", "published", "here", "judgement")
    found = [Text(f" {summary(claims)}", style="bold"), Text()]
    found.append(Text(" " * INDENT + _columns(head, sizes), style="dim"))
    for claim in every:
        found += _claim(claim, width)
        for row in claim.rows:
            found += [*_check(row, sizes), *typeset.paragraph(row.reason, width, INDENT + 2, "dim")]
        for text in (claim.reason if claim.judgement is not Judgement.HOLDS else "", *claim.remarks):
            found += typeset.paragraph(text, width, INDENT, "dim")
    return found


def _claim(claim: Shown, width: int) -> list[Text]:
    """Return name, conclusion and judgement; the judgement stands at the right, or below where there is no room."""
    parts = textwrap.wrap(claim.says, width - INDENT - 1) or [""]
    found = [Text(f" {claim.name:<{INDENT - 2}} ") + Text(parts[0], style="bold")]
    found += [Text(" " * INDENT + part, style="bold") for part in parts[1:]]
    verdict = Text(claim.judgement.value, style=STYLES[claim.judgement])
    room = width - 1 - len(found[-1])
    if room >= len(verdict) + 2:
        found[-1] = found[-1] + Text(" " * (room - len(verdict))) + verdict
        return found
    return [*found, Text(" " * (width - 1 - len(verdict))) + verdict]


def _check(row: Row, sizes: Sequence[int]) -> list[Text]:
    cells = (row.about, row.published, row.here, SHORT[row.judgement])
    return [Text(" " * INDENT + _columns(line, sizes)) for line in typeset.fold(cells, sizes)]


def _columns(cells: Sequence[str], sizes: Sequence[int]) -> str:
    about, published, here, verdict = cells
    a, b, c, d = sizes
    return f"{about:<{a}}  {published:>{b}}  {here:>{c}}  {verdict:<{d}}".rstrip()


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
class PublishedTable:
    """One published table as texts."""

    title: str
    heads: tuple[str, ...]
    """`system`, `figure`, `published`, then one for each load: `here, ghz`."""
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    """Why some figures are missing here."""


def published_table(table: Compared) -> PublishedTable:
    """Return a table as texts."""
    loads = {tuple(here.load for here in line.here) for line in table.lines}
    heads = [_head(place, table) for place in range(max((len(line.here) for line in table.lines), default=0))]
    rows = tuple(
        (_system(line, len(loads) > 1), _figure(line), _published(line), *_cells(line, len(heads)))
        for line in table.lines
    )
    notes = dict.fromkeys(here.reason for line in table.lines for here in line.here if here.reason)
    return PublishedTable(
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


def _system(line: Line, with_load: bool) -> str:
    question = line.of.partition("/")[0]
    load = f", {names.load_label(line.here[0].load)}" if with_load and line.here and line.here[0].load else ""
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


def published_lines(tables: Sequence[Compared], width: int) -> list[Text]:
    """Return the tables for a terminal, no wider than `width`."""
    found: list[Text] = []
    for published in map(published_table, tables):
        found += [Text(), *typeset.paragraph(f"As published: {published.title}", width, 1, "bold")]
        sizes = _sizes(published, width)
        found += [Text(str(line), style="dim") for line in _fold_row(published.heads, sizes)]
        printed: tuple[str, ...] = ()
        for row in published.rows:
            # The system stands once, in the first of its rows.
            found += _fold_row((row[0] if row[:1] != printed else "", *row[1:]), sizes)
            printed = row[:1]
        for note in published.notes:
            found += typeset.paragraph(note, width, 1, "dim")
    return found


def _sizes(table: PublishedTable, width: int) -> list[int]:
    """Return the widths of columns: what they need; where that is too much, the widest give most."""
    sizes = [max(len(row[at]) for row in table.rows) for at in range(len(table.heads))]
    sizes = [max(size, min(len(head), HEAD)) for size, head in zip(sizes, table.heads, strict=True)]
    room = width - 2 - GAP * (len(sizes) - 1)
    while sum(sizes) > room and max(sizes) > LEAST:
        sizes[sizes.index(max(sizes))] -= 1
    return sizes


def _fold_row(row: Sequence[str], sizes: Sequence[int]) -> list[Text]:
    return [Text(_row_published(cells, sizes)) for cells in typeset.fold(row, sizes)]


def _row_published(cells: Sequence[str], sizes: Sequence[int]) -> str:
    words = [f"{cell:<{size}}" for cell, size in zip(cells[:2], sizes[:2], strict=True)]
    numbers = [f"{cell:>{size}}" for cell, size in zip(cells[2:], sizes[2:], strict=True)]
    return " " + (" " * GAP).join([*words, *numbers]).rstrip()

"""Claims judged again, as rows that every report shows alike: published, here, judgement, reason."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from velodrome.model.claim import Checked, Judged, Judgement
from velodrome.model.metric import METRICS, Unit, unit_of
from velodrome.model.quantity import MISSING, in_unit
from velodrome.report import typeset
from velodrome.report.findings import fact
from velodrome.report.typeset import visible

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
    """One check of a claim."""

    about: str
    published: str
    here: str
    judgement: Judgement
    reason: str = ""
    """Why it does not hold, or cannot be told."""


@dataclass(frozen=True)
class Told:
    """One claim."""

    name: str
    says: str
    judgement: Judgement
    reason: str
    """Where no row tells it."""
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]
    """Contradictions in what was published first, then what else must be said."""


def told(judged: Judged) -> Told:
    """Return a claim as texts."""
    claim = judged.claim
    remarks = (*judged.contradictions, *((claim.remark,) if claim.remark else ()))
    rows = tuple(_row(one) for one in judged.checked)
    reason = "" if any(row.reason for row in rows) else judged.reason
    return Told(
        claim.name,
        visible(claim.says),
        judged.judgement,
        visible(reason),
        rows,
        tuple(map(visible, remarks)),
    )


def _row(one: Checked) -> Row:
    check = one.check
    unit = Unit.RATIO if check.over else unit_of(check.figure.metric)
    published = in_unit(check.published, unit)
    if one.found:
        here = visible(one.found)
    elif one.measured is None:
        here = MISSING
    else:
        here = " ".join(filter(None, (one.limit, in_unit(one.measured, unit))))
    reason = "" if one.judgement is Judgement.HOLDS else visible(one.reason)
    return Row(visible(check.about) or _about(one), published, here, one.judgement, reason)


def _about(one: Checked) -> str:
    """Return what a check compares where the study does not say."""
    figure, over = one.check.figure, one.check.over
    what = METRICS[figure.metric].about if figure.metric in METRICS else figure.metric
    if figure.experiment:
        return visible(f"{figure.experiment}: {figure.metric}{f' over {over.metric}' if over else ''}")
    versus = f" over {over.cell}" if over and over.cell != figure.cell else ""
    loads = f" ({figure.load} over {over.load})" if over and not versus and over.load != figure.load else ""
    return visible(f"{what}, {figure.cell}{versus}{loads}")


def bounds(one: Checked) -> str:
    """Return when a check holds: `at least 1.5×`."""
    check = one.check
    unit = Unit.RATIO if check.over else unit_of(check.figure.metric)
    if check.equals is not None:
        return fact(check.equals)
    said = [("at least", check.at_least), ("at most", check.at_most)]
    return ", ".join(f"{word} {in_unit(bound, unit)}" for word, bound in said if bound is not None)


def summary(claims: Sequence[Judged]) -> str:
    """Return `4 hold, 1 does not hold here, 2 cannot be told`."""
    counts = Counter(one.judgement for one in claims)
    words = {
        Judgement.HOLDS: ("holds", "hold"),
        Judgement.FAILS: ("does not hold here", "do not hold here"),
        Judgement.CANNOT_TELL: ("cannot be told", "cannot be told"),
    }
    return ", ".join(f"{counts[kind]} {words[kind][counts[kind] != 1]}" for kind in Judgement if counts[kind])


def lines(claims: Sequence[Judged], width: int) -> list[Text]:
    """Return the table of claims, no wider than `width`."""
    if not claims:
        return []
    every = [told(one) for one in claims]
    rows = [row for one in every for row in one.rows]
    published = max([len("published"), *(len(row.published) for row in rows)])
    verdict = max(map(len, SHORT.values()))
    here = max([len("here"), *(len(row.here) for row in rows)])
    here = min(here, width - INDENT - published - verdict - 3 * 2 - LEAST_ABOUT)
    about = width - 1 - INDENT - published - here - verdict - 3 * 2
    sizes = (about, published, here, verdict)
    head = ("Claims", "published", "here", "judgement")
    found = [Text(f" {summary(claims)}", style="bold"), Text()]
    found.append(Text(" " * INDENT + _columns(head, sizes), style="dim"))
    for one in every:
        found += _claim(one, width)
        for row in one.rows:
            found += [*_check(row, sizes), *typeset.paragraph(row.reason, width, INDENT + 2, "dim")]
        for text in (one.reason if one.judgement is not Judgement.HOLDS else "", *one.remarks):
            found += typeset.paragraph(text, width, INDENT, "dim")
    return found


def _claim(one: Told, width: int) -> list[Text]:
    """Return name, conclusion and judgement; the judgement stands at the right, or below where there is no room."""
    parts = textwrap.wrap(one.says, width - INDENT - 1) or [""]
    found = [Text(f" {one.name:<{INDENT - 2}} ") + Text(parts[0], style="bold")]
    found += [Text(" " * INDENT + part, style="bold") for part in parts[1:]]
    said = Text(one.judgement.value, style=STYLES[one.judgement])
    room = width - 1 - len(found[-1])
    if room >= len(said) + 2:
        found[-1] = found[-1] + Text(" " * (room - len(said))) + said
        return found
    return [*found, Text(" " * (width - 1 - len(said))) + said]


def _check(row: Row, sizes: Sequence[int]) -> list[Text]:
    cells = (row.about, row.published, row.here, SHORT[row.judgement])
    return [Text(" " * INDENT + _columns(line, sizes)) for line in typeset.folded(cells, sizes)]


def _columns(cells: Sequence[str], sizes: Sequence[int]) -> str:
    about, published, here, verdict = cells
    a, b, c, d = sizes
    return f"{about:<{a}}  {published:>{b}}  {here:>{c}}  {verdict:<{d}}".rstrip()

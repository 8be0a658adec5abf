"""A diff in a terminal or a pipe: the figures, what must be said of them, and last the answer, where eyes are."""

import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from velodrome.model.difference import Change, Diff
from velodrome.report.diff_rows import HEADS, SIGNS, Row, broken, gate, headline, sections, side
from velodrome.report.typeset import paragraph, plural, visible

STYLES = {
    Change.REGRESSION: "bold red",
    Change.IMPROVEMENT: "bold green",
    Change.SAME: "",
    Change.INSUFFICIENT: "yellow",
}
SET_ASIDE_SHOWN = 6
_GAP = "  "


def lines(diff: Diff, width: int) -> list[Text]:
    """Return the whole report for a terminal of `width` columns."""
    found = [
        Text(f" before  {side(diff.before.name, diff.before.told)}"),
        Text(f" after   {side(diff.after.name, diff.after.told)}"),
        Text(" interleaved block by block" if diff.paired else " two runs, not interleaved", style="dim"),
    ]
    made, reasons = sections(diff)
    for section in made:
        found += [Text(), *_paragraph(section.title, width, "bold"), *_table(section.rows, width)]
    found.append(Text())
    for number, reason in enumerate(reasons, 1):
        found += paragraph(f"[{number}] {reason}", width, 1)
    for note in diff.notes:
        found += paragraph(visible(note), width, 1, "dim")
    found += _set_aside(diff, width)
    for one in diff.gates:
        style = {True: "", False: "bold red", None: "yellow"}[one.held]
        found += paragraph(f"threshold {gate(one)}", width, 1, style)
    if broken(diff):
        found.append(Text())
    opening = Text(f" {SIGNS[diff.change]} {headline(diff)}", style=STYLES[diff.change] or "bold")
    return [*found, opening, *paragraph(visible(diff.sentence), width, 3)]


def show(diff: Diff, out: Console) -> None:
    """Write it."""
    for line in lines(diff, out.width):
        out.print(line, soft_wrap=True)


def _paragraph(text: str, width: int, style: str) -> list[Text]:
    return paragraph(text, width, 1, style)


def _table(rows: Sequence[Row], width: int) -> list[Text]:
    """Return rows under their heads; the answer is folded under itself where the terminal is narrow."""
    cells = [HEADS, *(row.texts for row in rows)]
    sizes = [max(len(row[column]) for row in cells) for column in range(4)]
    left = 4 + sum(sizes) + len(_GAP) * 4
    found = []
    for number, texts in enumerate(cells):
        shown = [f"{texts[0]:<{sizes[0]}}"] + [f"{texts[column]:>{sizes[column]}}" for column in (1, 2)]
        shown.append(f"{texts[3]:<{sizes[3]}}")
        start = "   " + _GAP.join(shown)
        if number == 0:
            found.append(Text(start.rstrip(), style="dim"))
            continue
        change = rows[number - 1].difference.change
        room = width - left - 1
        answer = f"{SIGNS[change]} {texts[4]}"
        folded = textwrap.wrap(answer, room) if room >= 16 else [""]
        first = Text(start + _GAP) + Text(folded[0], style=STYLES[change])
        found.append(first)
        found += [
            Text(" " * (len(start) + len(_GAP) + 2) + more, style=STYLES[change]) for more in folded[1:]
        ]
        if room < 16:
            found.append(Text(f"     {answer}", style=STYLES[change]))
    return found


def _set_aside(diff: Diff, width: int) -> list[Text]:
    if not diff.set_aside:
        return []
    shown = diff.set_aside[:SET_ASIDE_SHOWN]
    found = [Text(), Text(f" ⚑ {plural(len(diff.set_aside), 'reason')} why measurements were set aside:")]
    for told in shown:
        found += paragraph(visible(told), width)
    if len(diff.set_aside) > len(shown):
        found.append(Text(f"   and {len(diff.set_aside) - len(shown)} more", style="dim"))
    return [*found, Text()]

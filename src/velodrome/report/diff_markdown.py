"""A diff as a comment on a pull request: answer first, what changed, all figures folded away below."""

from collections.abc import Sequence

from velodrome.model.difference import Change, Diff
from velodrome.report.diff_rows import SIGNS, Row, broken, gate, headline, sections, side
from velodrome.report.typeset import markdown_escaped

HEAD = ("| figure | before | after | difference [95 %] | |", "|:--|--:|--:|--:|:--|")


def text(diff: Diff) -> str:
    """Return the comment."""
    made, reasons = sections(diff)
    before, after = side(diff.before.name, diff.before.told), side(diff.after.name, diff.after.told)
    parts = [f"### {SIGNS[diff.change]} {headline(diff)}", "", markdown_escaped(diff.sentence), ""]
    parts += [f"{markdown_escaped(before)} → {markdown_escaped(after)}, {_how(diff)}.", ""]
    gates = broken(diff)
    if gates:
        parts += [*(f"- **{markdown_escaped(gate(one))}**" for one in gates), ""]
    elif diff.gates:
        parts += [f"All {len(diff.gates)} thresholds are kept.", ""]
    for section in made:
        moved = [
            row for row in section.rows if row.difference.change in {Change.REGRESSION, Change.IMPROVEMENT}
        ]
        if moved:
            parts += [f"**{markdown_escaped(section.title)}**", "", *_table(moved), ""]
    parts += ["<details><summary>All figures</summary>", ""]
    for section in made:
        parts += [f"**{markdown_escaped(section.title)}**", "", *_table(section.rows), ""]
    parts += [
        *(f"\\[{number}\\] {markdown_escaped(reason)}  " for number, reason in enumerate(reasons, 1)),
        "",
    ]
    parts += [*(f"- {markdown_escaped(note)}" for note in diff.notes), "", "</details>"]
    if diff.set_aside:
        told = [f"- {markdown_escaped(one)}" for one in diff.set_aside]
        parts += ["", "<details><summary>Set aside</summary>", "", *told, "", "</details>"]
    if diff.environment:
        facts = [
            f"- {markdown_escaped(name)}: {markdown_escaped(fact)}" for name, fact in diff.environment.items()
        ]
        parts += ["", "<details><summary>Where</summary>", "", *facts, "", "</details>"]
    return "\n".join(parts) + "\n"


def _how(diff: Diff) -> str:
    return (
        "interleaved block by block on one machine" if diff.paired else "two runs that were not interleaved"
    )


def _table(rows: Sequence[Row]) -> list[str]:
    found = list(HEAD)
    for row in rows:
        metric, before, after, moved, said = map(markdown_escaped, row.texts)
        sign = SIGNS[row.difference.change]
        strong = "**" if row.difference.change is Change.REGRESSION else ""
        found.append(f"| {metric} | {before} | {after} | {moved} | {strong}{sign} {said}{strong} |")
    return found

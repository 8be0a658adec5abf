"""A diff in each of its formats: terminal, Markdown (a comment on a pull request), JSON, JUnit.

All of them show the same rows (`sections`). In the terminal the answer stands last, where the reader's eyes are; in
Markdown it stands first. In JUnit each figure is a case: a regression is a failure, missing data a skipped case. A
threshold that cannot be decided is an error, because somebody requested it and it did not pass.

JSON: schema `velodrome/diff/1`, docs/diff.schema.json.
"""

import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console
from rich.text import Text

from velodrome.model import quantity
from velodrome.model.condition import DIFF_METRICS
from velodrome.model.difference import Change, Diff, Difference, Gate
from velodrome.model.quantity import Unit
from velodrome.report import diagnoses, junit, names
from velodrome.report.json import to_json
from velodrome.report.junit import Case, Outcome, Suite
from velodrome.report.typeset import markdown_escaped, paragraph, plural, visible

HEADS = ("", "before", "after", "difference [95 %]", "")
ANSWERS = {
    Change.REGRESSION: "Regression",
    Change.IMPROVEMENT: "Improvement",
    Change.SAME: "No difference",
    Change.INSUFFICIENT: "Insufficient data",
}
SIGNS = {
    Change.REGRESSION: "✗",
    Change.IMPROVEMENT: "✓",
    Change.SAME: "=",
    Change.INSUFFICIENT: "?",
}
"""Beside the word, never instead of it."""


@dataclass(frozen=True)
class Row:
    """One figure: its name, the two values, the difference with its interval, and the answer."""

    difference: Difference
    texts: tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Section:
    """The figures of one cell under one load."""

    question: str
    contestant: str
    title: str
    rows: tuple[Row, ...]


def sections(diff: Diff) -> tuple[list[Section], list[str]]:
    """Return all figures by cell and load, and the reasons that the rows refer to by number."""
    reasons: list[str] = []
    found: dict[tuple[str, str, str], list[Row]] = {}
    for difference in diff.differences:
        found.setdefault((difference.question, difference.contestant, difference.load), []).append(
            _row(difference, reasons)
        )
    labels: dict[str, set[str]] = {}
    for difference in diff.differences:
        labels.setdefault(difference.called, set()).add(difference.contestant)
    made = [
        Section(question, contestant, _title(rows[0].difference, labels), tuple(rows))
        for (question, contestant, _), rows in found.items()
    ]
    return made, reasons


def _title(difference: Difference, labels: Mapping[str, Collection[str]]) -> str:
    """Return what a section is of; a contestant that is called as another is named by its label too."""
    label = f" ({difference.contestant})" if len(labels[difference.called]) > 1 else ""
    return visible(f"{difference.question}: {difference.called}{label}, {names.load_label(difference.load)}")


def _row(difference: Difference, reasons: list[str]) -> Row:
    outcome = answer(difference)
    if difference.change is Change.INSUFFICIENT and difference.more_blocks is None and difference.reason:
        reason = visible(difference.reason)
        if reason not in reasons:
            reasons.append(reason)
        outcome = f"{outcome} [{reasons.index(reason) + 1}]"
    return Row(
        difference,
        (
            difference.metric,
            value(difference.before, difference.metric),
            value(difference.after, difference.metric),
            show_change(difference),
            outcome,
        ),
    )


def answer(difference: Difference) -> str:
    """Return `regression`, `no difference beyond 5 %`, `insufficient data: 7 more blocks needed`."""
    match difference.change:
        case Change.SAME:
            return f"no difference beyond {margin(difference)}"
        case Change.INSUFFICIENT if difference.more_blocks is not None:
            return f"insufficient data: {plural(difference.more_blocks, 'more block')} needed"
        case _:
            return difference.change.value


def margin(difference: Difference) -> str:
    """Return from where on a difference of it counts."""
    return quantity.percent(difference.margin) + (" of the requests" if difference.metric == "errors" else "")


def value(figure: float | None, metric: str) -> str:
    """Return a figure with its unit."""
    if figure is None:
        return quantity.MISSING
    match DIFF_METRICS[metric].unit:
        case Unit.RATE:
            return quantity.rate(figure)
        case Unit.MILLISECONDS:
            return f"{quantity.milliseconds(figure)} ms"
        case Unit.MICROSECONDS:
            return f"{quantity.number(figure)} µs"
        case Unit.BYTES:
            return f"{quantity.number(figure / 1e6)} MB"
        case _:
            return quantity.percent(figure)


def show_change(difference: Difference) -> str:
    """Return by how much after differs from before, with its interval: `+6 % [+2, +10]`."""
    if difference.interval is None:
        return quantity.MISSING
    shift, unit = (0.0, "points") if difference.metric == "errors" else (1.0, "%")
    low, mid, high = (
        (end - shift) * 100
        for end in (difference.interval.low, difference.interval.mid, difference.interval.high)
    )
    if high > 1000 > mid:
        return f"{quantity.with_sign(mid)} {unit} [{quantity.with_sign(low)}, over +1 000]"
    places = min(2, quantity.places_for((high - low) / 2, mid or 1.0)) if high > low else 0
    ends = [quantity.with_sign(end, places) for end in (low, mid, high)]
    return f"{ends[1]} {unit} [{ends[0]}, {ends[2]}]"


def gate_sentence(gate: Gate) -> str:
    """Return what became of a threshold in a sentence."""
    where = f"{gate.difference.called}, {names.load_label(gate.difference.load)} ({gate.difference.question})"
    text = f"{gate.threshold.text}: {_verdict(gate)}: {show_change(gate.difference)} for {where}"
    if gate.held is not None or not (gate.more_blocks or gate.reason):
        return visible(f"{text}.")
    needed = (
        f"{plural(gate.more_blocks, 'more block')} needed" if gate.more_blocks else gate.reason.rstrip(".")
    )
    return visible(f"{text}; {needed}.")


def _verdict(gate: Gate) -> str:
    return {True: "kept", False: "broken", None: "insufficient data"}[gate.held]


def broken_gates(diff: Diff) -> Sequence[Gate]:
    """Return the thresholds that do not hold, or that are undecided, the broken ones first."""
    return sorted((gate for gate in diff.gates if not gate.held), key=lambda gate: gate.held is None)


def headline(diff: Diff) -> str:
    """Return the answer in a few words: `Regression`."""
    return ANSWERS[diff.change]


def side(name: str, description: str) -> str:
    """Return what one side is."""
    return visible(f"{name} ({description})" if description else name)


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
    found += diagnoses.texts(diff.suspects, width)
    for gate in diff.gates:
        style = {True: "", False: "bold red", None: "yellow"}[gate.held]
        found += paragraph(f"threshold {gate_sentence(gate)}", width, 1, style)
    if broken_gates(diff):
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
    for sentence in shown:
        found += paragraph(visible(sentence), width)
    if len(diff.set_aside) > len(shown):
        found.append(Text(f"   and {len(diff.set_aside) - len(shown)} more", style="dim"))
    return [*found, Text()]


MARKDOWN_HEAD = ("| figure | before | after | difference [95 %] | |", "|:--|--:|--:|--:|:--|")


def markdown_text(diff: Diff) -> str:
    """Return the comment."""
    made, reasons = sections(diff)
    before, after = side(diff.before.name, diff.before.told), side(diff.after.name, diff.after.told)
    parts = [f"### {SIGNS[diff.change]} {headline(diff)}", "", markdown_escaped(diff.sentence), ""]
    parts += [f"{markdown_escaped(before)} → {markdown_escaped(after)}, {_how(diff)}.", ""]
    gates = broken_gates(diff)
    if gates:
        parts += [*(f"- **{markdown_escaped(gate_sentence(gate))}**" for gate in gates), ""]
    elif diff.gates:
        parts += [f"All {len(diff.gates)} thresholds are kept.", ""]
    for section in made:
        moved = [
            row for row in section.rows if row.difference.change in {Change.REGRESSION, Change.IMPROVEMENT}
        ]
        if moved:
            parts += [f"**{markdown_escaped(section.title)}**", "", *_table_diff_markdown(moved), ""]
    parts += ["<details><summary>All figures</summary>", ""]
    for section in made:
        parts += [f"**{markdown_escaped(section.title)}**", "", *_table_diff_markdown(section.rows), ""]
    parts += [
        *(f"\\[{number}\\] {markdown_escaped(reason)}  " for number, reason in enumerate(reasons, 1)),
        "",
    ]
    parts += [*(f"- {markdown_escaped(note)}" for note in diff.notes), "", "</details>"]
    for suspect, also in diagnoses.group_suspects(diff.suspects):
        command = f"`{visible(suspect.prove)}`"
        parts += ["", f"{markdown_escaped(diagnoses.sentence(suspect, also))} {diagnoses.PROVES} {command}"]
    if diff.set_aside:
        items = [f"- {markdown_escaped(text)}" for text in diff.set_aside]
        parts += ["", "<details><summary>Set aside</summary>", "", *items, "", "</details>"]
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


def _table_diff_markdown(rows: Sequence[Row]) -> list[str]:
    found = list(MARKDOWN_HEAD)
    for row in rows:
        metric, before, after, moved, outcome = map(markdown_escaped, row.texts)
        sign = SIGNS[row.difference.change]
        strong = "**" if row.difference.change is Change.REGRESSION else ""
        found.append(f"| {metric} | {before} | {after} | {moved} | {strong}{sign} {outcome}{strong} |")
    return found


SCHEMA = "velodrome/diff/1"


def document(diff: Diff) -> dict[str, Any]:
    """Return the diff as plain values, its schema first."""
    return {"schema": SCHEMA, **TypeAdapter(Diff).dump_python(diff, mode="json")}


def json_text(diff: Diff) -> str:
    """Return the document as it is written."""
    return to_json(document(diff))


def junit_text(diff: Diff) -> str:
    """Return the whole document."""
    made, _ = sections(diff)
    properties = {
        "before": side(diff.before.name, diff.before.told),
        "after": side(diff.after.name, diff.after.told),
        **diff.environment,
    }
    at = diff.environment.get("started", "")
    suites = [
        Suite(section.title, list(map(_figure, section.rows)), properties, at, diff.sentence)
        for section in made
    ]
    if diff.gates:
        suites.append(Suite("thresholds", list(map(_threshold, diff.gates)), properties, at))
    return junit.text("velodrome diff", suites)


def _figure(row: Row) -> Case:
    difference = row.difference
    _, before, after, moved, outcome = row.texts
    case = Case(
        f"velodrome.diff.{difference.question}.{difference.contestant}",
        f"{difference.metric} {difference.load}",
    )
    figures = f"{difference.metric}: {before} before, {after} after: {moved}"
    if difference.change is Change.REGRESSION:
        return Case(
            case.classname,
            case.name,
            Outcome.FAILED,
            "regression",
            difference.reason or f"{figures}: regression",
        )
    if difference.change is Change.INSUFFICIENT:
        reason = f": {difference.reason}" if difference.more_blocks is None and difference.reason else ""
        message = f"{figures}: {outcome.partition(' [')[0]}{reason}"
        return Case(case.classname, case.name, Outcome.SKIPPED, message=message)
    return case


def _threshold(gate: Gate) -> Case:
    name = f"{gate.threshold.text}: {gate.difference.cell} {gate.difference.load}"
    outcome = {True: Outcome.PASSED, False: Outcome.FAILED, None: Outcome.ERROR}[gate.held]
    kind = {True: "", False: "threshold", None: "insufficient data"}[gate.held]
    return Case("velodrome.diff.thresholds", name, outcome, kind, gate_sentence(gate))

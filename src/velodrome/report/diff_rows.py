"""The figures of a diff as texts, for every report of one."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from velodrome.model import quantity
from velodrome.model.difference import DIFF_METRICS, Change, Diff, Difference, Gate
from velodrome.model.metric import Unit
from velodrome.report import names
from velodrome.report.typeset import plural, visible

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
    for one in diff.differences:
        found.setdefault((one.question, one.contestant, one.load), []).append(_row(one, reasons))
    labels: dict[str, set[str]] = {}
    for one in diff.differences:
        labels.setdefault(one.called, set()).add(one.contestant)
    made = [
        Section(question, contestant, _title(rows[0].difference, labels), tuple(rows))
        for (question, contestant, _), rows in found.items()
    ]
    return made, reasons


def _title(one: Difference, labels: Mapping[str, Collection[str]]) -> str:
    """Return what a section is of; a contestant that is called as another is told by its label too."""
    label = f" ({one.contestant})" if len(labels[one.called]) > 1 else ""
    return visible(f"{one.question}: {one.called}{label}, {names.load_label(one.load)}")


def _row(one: Difference, reasons: list[str]) -> Row:
    said = answer(one)
    if one.change is Change.INSUFFICIENT and one.more_blocks is None and one.reason:
        reason = visible(one.reason)
        if reason not in reasons:
            reasons.append(reason)
        said = f"{said} [{reasons.index(reason) + 1}]"
    return Row(
        one, (one.metric, value(one.before, one.metric), value(one.after, one.metric), moved(one), said)
    )


def answer(one: Difference) -> str:
    """Return `regression`, `no difference beyond 5 %`, `insufficient data: 7 more blocks needed`."""
    match one.change:
        case Change.SAME:
            return f"no difference beyond {margin(one)}"
        case Change.INSUFFICIENT if one.more_blocks is not None:
            return f"insufficient data: {plural(one.more_blocks, 'more block')} needed"
        case _:
            return one.change.value


def margin(one: Difference) -> str:
    """Return from where on a difference of it counts."""
    return quantity.percent(one.margin) + (" of the requests" if one.metric == "errors" else "")


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


def moved(one: Difference) -> str:
    """Return by how much after differs from before, with its interval: `+6 % [+2, +10]`."""
    if one.interval is None:
        return quantity.MISSING
    shift, unit = (0.0, "points") if one.metric == "errors" else (1.0, "%")
    low, mid, high = ((end - shift) * 100 for end in (one.interval.low, one.interval.mid, one.interval.high))
    if high > 1000:
        return f"{quantity.signed(mid)} {unit} [{quantity.signed(low)}, over +1 000]"
    places = min(2, quantity.places_for((high - low) / 2, mid or 1.0)) if high > low else 0
    told = [quantity.signed(end, places) for end in (low, mid, high)]
    return f"{told[1]} {unit} [{told[0]}, {told[2]}]"


def gate(one: Gate) -> str:
    """Return what became of a threshold in a sentence."""
    where = f"{one.difference.called}, {names.load_label(one.difference.load)} ({one.difference.question})"
    said = f"{one.threshold.text}: {_verdict(one)}: {moved(one.difference)} for {where}"
    if one.held is not None or not (one.more_blocks or one.reason):
        return visible(f"{said}.")
    tell = f"{plural(one.more_blocks, 'more block')} needed" if one.more_blocks else one.reason.rstrip(".")
    return visible(f"{said}; {tell}.")


def _verdict(one: Gate) -> str:
    return {True: "kept", False: "broken", None: "insufficient data"}[one.held]


def broken(diff: Diff) -> Sequence[Gate]:
    """Return the thresholds that do not hold, or of which it cannot be told, the broken ones first."""
    return sorted((one for one in diff.gates if not one.held), key=lambda one: one.held is None)


def headline(diff: Diff) -> str:
    """Return the answer in a few words: `Regression`."""
    return ANSWERS[diff.change]


def side(name: str, told: str) -> str:
    """Return what one side is."""
    return visible(f"{name} ({told})" if told else name)

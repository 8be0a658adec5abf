"""Loads whose rate changes, step by step: what was asked, what was answered, and how late."""

from dataclasses import dataclass

from velodrome.model import quantity
from velodrome.model.verdict import Answer, StepView
from velodrome.report import names
from velodrome.report.typeset import visible

HEADS = ("contestant", "step", "asked/s", "answered/s", "p50 ms", "p99 ms", "failed", "")
BEHIND = "fell behind"


@dataclass(frozen=True)
class Table:
    """One load of one question; texts under `HEADS`."""

    load: str
    rows: tuple[tuple[str, ...], ...]


def tables(answer: Answer) -> list[Table]:
    """Return a table for each load of the question whose rate changes."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for standing in answer.standings:
        for view in standing.latency:
            for number, step in enumerate(view.steps):
                name = names.of_standing(standing) if number == 0 else ""
                found.setdefault(view.load, []).append((visible(name), *_texts(step)))
    return [Table(names.load_label(load), tuple(rows)) for load, rows in found.items()]


def _texts(step: StepView) -> tuple[str, ...]:
    low, high = (quantity.short(round(rate, 2)) for rate in (step.rate, step.to_rate))
    return (
        f"at {quantity.span(step.at_s)}",
        low if low == high else f"{low}–{high}",
        quantity.number(step.achieved_rps),
        _between(step.p50_ms),
        _between(step.p99_ms),
        quantity.grouped(step.errors),
        "" if step.kept_up else BEHIND,
    )


def _between(bounds: tuple[float, float] | None) -> str:
    if bounds is None:
        return quantity.MISSING
    low, high = map(quantity.milliseconds, bounds)
    return low if low == high else f"{low}–{high}"

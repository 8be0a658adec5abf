"""Proof: machine, versions, flags, and every trial as a row that can be sorted, taken away and repeated."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from velodrome.model import quantity
from velodrome.model.measurement import Failed, Measurement, Severity
from velodrome.model.verdict import Answer, Standing, Verdict
from velodrome.report import names
from velodrome.report.page import anchor
from velodrome.report.terminal import repeat
from velodrome.report.typeset import aligned_figures, visible

NUMBERS = (
    "requests/s",
    "right",
    "errors",
    "p50 ms",
    "p99 ms",
    "p99.9 ms",
    "max ms",
    "p99 sent ms",
    "lag p99 ms",
    "CPU µs/req",
    "memory MB",
    "in flight",
)
COLUMNS = ("question", "contestant", "load", "block", *NUMBERS, "result")


@dataclass(frozen=True)
class Row:
    """One trial. `values` go to the CSV and are what the table sorts by; `cells` are what it shows."""

    anchor: str
    values: Sequence[float | str | None]
    cells: Sequence[str]
    set_aside: bool


@dataclass(frozen=True)
class Cell:
    """One contestant in one question: all that is needed to doubt it, and to do it again."""

    anchor: str
    about: str
    title: str
    repeat: str
    command: str
    versions: str
    flags: Sequence[tuple[str, str]]
    """Sentence and advice."""
    failures: Sequence[str]
    said: Sequence[str]
    """Text the server chose."""
    loaded_by: Sequence[str] = ()
    """Command lines of other load generators than velodrome's own, with their versions."""


def rows(results: Sequence[Measurement | Failed], called: Mapping[str, str]) -> list[Row]:
    """Return every trial as a row; `called` gives the names of contestants by label."""
    found = [_row(result, called) for result in results]
    columns = [aligned_figures(column) for column in zip(*(row.cells for row in found), strict=True)]
    # Only numbers are padded: names and results stand at the left.
    numbers = range(3, len(COLUMNS) - 1)
    return [
        replace(row, cells=[columns[c][place] if c in numbers else cell for c, cell in enumerate(row.cells)])
        for place, row in enumerate(found)
    ]


def _row(result: Measurement | Failed, called: Mapping[str, str]) -> Row:
    trial = result.trial
    label = trial.label
    head: tuple[float | str | None, ...] = (trial.question, label, trial.load.label, trial.block + 1)
    link = anchor(trial.question, label)
    if isinstance(result, Failed):
        told = f"failed: {result.failure.value}"
        values = (*head, *(None for _ in NUMBERS), told)
        return Row(link, values, _shown(values, called), True)
    load, due = result.load, result.load.due
    cpu = result.cpu_us_per_request
    numbers = (load.throughput_rps, load.ok, load.requests - load.ok, due.p50, due.p99, due.p99_9, due.max)
    more = (load.sent.p99, load.lag.p99, cpu, result.server.rss_peak_bytes / 1e6, load.mean_in_flight)
    kinds = ", ".join(dict.fromkeys(flag.kind.value for flag in result.flags))
    told = f"{'set aside' if not result.valid else 'noted'}: {kinds}" if kinds else "valid"
    values = (*head, *numbers, *more, told)
    return Row(link, values, _shown(values, called), not result.valid)


def _shown(values: Sequence[float | str | None], called: Mapping[str, str]) -> list[str]:
    question, label, load, block, *numbers, told = values
    shown = [_number(name, value) for name, value in zip(NUMBERS, numbers, strict=True)]
    return [str(question), called.get(str(label), str(label)), str(load), str(block), *shown, str(told)]


def _number(name: str, value: float | str | None) -> str:
    if not isinstance(value, int | float):
        return quantity.MISSING
    if isinstance(value, int):
        return quantity.grouped(value)
    return quantity.milliseconds(value) if name.endswith(" ms") else quantity.number(value)


def cells(verdict: Verdict, results: Sequence[Measurement | Failed]) -> list[Cell]:
    """Return the details of every contestant in every question."""
    found = []
    for answer in verdict.answers:
        for standing in answer.standings:
            here = [
                r
                for r in results
                if r.trial.question == answer.question and r.trial.label == standing.contestant
            ]
            again = repeat(verdict, answer, standing)
            found.append(_cell(answer, standing, again, here))
    return found


def _cell(answer: Answer, standing: Standing, again: str, here: Sequence[Measurement | Failed]) -> Cell:
    measured = [r for r in here if isinstance(r, Measurement)]
    failed = [r for r in here if isinstance(r, Failed)]
    last = measured[-1] if measured else None
    versions = ", ".join(f"{k} {v}" for k, v in sorted(last.packages.items())) if last else ""
    python = f"Python {last.python}" if last and last.python else ""
    flags = dict.fromkeys(
        (visible(f.sentence), visible(f.advice), f.severity) for m in measured for f in m.flags
    )
    told = [
        (f"{'set aside' if severity is Severity.INVALID else 'noted'}: {sentence}", advice)
        for sentence, advice, severity in flags
    ]
    said = [visible(line) for r in failed[:1] for line in r.last_lines]
    said += [visible(text) for m in measured for text in m.load.examples][:5]
    command = " ".join(visible(word) for word in last.command) if last else ""
    reasons_failed = list(dict.fromkeys(visible(f"{r.failure.value}: {r.reason}") for r in failed))
    return Cell(
        anchor(answer.question, standing.contestant),
        names.sentence_case(visible(answer.about)),
        names.of_standing(standing),
        again,
        command,
        ", ".join(filter(None, (python, versions))),
        told,
        reasons_failed,
        said,
        list(
            dict.fromkeys(
                visible(f"{m.load.driver} {m.load.driver_version}: {shlex.join(m.load.driver_command)}")
                for m in measured
                if m.load.driver_command
            )
        ),
    )


def facts(
    verdict: Verdict, results: Sequence[Measurement | Failed], header: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Return machine, placement, seed and versions as pairs of name and value."""
    machine = header.get("machine")
    known = {**(machine if isinstance(machine, Mapping) else {}), **verdict.environment}
    found = {
        _fact_name(name): visible(_fact(name, value)) for name, value in known.items() if value is not None
    }
    measured = next((r for r in results if isinstance(r, Measurement)), None)
    if measured is not None:
        placed = measured.placement
        found["server on CPUs"] = ", ".join(map(str, placed.server_cpus)) or "any"
        found["load on CPUs"] = ", ".join(map(str, placed.load_cpus)) or "any"
        found["third party on CPUs"] = ", ".join(map(str, placed.upstream_cpus)) or "any"
        beside = [
            f"{one.name} {one.version}" for r in results if isinstance(r, Measurement) for one in r.companions
        ]
        found["asked beside it"] = visible(", ".join(dict.fromkeys(beside)))
        found["placement"] = "; ".join((placed.enforced_by, *placed.notes))
        found["generator"] = names.joined(dict.fromkeys(map(_generator, results)), most=9)
    found.setdefault("velodrome", str(header.get("velodrome", "")))
    found["seed"] = str(verdict.seed)
    return [(name, value) for name, value in found.items() if value]


def _generator(result: Measurement | Failed) -> str:
    """Return `velodrome (io_uring)` or `wrk 4.1.0`."""
    if isinstance(result, Failed):
        return ""
    load = result.load
    return f"{load.driver} {load.driver_version or f'({load.generator_transport})'}"


def _fact_name(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ")


def _fact(name: str, value: object) -> str:
    """Return a fact of the machine as people read it: bytes with a unit, lists without brackets."""
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value).strip("[]")
    return quantity.memory(int(text)) if name.endswith("_bytes") and text.isdigit() else text

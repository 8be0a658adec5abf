"""What the doctor found, as text: causes with their evidence, their cost and their cure, then all that is none."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from velodrome.model.diagnosis import Diagnosis, Evidence, Examination, Ruling
from velodrome.model.errors import OutputError
from velodrome.model.quantity import Interval, duration, number
from velodrome.report.typeset import visible

MARKS = {Ruling.CAUSE: "✗", Ruling.NOT_A_CAUSE: "✓", Ruling.CANNOT_TELL: "?"}
INDENT = " " * 23
_COSTS: Mapping[str, tuple[str, float]] = {
    "rps": ("/s of throughput", 1.0),
    "mean_ms": (" ms of the mean", 1.0),
    "p99_ms": (" ms of p99", 1.0),
    "cpu_us": (" µs of CPU a request", 1.0),
}


class Explained(Protocol):
    """A fault of the catalogue."""

    @property
    def name(self) -> str:
        """Its id."""

    @property
    def about(self) -> str:
        """Symptom, cause and cure."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Where it was met."""

    @property
    def hypothesis(self) -> str:
        """What would have to be so."""

    @property
    def proof(self) -> str:
        """What has to differ."""


def listing(every: Iterable[Explained]) -> list[str]:
    """Return what each fault is, and how it is proven."""
    found = []
    for one in every:
        found += [f"{one.name}", f"  {one.about}", f"  supposed: {one.hypothesis}", f"  proven: {one.proof}"]
        found += [f"  met in: {', '.join(one.sources)}"]
    return [visible(line) for line in found]


def lines(found: Examination) -> list[str]:
    """Return the whole examination."""
    within = f"{found.folder.rstrip('/')}/" if found.folder else ""
    return [visible(one.replace(within, "") if within else one) for one in _lines(found)]


def _lines(found: Examination) -> Iterator[str]:
    yield f"{found.stack} · {found.title}"
    yield from (f"  {one.said}" for one in found.screens)
    yield ""
    for cause in found.causes:
        yield from diagnosis_lines(cause)
    if found.healthy:
        yield "✓ no cause was proven"
    for one in found.of(Ruling.CANNOT_TELL):
        yield f"? cannot tell          {one.id}: {one.reason}"
    if innocent := found.of(Ruling.NOT_A_CAUSE):
        yield f"✓ not the cause        {', '.join(one.id for one in innocent)}"
    for untried in found.untried:
        yield f"– not tried            {untried.id}: {untried.why}"
    if found.unexplained is not None:
        yield f"unexplained: {found.unexplained:.0%} of the time of a request under full load"
    yield f"took {duration(found.seconds)}"


def write(found: Examination, path: Path) -> None:
    """Write the document, with both arms of every experiment, to a file. Raises OutputError."""
    try:
        path.write_text(json.dumps(found.document(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(str(path), error.strerror or str(error)) from error


def diagnosis_lines(one: Diagnosis) -> list[str]:
    """Return one diagnosis, its evidence, cost and cure below it."""
    found = [f"{MARKS[one.ruling]} {one.id:<20} {_where(one)}"]
    found += [f"{INDENT}{one.reason}"]
    if one.ruling is Ruling.CAUSE:
        if costs := list(_costs(one.effect)):
            found.append(f"{INDENT}costs {'; '.join(costs)}")
        found += [f"{INDENT}proof: {_proof(one)}"]
        if one.cure is not None:
            found.append(f"{INDENT}cure: {one.cure.what}")
            found += [f"{INDENT}  {sign} {text}" for sign, text in _change(one) if text]
    return found


def _where(one: Diagnosis) -> str:
    stack: Sequence[Evidence] = [evidence for evidence in one.evidence if evidence.kind == "stack"]
    return stack[0].said if stack else one.cure.where if one.cure else ""


def _costs(effect: Mapping[str, Interval]) -> Iterator[str]:
    for metric, (unit, factor) in _COSTS.items():
        cost = effect.get(metric)
        if cost is not None and cost.low > 0:
            low, mid, high = (number(factor * value) for value in (cost.low, cost.mid, cost.high))
            yield f"{mid}{unit} [{low}, {high}]"


def _proof(one: Diagnosis) -> str:
    arms = [evidence.said for evidence in one.evidence if evidence.kind == "arms"]
    how = {
        "cure": "the cured arm is better",
        "dose": "more of it costs more; it cannot be cured from outside",
    }
    return f"{how.get(one.proof, '')} ({arms[0]})" if arms else how.get(one.proof, "")


def _change(one: Diagnosis) -> Iterator[tuple[str, str]]:
    if one.cure is not None:
        yield "-", one.cure.before
        yield "+", one.cure.after

"""What the doctor found, as text, JSON and JUnit: causes with evidence, cost and cure, then all that is none.

JSON: schema `velodrome/doctor/1`, docs/doctor.schema.json. In JUnit each fault is a case: a cause is a failure, what
is undecided is skipped, and so is what was not tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from velodrome.model.diagnosis import Diagnosis, Evidence, Examination, Ruling, SloRate, Suspected
from velodrome.model.quantity import Interval, duration, number
from velodrome.report import junit, writing
from velodrome.report.json import to_json
from velodrome.report.junit import Case, Outcome, Suite
from velodrome.report.typeset import paragraph, plural, visible

if TYPE_CHECKING:
    from rich.text import Text


PROVES = "Nothing is proven. This proves it, or rules it out:"


def group_suspects(every: Sequence[Suspected]) -> list[tuple[Suspected, list[str]]]:
    """Return the first suspect of each fault, with whom else it is suspected of."""
    found: dict[str, list[Suspected]] = {}
    for suspected in every:
        found.setdefault(suspected.id, []).append(suspected)
    return [(first, [other.of for other in rest]) for first, *rest in found.values()]


def sentence(suspected: Suspected, also: Sequence[str] = ()) -> str:
    """Return `Suspect: nodelay (uvicorn · h11 ×2): p50 42.5 ms on reused connections, 0.4 ms on …`."""
    others = f"; also {', '.join(also)}" if also else ""
    return visible(f"Suspect: {suspected.id} ({suspected.of}{others}): {suspected.why.rstrip('.')}.")


def texts(every: Sequence[Suspected], width: int) -> list[Text]:
    """Return the same for a terminal of `width` columns; the commands stay whole, as they are there to be copied."""
    from rich.text import Text  # noqa: PLC0415 - a search in a pipe has no time for it

    found = []
    for suspected, also in group_suspects(every):
        found += paragraph(sentence(suspected, also), width, 1)
        found += [*paragraph(PROVES, width, style="dim"), Text(f"   {visible(suspected.prove)}")]
    return found


def suspect_lines(every: Sequence[Suspected]) -> list[str]:
    """Return two or three lines for each fault; none where nothing is suspected."""
    found = []
    for suspected, also in group_suspects(every):
        found += [sentence(suspected, also), f"  {PROVES}", f"  {visible(suspected.prove)}"]
    return found


MARKS = {Ruling.CAUSE: "✗", Ruling.NOT_A_CAUSE: "✓", Ruling.CANNOT_TELL: "?"}
INDENT = " " * 23
_COSTS: Mapping[str, tuple[str, float]] = {
    "rps": ("/s of throughput", 1.0),
    "mean_ms": (" ms of the mean", 1.0),
    "p99_ms": (" ms of p99", 1.0),
    "cpu_us": (" µs of CPU a request", 1.0),
    "slo_rps": ("/s at which the SLO holds", 1.0),
    "share": (" % of what was counted", 100.0),
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
    for explained in every:
        found += [
            f"{explained.name}",
            f"  {explained.about}",
            f"  supposed: {explained.hypothesis}",
            f"  proven: {explained.proof}",
        ]
        found += [f"  met in: {', '.join(explained.sources)}"]
    return [visible(line) for line in found]


def listing_document(every: Iterable[Explained]) -> list[dict[str, Any]]:
    """Return the same as plain data."""
    return [
        {
            "id": explained.name,
            "about": explained.about,
            "supposed": explained.hypothesis,
            "proven": explained.proof,
            "met_in": list(explained.sources),
        }
        for explained in every
    ]


def lines(found: Examination) -> list[str]:
    """Return the whole examination."""
    return [visible(line) for line in _lines(relative(found))]


def relative(found: Examination) -> Examination:
    """Return it with paths of the app relative to its folder."""
    within = _within(found)
    if not within:
        return found

    def cut(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(within, "")
        if isinstance(value, Mapping):
            return {name: cut(part) for name, part in value.items()}
        return [cut(part) for part in value] if isinstance(value, list) else value

    def cut_evidence(evidence: Evidence) -> Evidence:
        return replace(evidence, said=cut(evidence.said), data=cut(evidence.data))

    diagnoses = tuple(
        replace(
            diagnosis,
            reason=cut(diagnosis.reason),
            evidence=tuple(map(cut_evidence, diagnosis.evidence)),
            cure=replace(diagnosis.cure, **cut(diagnosis.cure.document())) if diagnosis.cure else None,
        )
        for diagnosis in found.diagnoses
    )
    line = found.timeline
    if line is not None:
        line = replace(line, stacks=tuple(tuple(map(cut, stack)) for stack in line.stacks))
    return replace(
        found,
        diagnoses=diagnoses,
        untried=tuple(replace(untried, why=cut(untried.why)) for untried in found.untried),
        screens=tuple(map(cut_evidence, found.screens)),
        timeline=line,
    )


def _within(found: Examination) -> str:
    """Return what paths of the app begin with, and are shown without; empty: nothing."""
    return f"{found.folder.rstrip('/')}/" if found.folder else ""


def _lines(found: Examination) -> Iterator[str]:
    yield f"{found.stack} · {found.title}"
    yield from (f"  {screen.said}" for screen in found.screens)
    yield ""
    for cause in found.causes:
        yield from diagnosis_lines(cause)
    if not found.causes:
        yield f"{'✓' if found.healthy else '–'} {no_cause(found)}"
    for diagnosis in found.undecided:
        yield f"? cannot tell          {diagnosis.id}: {diagnosis.reason}"
    if innocent := found.of(Ruling.NOT_A_CAUSE):
        yield f"✓ not the cause        {', '.join(diagnosis.id for diagnosis in innocent)}"
    for why, names in _untried(found).items():
        yield f"– not tried            {', '.join(names)}: {why}"
    yield from slo_lines(found)
    if left := unexplained(found):
        yield f"unexplained: {left}"
    yield from disturbed_lines(found)
    yield f"took {duration(found.seconds)}"


def unexplained(found: Examination) -> str:
    """Return how much of a request's time no cause accounts for, or why that is not known; empty: nothing was seen."""
    if found.unexplained is not None:
        return f"{found.unexplained:.0%} of the time of a request under full load"
    if any(cause.proof == "cure" for cause in found.causes):
        return (
            "not known; behind the last cure nothing was looked at again, and what it hid was not found: "
            "give more time (--budget)"
        )
    return ""


def disturbed_lines(found: Examination) -> Iterator[str]:
    """Yield what else happened to the machine meanwhile."""
    for one in found.disturbed:
        yield (
            f"The machine was disturbed in {one.loads} of {plural(one.of, 'load')}. The worst: {one.worst} "
            "What could not be told may be told on a quiet machine."
        )


def no_cause(found: Examination) -> str:
    """Return that there is no cause, and of how many faults that is not known for lack of time."""
    count = len(found.untried)
    were = "was" if count == 1 else "were"
    return "no cause was proven" + (f", but {plural(count, 'fault')} {were} not tried" if count else "")


def _untried(found: Examination) -> dict[str, list[str]]:
    """Return what was not tried, by the reason."""
    by_reason: dict[str, list[str]] = {}
    for untried in found.untried:
        by_reason.setdefault(untried.why, []).append(untried.id)
    return by_reason


def slo_lines(found: Examination) -> Iterator[str]:
    """Yield whether the SLO holds as the app is, and with the causes cured, and at which rate."""
    slo = found.slo
    if slo is None:
        return
    what = " and ".join(slo.conditions)
    yield f"SLO {what}, as it is: {_holds(slo.as_it_is)}"
    if slo.cured is not None:
        yield f"SLO {what}, cured: {_holds(slo.cured)}"
    elif slo.why_not_cured:
        yield f"SLO {what}, cured: not searched: {slo.why_not_cured}"


def _holds(rate: SloRate) -> str:
    because = f" ({rate.because.rstrip('.')})" if rate.because else ""
    if rate.holds is False:
        return f"it holds at no rate{because}"
    if rate.holds is None or rate.rate is None:
        return f"cannot tell{because}"
    low, mid, high = (number(end) for end in (rate.rate.low, rate.rate.mid, rate.rate.high))
    return f"it holds up to {mid}/s [{low}, {high}]{because}"


def write(found: Examination, path: Path) -> None:
    """Write the document, with both arms of every experiment, to a file. Raises OutputError."""
    writing.write(path, to_json(found.document()))


OUTCOMES = {
    Ruling.CAUSE: Outcome.FAILED,
    Ruling.NOT_A_CAUSE: Outcome.PASSED,
    Ruling.CANNOT_TELL: Outcome.SKIPPED,
}


def junit_text(found: Examination) -> str:
    """Return the JUnit document: a suite with a case for each fault that was looked for."""
    found = relative(found)
    cases = [_case(found, diagnosis) for diagnosis in found.diagnoses]
    cases += [
        Case(_classname(found), untried.id, Outcome.SKIPPED, message=f"not tried: {untried.why}")
        for untried in found.untried
    ]
    facts = {"stack": found.stack, "app": found.title, "took": duration(found.seconds)}
    if left := unexplained(found):
        facts["unexplained"] = left
    text = "; ".join(line.strip() for line in lines(found) if line)
    suite = Suite(f"{found.stack} · {found.title}", _apart(cases), facts, found.started, text, found.seconds)
    return junit.text("velodrome doctor", [suite])


def _case(found: Examination, diagnosis: Diagnosis) -> Case:
    text = "; ".join(line.strip() for line in diagnosis_lines(diagnosis)[1:])
    message = text if diagnosis.ruling is Ruling.CAUSE else diagnosis.reason
    return Case(_classname(found), diagnosis.id, OUTCOMES[diagnosis.ruling], "cause", message)


def _apart(cases: Sequence[Case]) -> list[Case]:
    """Return cases of which no two have one name: a fault may be a cause at two places."""
    seen: dict[str, int] = {}
    found = []
    for case in cases:
        seen[case.name] = number = seen.get(case.name, 0) + 1
        found.append(replace(case, name=f"{case.name} ({number})") if number > 1 else case)
    return found


def _classname(found: Examination) -> str:
    return f"velodrome.doctor.{found.stack}"


def diagnosis_lines(diagnosis: Diagnosis) -> list[str]:
    """Return one diagnosis, its evidence, cost and cure below it."""
    found = [f"{MARKS[diagnosis.ruling]} {diagnosis.id:<20} {where(diagnosis)}"]
    found += [f"{INDENT}{diagnosis.reason}"]
    if diagnosis.ruling is Ruling.CAUSE:
        if lost := list(costs(diagnosis.effect)):
            found.append(f"{INDENT}costs {'; '.join(lost)}")
        found += [f"{INDENT}proof: {proof(diagnosis)}"]
        if consequence := comes_of(diagnosis):
            found.append(f"{INDENT}{consequence}")
        if diagnosis.cure is not None:
            found.append(f"{INDENT}cure: {diagnosis.cure.what}")
            found += [f"{INDENT}  {sign} {line}" for sign, line in change(diagnosis)]
    return found


def where(diagnosis: Diagnosis) -> str:
    """Return the place of a cause: the line that its stack is in, or where it is cured."""
    if (stack := stack_of(diagnosis)) is not None:
        return stack.said
    return diagnosis.cure.where if diagnosis.cure else ""


def stack_of(diagnosis: Diagnosis) -> Evidence | None:
    """Return the stack that was met; None: none was taken, or only how much is in what was counted."""
    stacks = (one for one in diagnosis.evidence if one.kind == "stack" and "frames" in one.data)
    return next(stacks, None)


def costs(effect: Mapping[str, Interval]) -> Iterator[str]:
    """Yield what a cause costs, by each metric that it surely costs something of: `410/s of throughput [380, 440]`."""
    for metric, (unit, factor) in _COSTS.items():
        cost = effect.get(metric)
        if cost is not None and cost.low > 0:
            low, mid, high = (number(factor * value) for value in (cost.low, cost.mid, cost.high))
            yield f"{mid}{unit} [{low}, {high}]"


def proof(diagnosis: Diagnosis) -> str:
    """Return how a cause was proven, and by how many blocks."""
    arms = [evidence.said for evidence in diagnosis.evidence if evidence.kind in {"arms", "counts"}]
    how = {
        "cure": "the cured arm is better",
        "dose": "more of it costs more; it cannot be cured from outside",
    }
    return f"{how.get(diagnosis.proof, '')} ({arms[-1]})" if arms else how.get(diagnosis.proof, "")


def comes_of(diagnosis: Diagnosis) -> str:
    """Return which cause it comes of, and how that is known; empty: of none that is known."""
    cause = diagnosis.comes_of
    return f"comes of {cause}: once that was cured, nothing of it was seen" if cause else ""


def change(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    """Yield the lines that are there now and those that are to be there, each with its sign."""
    if diagnosis.cure is not None:
        yield from (("-", line) for line in diagnosis.cure.before.splitlines())
        yield from (("+", line) for line in diagnosis.cure.after.splitlines())

"""An examination as one HTML page that needs nothing else: diagnoses as cards, both arms, the timeline, the slope.

It has no script. Everything that came from an app passes the template's escaping.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from velodrome.model.diagnosis import Diagnosis, Evidence, Examination, Ruling
from velodrome.model.quantity import duration
from velodrome.report import diagnosis_charts as charts
from velodrome.report import names
from velodrome.report.diagnoses import change, costs, proof, relative, slo_lines, where
from velodrome.report.html import environment, template_text
from velodrome.report.json import save
from velodrome.report.typeset import plural, visible


@dataclass(frozen=True)
class Card:
    """A cause."""

    id: str
    proven: str
    where: str
    reason: str
    costs: Sequence[str]
    cure: str
    change: Sequence[tuple[str, str]]
    frames: Sequence[str]
    load: str
    figures: Sequence[Markup]


def render(found: Examination) -> str:
    """Return the page."""
    found = relative(found)
    slope = next(
        (screen for screen in found.screens if screen.kind == "slope" and "points" in screen.data), None
    )
    timeline = found.timeline
    context = {
        "title": visible(found.title),
        "lead": visible(f"{found.stack} · took {duration(found.seconds)}"),
        "headline": _headline(found),
        "summary": [visible(line) for line in _summary(found)],
        "causes": [_card(diagnosis) for diagnosis in found.causes],
        "timeline": charts.timeline(timeline) if timeline else None,
        "timeline_about": _timeline_about(found),
        "screens": [visible(screen.said) for screen in found.screens],
        "slope": charts.slope(slope.data) if slope else None,
        "others": list(_others(found)),
        # Style is ours, not data: autoescape would break it.
        "css": Markup(template_text("report.css")),  # noqa: S704
    }
    return environment().get_template("doctor.html").render(context)


def write(path: Path, found: Examination) -> None:
    """Write the page. Raises OutputError."""
    save(path, render(found))


def _headline(found: Examination) -> str:
    if found.healthy:
        return "No cause was proven"
    return f"{plural(len(found.causes), 'cause')} proven"


def _summary(found: Examination) -> Iterator[str]:
    yield from slo_lines(found)
    if found.unexplained is not None:
        yield (
            f"{found.unexplained:.0%} of the time of a request under full load are explained neither by a cause nor by "
            "what the request needs itself."
        )


def _card(diagnosis: Diagnosis) -> Card:
    stack = next(
        (
            evidence
            for evidence in diagnosis.evidence
            if evidence.kind == "stack" and "frames" in evidence.data
        ),
        None,
    )
    arms = next((evidence for evidence in diagnosis.evidence if evidence.kind == "arms"), None)
    return Card(
        diagnosis.id,
        {"cure": "proven by its cure", "dose": "proven by a larger dose"}.get(diagnosis.proof, ""),
        visible(where(diagnosis)) if stack else visible(diagnosis.cure.where) if diagnosis.cure else "",
        visible(diagnosis.reason.rstrip(".")),
        list(costs(diagnosis.effect)),
        names.sentence_case(visible(diagnosis.cure.what.rstrip("."))) if diagnosis.cure else "",
        [(sign, visible(text)) for sign, text in change(diagnosis) if text],
        [visible(str(frame)) for frame in stack.data["frames"]] if stack else [],
        visible(proof(diagnosis)),
        _figures(arms) if arms else [],
    )


def _figures(arms: Evidence) -> list[Markup]:
    if not arms.data.get("blocks") or "levels" not in arms.data:
        return []
    return [charts.arms(arms.data, metric) for metric in charts.ARMS]


def _timeline_about(found: Examination) -> str:
    if found.timeline is None:
        return ""
    return visible(
        f"{duration(found.timeline.seconds)} of a closed loop ({found.timeline.load}) on the app as it is, with a "
        "heartbeat beside its event loop: what stands under each other happened in the same moment."
    )


def _others(found: Examination) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    headings = {Ruling.CANNOT_TELL: "Cannot tell", Ruling.NOT_A_CAUSE: "Not the cause"}
    for ruling, heading in headings.items():
        rows = [(diagnosis.id, visible(diagnosis.reason)) for diagnosis in found.of(ruling)]
        if rows:
            yield heading, rows
    if found.untried:
        yield "Not tried", [(untried.id, visible(untried.why)) for untried in found.untried]

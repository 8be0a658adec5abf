"""report.html: one file that needs nothing else, verdict first, then why, proof and how to repeat.

Everything that came from a server passes the template's escaping; what the script reads passes `for_script`.
A Content-Security-Policy allows the one script there is, by its hash, and nothing from anywhere.
"""

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from velodrome.model.measurement import Failed, Measurement, Severity
from velodrome.model.verdict import Answer, Verdict
from velodrome.report import (
    by_driver,
    claims,
    findings,
    flames,
    history,
    names,
    page,
    profiles,
    proof,
    published,
    schedules,
    why,
)
from velodrome.report.json import save
from velodrome.report.typeset import plural, visible

Results = Sequence[Measurement | Failed]
COST_HEADS = ("req/CPU-s", "CPU µs/req", "MB")


def render(
    verdict: Verdict, results: Results, header: Mapping[str, Any], stacks: Mapping[str, str] | None = None
) -> str:
    """Return the page. `header` is the first line of results.jsonl as plain data, `stacks` what profiles stored."""
    style = page.styles(verdict)
    called = {label: name for answer in verdict.answers for label, name in names.of_answer(answer).items()}
    measured = {a.question: _measured(a.question, results) for a in verdict.answers}
    rows = proof.rows(results, called)
    script = _template_text("report.js")
    context = {
        "title": verdict.title or verdict.study,
        "study": verdict.study,
        "lead": lead(verdict, results),
        "cards": page.cards(verdict),
        "claims": [claims.told(one) for one in verdict.claims],
        "claims_summary": claims.summary(verdict.claims),
        "published": [published.section(one) for one in verdict.tables],
        "findings": findings.rows(verdict.findings),
        "set_aside": [visible(sentence) for sentence in verdict.set_aside],
        "notes": [visible(note) for note in verdict.notes],
        "ranking": [_ranking(a, measured[a.question], style) for a in verdict.answers],
        "latency": [page.latency(a, style) for a in verdict.answers],
        "cost": [page.cost(a, style) for a in verdict.answers],
        "cost_heads": COST_HEADS,
        "drivers": [_by_driver(a) for a in verdict.answers if by_driver.tables(a)],
        "driver_heads": [(head, head not in by_driver.TEXTS) for head in by_driver.HEADS],
        "schedules": [
            (names.sentence_case(a.about), found) for a in verdict.answers if (found := schedules.tables(a))
        ],
        "schedule_heads": schedules.HEADS,
        "profiles": profiles.sections(verdict, stacks or {}),
        "profile_heads": profiles.HEADS,
        "parts": list(flames.COLOUR.items()),
        "histories": [h for a in verdict.answers for h in history.histories(a, measured[a.question], style)],
        "history_heads": history.COLUMNS,
        "why": [_why(a, measured[a.question]) for a in verdict.answers],
        "why_heads": why.HEADS,
        "facts": proof.facts(verdict, results, header),
        "details": _grouped(proof.cells(verdict, results)),
        "columns": proof.COLUMNS,
        "rows": rows,
        "data": for_script(_for_csv(verdict.study, rows)),
        # Style and script are ours, not data: autoescape would break them.
        "css": Markup(_template_text("report.css")),  # noqa: S704
        "script": Markup(script),  # noqa: S704
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    return _environment().get_template("report.html").render(context)


def write(
    path: Path,
    verdict: Verdict,
    results: Results,
    header: Mapping[str, Any],
    stacks: Mapping[str, str] | None = None,
) -> None:
    """Write report.html. Raises OutputError when it cannot be written."""
    save(path, render(verdict, results, header, stacks))


def for_script(plain: object) -> Markup:
    """Return plain data as JSON that can stand inside a script element whatever text it holds."""
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)  # noqa: S704


def _for_csv(study: str, rows: Sequence[proof.Row]) -> dict[str, object]:
    plain = [[_finite(value) for value in row.values] for row in rows]
    return {"study": study, "columns": proof.COLUMNS, "rows": plain}


def _finite(value: float | str | None) -> float | str | None:
    """JSON knows no NaN: what is not a number is missing."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def lead(verdict: Verdict, results: Results) -> str:
    """Return when, how much and with which seed, on one line."""
    began = min((result.started_at for result in results), default="")
    blocks = len({result.trial.block for result in results})
    contestants = len({result.trial.label for result in results})
    parts = [
        f"{began[:16].replace('T', ' ')} UTC" if began else "",
        plural(len(verdict.answers), "question"),
        plural(contestants, "contestant"),
        plural(len(results), "trial"),
        plural(blocks, "block"),
        f"seed {verdict.seed}",
        visible(verdict.finished),
    ]
    return " · ".join(filter(None, parts))


def _grouped(cells: Sequence[proof.Cell]) -> dict[str, list[proof.Cell]]:
    found: dict[str, list[proof.Cell]] = {}
    for cell in cells:
        found.setdefault(cell.about, []).append(cell)
    return found


def _measured(question: str, results: Results) -> list[Measurement]:
    return [r for r in results if isinstance(r, Measurement) and r.trial.question == question]


def _ranking(answer: Answer, measured: Sequence[Measurement], style: page.Styles) -> page.Panel:
    ranked = [one for one in measured if names.is_closed(one.trial.load.label)] or list(measured)
    reasons: dict[str, dict[str, str]] = {}
    for one in ranked:
        for flag in one.flags:
            if flag.severity is Severity.INVALID:
                # Blocks tell the same reason with other figures: the first stands for them.
                told = reasons.setdefault(one.trial.label, {})
                told.setdefault(flag.kind, f"{flag.sentence.rstrip('.')}.")
    return page.ranking(answer, _reached(ranked), {k: list(v.values()) for k, v in reasons.items()}, style)


def _reached(measured: Sequence[Measurement]) -> dict[str, float]:
    """Return the most that each contestant reached, also where it was set aside."""
    found: dict[str, float] = {}
    for one in measured:
        label = one.trial.label
        found[label] = max(found.get(label, 0.0), one.load.throughput_rps)
    return found


def _by_driver(answer: Answer) -> dict[str, Any]:
    return {
        "about": names.sentence_case(visible(answer.about)),
        "tables": [
            (table.load, [(page.anchor(answer.question, row.label), row.texts) for row in table.rows])
            for table in by_driver.tables(answer)
        ],
        "reach": by_driver.reach(answer),
    }


def _why(answer: Answer, measured: Sequence[Measurement]) -> dict[str, Any]:
    return {
        "about": names.sentence_case(visible(answer.about)),
        "sentences": [visible(sentence) for sentence in answer.why],
        "see": why.sentence([m for m in measured if names.is_closed(m.trial.load.label)]),
        "reasons": why.reasons(answer, measured),
    }


def _environment() -> jinja2.Environment:
    loader = jinja2.FunctionLoader(_template_text)
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)


def _template_text(name: str) -> str:
    return resources.files("velodrome.report").joinpath("templates", name).read_text(encoding="utf-8")

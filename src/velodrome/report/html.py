"""report.html: one file that needs nothing else, verdict first, then why, proof and how to repeat.

Everything that came from a server passes the template's escaping; what the script reads passes `for_script`.
A Content-Security-Policy allows the one script there is, by its hash, and nothing from anywhere.
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from velodrome.model import quantity
from velodrome.model.measurement import Failed, Measurement, Severity
from velodrome.model.verdict import Answer, LatencyView, Standing, Verdict
from velodrome.report import charts, claims, diagnoses, evidence, names, profiles, verdict_tables
from velodrome.report.evidence import Styles, anchor, styles
from velodrome.report.formats import Format
from velodrome.report.json import save
from velodrome.report.terminal import again
from velodrome.report.typeset import align_figures, at, estimate, plural, tail, visible

Results = Sequence[Measurement | Failed]
COST_HEADS = ("req/CPU-s", "CPU µs/req", "MB")


NO_FIGURE = Markup("")
WHY_IN_CARD = 2
"""All of it stands under «Why»; a card is to be read at a glance."""


@dataclass(frozen=True)
class Card:
    """The verdict on one question."""

    anchor: str
    about: str
    outcome: str
    best: str
    beside: str
    sentence: str
    runner_up: str
    limit: str
    why: Sequence[str]
    to_settle: str
    deploy: str
    repeat: str


@dataclass(frozen=True)
class Key:
    """A row of the table under a figure: what number and line stand for, and the values."""

    number: int
    name: str
    anchor: str
    colour: str
    dash: str
    cells: Sequence[str]


@dataclass(frozen=True)
class Panel:
    """One question in one section: sentence, figure, table; a latency panel has them from sent too."""

    about: str
    load: str
    see: str
    figure: Markup
    keys: Sequence[Key] = ()
    aside: Sequence[str] = ()
    figure_sent: Markup = NO_FIGURE
    keys_sent: Sequence[Key] = ()
    heads: Sequence[str] = ()


def render(
    verdict: Verdict, results: Results, header: Mapping[str, Any], stacks: Mapping[str, str] | None = None
) -> str:
    """Return the page. `header` is the first line of results.jsonl as plain data, `stacks` what profiles stored."""
    style = styles(verdict)
    called = {label: name for answer in verdict.answers for label, name in names.of_answer(answer).items()}
    measured = {a.question: _measurements_of(a.question, results) for a in verdict.answers}
    rows = evidence.trial_rows(results, called)
    script = template_text("report.js")
    context = {
        "title": verdict.title or verdict.study,
        "study": verdict.study,
        "lead": lead(verdict, results),
        "cards": cards(verdict),
        "claims": [claims.show_claim(claim) for claim in verdict.claims],
        "claims_summary": claims.summary(verdict.claims),
        "published": [claims.published_table(table) for table in verdict.tables],
        "findings": claims.finding_rows(verdict.findings),
        "set_aside": [visible(sentence) for sentence in verdict.set_aside],
        "notes": [visible(note) for note in verdict.notes],
        "suspects": [
            (diagnoses.sentence(suspected, also), visible(suspected.prove))
            for suspected, also in diagnoses.group_suspects(verdict.suspects)
        ],
        "proves": diagnoses.PROVES,
        "ranking": [_ranking(a, measured[a.question], style) for a in verdict.answers],
        "latency": [latency(a, style) for a in verdict.answers],
        "cost": [cost(a, style) for a in verdict.answers],
        "cost_heads": COST_HEADS,
        "drivers": [_by_driver(a) for a in verdict.answers if verdict_tables.driver_tables(a)],
        "driver_heads": [(head, head not in verdict_tables.TEXTS) for head in verdict_tables.DRIVER_HEADS],
        "schedules": [
            (names.sentence_case(a.about), found)
            for a in verdict.answers
            if (found := verdict_tables.step_tables(a))
        ],
        "schedule_heads": verdict_tables.STEP_HEADS,
        "profiles": profiles.sections(verdict, stacks or {}),
        "profile_heads": profiles.HEADS,
        "parts": list(profiles.COLOUR.items()),
        "histories": [h for a in verdict.answers for h in evidence.histories(a, measured[a.question], style)],
        "history_heads": evidence.STRIP_TITLES,
        "why": [_why(a, measured[a.question]) for a in verdict.answers],
        "why_heads": evidence.REASON_HEADS,
        "facts": evidence.facts(verdict, results, header),
        "details": _group_cells(evidence.cells(verdict, results)),
        "columns": evidence.TRIAL_COLUMNS,
        "rows": rows,
        "data": for_script(_for_csv(verdict.study, rows)),
        # Style and script are ours, not data: autoescape would break them.
        "css": Markup(template_text("report.css")),  # noqa: S704
        "script": Markup(script),  # noqa: S704
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    return environment().get_template("report.html").render(context)


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


def _for_csv(study: str, rows: Sequence[evidence.TrialRow]) -> dict[str, object]:
    plain = [[_finite(value) for value in row.values] for row in rows]
    return {"study": study, "columns": evidence.TRIAL_COLUMNS, "rows": plain}


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


def _group_cells(cells: Sequence[evidence.Cell]) -> dict[str, list[evidence.Cell]]:
    found: dict[str, list[evidence.Cell]] = {}
    for cell in cells:
        found.setdefault(cell.about, []).append(cell)
    return found


def _measurements_of(question: str, results: Results) -> list[Measurement]:
    return [r for r in results if isinstance(r, Measurement) and r.trial.question == question]


def _ranking(answer: Answer, measured: Sequence[Measurement], style: Styles) -> Panel:
    ranked = [
        measurement for measurement in measured if names.is_closed(measurement.trial.load.label)
    ] or list(measured)
    reasons: dict[str, dict[str, str]] = {}
    for measurement in ranked:
        for flag in measurement.flags:
            if flag.severity is Severity.INVALID:
                # Blocks give the same reason with other figures: the first stands for them.
                kinds = reasons.setdefault(measurement.trial.label, {})
                kinds.setdefault(flag.kind, f"{flag.sentence.rstrip('.')}.")
    return ranking(answer, _highest_reached(ranked), {k: list(v.values()) for k, v in reasons.items()}, style)


def _highest_reached(measured: Sequence[Measurement]) -> dict[str, float]:
    """Return the most that each contestant reached, also where it was set aside."""
    found: dict[str, float] = {}
    for measurement in measured:
        label = measurement.trial.label
        found[label] = max(found.get(label, 0.0), measurement.load.throughput_rps)
    return found


def _by_driver(answer: Answer) -> dict[str, Any]:
    return {
        "about": names.sentence_case(visible(answer.about)),
        "tables": [
            (table.load, [(anchor(answer.question, row.label), row.texts) for row in table.rows])
            for table in verdict_tables.driver_tables(answer)
        ],
        "reach": verdict_tables.reach(answer),
    }


def _why(answer: Answer, measured: Sequence[Measurement]) -> dict[str, Any]:
    return {
        "about": names.sentence_case(visible(answer.about)),
        "sentences": [visible(sentence) for sentence in answer.why],
        "see": evidence.little_sentence([m for m in measured if names.is_closed(m.trial.load.label)]),
        "reasons": evidence.reasons(answer, measured),
    }


def environment() -> jinja2.Environment:
    """Return what renders templates of this folder; every text in them is escaped."""
    loader = jinja2.FunctionLoader(template_text)
    found = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    found.filters["backticks"] = backticks
    return found


BACKTICKS = re.compile("`([^`]+)`")


def backticks(text: str) -> Markup:
    """Return a sentence, escaped, in which what stands between backticks is code."""
    return Markup(BACKTICKS.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before


def template_text(name: str) -> str:
    """Return a file of the templates' folder."""
    return resources.files("velodrome.report").joinpath("templates", name).read_text(encoding="utf-8")


def cards(verdict: Verdict) -> list[Card]:
    """Return the verdicts, in the order of the study."""
    found = []
    for answer in verdict.answers:
        best, beside = names.headline(answer)
        found.append(
            Card(
                f"question-{answer.question}",
                names.sentence_case(visible(answer.about)),
                answer.outcome.value,
                best,
                beside,
                visible(names.short_sentence(answer)),
                runner_up(answer),
                visible(answer.limit),
                [visible(sentence) for sentence in answer.why[:WHY_IN_CARD]],
                visible(answer.to_settle),
                answer.deploy,
                again(verdict, answer),
            )
        )
    return found


def runner_up(answer: Answer) -> str:
    """Return who comes after those named best, with its rate and its ratio to the best."""
    after = [s for s in answer.standings if s.rank is not None and s.contestant not in answer.best]
    if not after or after[0].throughput_rps is None:
        return ""
    next_one = after[0]
    rate = estimate(after[0].throughput_rps)
    ratio = f", {quantity.ratio(next_one.ratio_to_best)} the best" if next_one.ratio_to_best else ""
    return f"Next: {names.of_standing(next_one)}, {rate} requests/s{ratio}."


def ranking(
    answer: Answer, rates: Mapping[str, float], reasons: Mapping[str, Sequence[str]], style: Styles
) -> Panel:
    """Return the ranking of a question.

    `rates` holds what contestants reached where that was set aside, `reasons` why it was; both by label.
    """
    rows, aside = [], []
    for standing in answer.standings:
        why = _aside(standing, reasons.get(standing.contestant, ()))
        if standing.rank is None:
            aside.append(why)
        colour = style[standing.contestant][0]
        rows.append(_ranked_row(standing, rates.get(standing.contestant), colour, why))
    see = _front(answer)
    ceilings = _ceilings(answer)
    if ceilings:
        see += " An upright stroke marks the ceiling that waiting sets."
    load = next((v.load for s in answer.standings for v in s.latency if names.is_closed(v.load)), "")
    about = names.sentence_case(answer.about)
    figure = charts.ranking(rows, f"Ranking by requests per second: {about}")
    return Panel(about, names.load_label(load), see, figure, (), [*aside, *ceilings])


def _ceilings(answer: Answer) -> list[str]:
    """Return each ceiling once, with all whom it holds."""
    found: dict[str, list[str]] = {}
    for standing in answer.standings:
        if standing.ceiling and standing.rank is not None:
            found.setdefault(standing.ceiling, []).append(names.of_standing(standing))
    return [f"ceiling {ceiling}: {names.join_words(who)}" for ceiling, who in found.items()]


def _front(answer: Answer) -> str:
    """Say who is in front and how many share the place."""
    first = [standing for standing in answer.standings if standing.rank == 1]
    if not first:
        return "Nothing valid was measured."
    if len(first) == 1:
        return f"{names.of_standing(first[0])} stands alone in front."
    return f"{len(first)} share the first place: their differences are not settled."


def _ranked_row(standing: Standing, measured: float | None, colour: str, aside: str) -> charts.Ranked:
    rate, name = standing.throughput_rps, names.of_standing(standing)
    if rate is not None and standing.rank is not None:
        value = names.throughput(standing)
        title = f"{standing.place}  {name}"
        three = (rate.low, rate.mid, rate.high)
        hint = " ".join(filter(None, (f"{name}: {value} requests/s.", standing.stopped)))
        return charts.Ranked(title, value, *three, standing.ceiling_rps, standing.rank, colour, hint)
    shown = quantity.number(measured) if measured else "failed" if standing.failed else quantity.MISSING
    return charts.Ranked(f"⚑  {name}", shown, measured, measured, measured, None, None, colour, aside)


def _aside(standing: Standing, reasons: Sequence[str]) -> str:
    """Return why a contestant has no rank: the first reasons, the others are in its details."""
    notes = [standing.failed] if standing.failed else list(reasons or standing.notes)
    more = f" (and {len(notes) - 2} more)" if len(notes) > 2 else ""
    text = " ".join(notes[:2]) or "nothing valid was measured"
    return f"⚑ {names.of_standing(standing)}: {visible(text)}{more}"


PERCENTILES = (("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9))


def latency(answer: Answer, style: Styles) -> Panel:
    """Return the percentile curves of a question, from due and from sent."""
    views = [(s, names.latency_view(s.latency)) for s in answer.standings]
    seen = [(s, view) for s, view in views if view is not None and (view.curve_due or view.curve_sent)]
    about = names.sentence_case(answer.about)
    if not seen:
        drivers = names.join_words(
            sorted({view.by.name for _, view in views if view is not None and view.by})
        )
        what = (
            f"{drivers} reports percentiles, not curves: see Drivers."
            if drivers
            else "No latency was measured."
        )
        if any(not view.compares for s in answer.standings for view in s.latency):
            what = "No open loop was run, and in a closed loop latencies compare nothing."
        return Panel(about, "", what, NO_FIGURE)
    known = [ms for _, v in seen for p, ms in (*v.curve_due, *v.curve_sent) if ms > 0 and p >= 50]
    low, high = min(known, default=1.0) / 1.15, max(known, default=1.0) * 1.15
    high = max(high, low * 2)
    drawn: dict[str, Markup] = {}
    keys: dict[str, list[Key]] = {}
    heads: Sequence[str] = ()
    for kind in ("due", "sent"):
        # A driver that does not know when requests were due has a single curve, by its own definition.
        sides = [
            (v.curve_due if kind == "due" else v.curve_sent) or v.curve_sent or v.curve_due for _, v in seen
        ]
        curves = [
            charts.Curve(number, side, *style[s.contestant])
            for number, ((s, _), side) in enumerate(zip(seen, sides, strict=True), 1)
        ]
        drawn[kind] = charts.latency(curves, low, high, f"Latency by percentile, from {kind}: {about}")
        values = [_percentiles(view, kind) for _, view in seen]
        if kind == "due":
            heads = _worth_a_column(values)
        keys[kind] = _align_keys(
            [
                _key(answer, n, s, [quantity.milliseconds(found.get(head)) for head in heads], style)
                for n, ((s, _), found) in enumerate(zip(seen, values, strict=True), 1)
            ]
        )
    shown = seen[0][1]
    by_another = "" if names.basis(shown) == names.FROM_DUE else f"; latency is {names.basis(shown)}"
    load = f"{names.load_label(shown.load)}{by_another}"
    see = _slowest_and_fastest(seen)
    return Panel(about, load, see, drawn["due"], keys["due"], (), drawn["sent"], keys["sent"], heads)


def _percentiles(view: LatencyView, kind: str) -> dict[str, float | None]:
    """Return the percentiles that rest on enough requests (those the verdict gives), and the maximum."""
    enough = {"p50": view.p50_ms, "p90": view.p90_ms, "p99": view.p99_ms, "p99.9": view.p99_9_ms}
    if kind == "due":
        return {**enough, "max": view.max_ms}
    sent = {
        name: at(view.curve_sent, tail(p)) if enough[name] is not None else None for name, p in PERCENTILES
    }
    return {**sent, "max": view.curve_sent[-1][1] if view.curve_sent else None}


def _worth_a_column(values: Sequence[Mapping[str, float | None]]) -> tuple[str, ...]:
    """Return the percentiles that anybody has; p90 only where there is room."""
    heads = [head for head in (*(name for name, _ in PERCENTILES), "max") if any(v.get(head) for v in values)]
    return tuple(head for head in heads if head != "p90" or len(heads) <= 4)


def _slowest_and_fastest(seen: Sequence[tuple[Standing, LatencyView]]) -> str:
    """Say what the curves show at the highest percentile that most of them have."""
    end = "A line that turns upwards to the right keeps a few waiting."
    for words, field in (("99 of 100", "p99_ms"), ("9 of 10", "p90_ms"), ("Half of the", "p50_ms")):
        values = [(getattr(view, field), names.of_standing(s)) for s, view in seen if getattr(view, field)]
        if len(values) * 2 > len(seen):
            (fast, first), (slow, last) = min(values), max(values)
            times = f"{quantity.milliseconds(fast)} ms by {first}"
            times += f", within {quantity.milliseconds(slow)} ms by {last}" if len(values) > 1 else ""
            return f"{words} requests were answered within {times}. {end}"
    return end


def _align_keys(keys: Sequence[Key]) -> list[Key]:
    """Return the rows with the decimal points of each column under each other."""
    if not any(key.cells for key in keys):
        return [*keys]  # all fell behind: there are curves, and no percentile that tells of a server
    columns = [align_figures(column) for column in zip(*(key.cells for key in keys), strict=True)]
    return [replace(key, cells=cells) for key, cells in zip(keys, zip(*columns, strict=True), strict=True)]


def _key(answer: Answer, number: int, standing: Standing, cells: Sequence[str], style: Styles) -> Key:
    colour, dash = style[standing.contestant]
    link = anchor(answer.question, standing.contestant)
    return Key(number, names.of_standing(standing), link, colour, " ".join(map(str, dash)), cells)


def cost(answer: Answer, style: Styles) -> Panel:
    """Return what a question costs each contestant: CPU and memory."""
    about = names.sentence_case(answer.about)
    points: list[charts.Cost] = []
    keys: list[Key] = []
    for standing in answer.standings:
        cpu, memory = standing.cpu_us_per_request, standing.memory_bytes
        # What was set aside wins nothing, so it has no place on the front either.
        if standing.rank is None or cpu is None or cpu.mid <= 0 or not memory:
            continue
        number = len(points) + 1
        name, rate = names.of_standing(standing), 1e6 / cpu.mid
        hint = f"{name}: {quantity.number(rate)} requests per CPU-second, {quantity.memory(memory)}"
        points.append(charts.Cost(number, memory / 1e6, rate, style[standing.contestant][0], hint))
        cells = [quantity.number(rate), estimate(cpu), quantity.megabytes(memory)]
        keys.append(_key(answer, number, standing, cells, style))
    if not points:
        return Panel(about, "", "Neither CPU nor memory was measured.", NO_FIGURE)
    front = charts.pareto([(p.memory_mb, p.per_cpu_second) for p in points])
    on_front = [k.name for k, p in zip(keys, points, strict=True) if (p.memory_mb, p.per_cpu_second) in front]
    see = (
        f"Nobody beats {names.join_words(on_front)} in both: the dashed line joins them. "
        "A contestant below it costs more for the same work."
    )
    figure = charts.cost(points, front, f"Requests per CPU-second over memory: {about}")
    return Panel(about, "", see, figure, _align_keys(keys))


report = Format(
    "html", "report.html", lambda path, run: write(path, run.verdict, run.results, run.header, run.stacks)
)

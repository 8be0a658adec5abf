"""The two forms of a study: the full one, and a quick one that asks the same in less time.

[quick]
blocks = 1
scale = 0.3
skip = ["upload", "hello/granian-*", "canary"]
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from velodrome.model.claim import Claim, Figure, PublishedTable
from velodrome.model.load import Load, Schedule
from velodrome.model.study import Question, Study, matches
from velodrome.plan.findings import Findings, nearest
from velodrome.plan.schema import QuickTable
from velodrome.plan.toml_map import Path

Labels = Mapping[tuple[str, str], str]
"""Question and label of a load in the full form, to its label in the quick one."""

LEAST_S = 0.5
"""No span is made shorter than this, or than WAVES times the recipe's own wait: it would catch nothing."""
WAVES = 5
LEAST_WARMUP_S = 0.1
LEAST_REQUESTS = 500


@dataclass(frozen=True)
class Quick:
    """How the quick form differs from the full one."""

    blocks: int = 1
    budget_s: float | None = None
    scale: float = 0.25
    """Factor on spans and counts of requests."""
    skip: tuple[str, ...] = ()


def read_quick(entry: object, at: Path, study: Study, findings: Findings) -> Quick:
    """Return the quick form that a table tells of a study; what is wrong is in `findings`."""
    table = findings.check_in_part(QuickTable, entry, at) or QuickTable()
    cells = [f"{question.name}/{contestant.label}" for question, contestant in study.pairs()]
    loads = [
        f"{question.name}/{contestant.label}/{load.label}"
        for question, contestant in study.pairs()
        for load in question.loads
    ]
    names = [*cells, *(experiment.name for experiment in study.experiments), *loads]
    questions = [question.name for question in study.questions]
    for index, pattern in enumerate(table.skip):
        if not any(matches(name, pattern) for name in names if pattern.count("/") in (0, name.count("/"))):
            near = nearest(pattern, {*names, *questions})
            findings.add(
                (*at, "skip", index),
                f"'{pattern}' is no question, question/contestant, load of one, or experiment; {near}",
            )
    return Quick(table.blocks, table.budget, table.scale, tuple(table.skip))


def quick(study: Study, form: Quick) -> Study:
    """Return the quick form of a study."""
    questions = [
        replace(
            question,
            loads=tuple(scaled(load, form.scale, question) for load in question.loads),
            profile=scaled(question.profile, form.scale, question) if question.profile else None,
        )
        for question in study.questions
    ]
    now = {
        (full.name, load.label): less.label
        for full, scaled_down in zip(study.questions, questions, strict=True)
        for load, less in zip(full.loads, scaled_down.loads, strict=True)
    }
    return replace(
        study,
        form="quick",
        blocks=form.blocks,
        budget_s=form.budget_s if form.budget_s is not None else study.budget_s,
        skipped=form.skip,
        questions=tuple(questions),
        claims=tuple(_of_form(claim, now) for claim in study.claims),
        tables=tuple(_rows_of_form(table, now) for table in study.tables),
    )


def _of_form(claim: Claim, now: Labels) -> Claim:
    """Return a claim whose figures name the loads as they are called in this form: a count is in a label."""
    return replace(
        claim,
        checks=tuple(
            replace(
                check,
                figure=_under(check.figure, now),
                over=_under(check.over, now) if check.over else None,
                than=(_under(check.than[0], now), _under(check.than[1], now)) if check.than else None,
            )
            for check in claim.checks
        ),
    )


def _rows_of_form(table: PublishedTable, now: Labels) -> PublishedTable:
    """Return a published table whose rows name the loads as they are called in this form."""
    rows = []
    for row in table.rows:
        question = row.of.partition("/")[0]
        loads = tuple(now.get((question, load), load) for load in row.loads or table.loads)
        rows.append(replace(row, loads=loads))
    return replace(table, rows=tuple(rows))


def _under(figure: Figure, now: Labels) -> Figure:
    question = figure.cell.partition("/")[0]
    return replace(figure, load=now.get((question, figure.load), figure.load))


def scaled(load: Load, scale: float, question: Question) -> Load:
    """Return a load in little: never longer than it was, never too short to mean anything."""
    least_s = min(load.duration_s, max(LEAST_S, WAVES * question.recipe.wait_ms / 1000))
    requests = load.requests
    if isinstance(load.pace, Schedule) and requests is None:
        return _shortened(load, load.pace, scale, least_s)
    if requests is not None:
        requests = max(min(requests, LEAST_REQUESTS), round(requests * scale))
    return replace(
        load,
        duration_s=load.duration_s if requests is not None else max(least_s, load.duration_s * scale),
        warmup_s=max(min(load.warmup_s, LEAST_WARMUP_S), load.warmup_s * scale),
        requests=requests,
    )


def _shortened(load: Load, pace: Schedule, scale: float, least_s: float) -> Load:
    """Return a schedule whose steps are as many and as high, and each so much shorter."""
    factor = max(least_s / load.duration_s, scale)
    steps = tuple(replace(step, duration_s=step.duration_s * factor) for step in pace.steps)
    return replace(
        load,
        pace=replace(pace, steps=steps),
        duration_s=load.duration_s * factor,
        warmup_s=max(min(load.warmup_s, LEAST_WARMUP_S), load.warmup_s * scale),
    )

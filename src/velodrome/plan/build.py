"""From the tables of a study file to a Study; what a table cannot know by itself is checked here."""

from collections.abc import Sequence
from dataclasses import replace

from velodrome.guest.catalog import serves
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant
from velodrome.plan.claims import read_claims
from velodrome.plan.contestants import read_contestant
from velodrome.plan.experiments import read_experiment
from velodrome.plan.findings import Findings, nearest
from velodrome.plan.forms import Quick, read_quick
from velodrome.plan.known import Known
from velodrome.plan.published import read_tables
from velodrome.plan.questions import read_limits, read_questions
from velodrome.plan.schema import StudyTable
from velodrome.plan.toml_map import Path

Placed = Sequence[tuple[Question, Path]]
MOST_HEATS = 100_000
"""Of a study: at a second each they would take more than a day."""


def build(tables: object, name: str, known: Known, findings: Findings) -> tuple[Study, Quick]:
    """Return the study a file tells, and its quick form. They are whole only if `findings` holds no problem."""
    table = findings.check_in_part(StudyTable, tables, ()) or StudyTable()
    limits = read_limits(table.limits, ("limits",), findings)
    before = findings.count
    read = [
        read_contestant(entry, ("contestants", index), known, findings)
        for index, entry in enumerate(table.contestants)
    ]
    contestants = [contestant for contestant in read if contestant]
    findings.once(
        ("contestants",),
        [(one.label, ("contestants", index)) for index, one in enumerate(read) if one],
    )
    questions = read_questions(table.questions, ("questions",), known, findings)
    findings.once(("questions",), [(question.name, place) for question, place in questions])
    tried = [
        read_experiment(entry, ("experiments", index), known, findings)
        for index, entry in enumerate(table.experiments)
    ]
    findings.once(
        ("experiments",), [(one.name, ("experiments", index)) for index, one in enumerate(tried) if one]
    )
    _countable(len(contestants), questions, table.blocks, findings)
    if findings.count == before:
        _named(contestants, questions, findings)
    if findings.count == before:
        _servable(contestants, questions, known, findings)
    study = Study(
        name=table.name or name,
        title=table.title or table.name or name,
        questions=tuple(question for question, _ in questions),
        contestants=tuple(contestants),
        blocks=table.blocks,
        seed=table.seed,
        budget_s=table.budget,
        limits=limits,
        sources=tuple(table.sources),
        experiments=tuple(one for one in tried if one),
    )
    study = replace(
        study,
        claims=read_claims(table.claims, ("claims",), study, findings),
        tables=read_tables(table.tables, ("tables",), study, findings),
    )
    return study, read_quick(table.quick, ("quick",), study, findings)


def _countable(contestants: int, questions: Placed, blocks: int, findings: Findings) -> None:
    """Tell what would take days, before it is laid out in memory."""
    heats = contestants * len(questions) * blocks
    if heats > MOST_HEATS:
        findings.add(
            ("questions",),
            f"{contestants} contestants, {len(questions)} questions and {blocks} blocks come to {heats} heats; give at "
            f"most {MOST_HEATS}",
        )


def _named(contestants: Sequence[Contestant], questions: Placed, findings: Findings) -> None:
    """A question may name only contestants of the study."""
    labels = [contestant.label for contestant in contestants]
    for question, at in questions:
        for index, label in enumerate(question.contestants):
            if label not in labels:
                findings.add(
                    (*at, "contestants", index), f"'{label}' is no contestant; {nearest(label, labels)}"
                )


def _servable(contestants: Sequence[Contestant], questions: Placed, known: Known, findings: Findings) -> None:
    """A pair that cannot be served is left out of a race; a whole row or column of such is a mistake."""
    refused = {
        (contestant.label, question.name): serves(known.stacks[contestant.stack], question.recipe)
        for question, _ in questions
        for contestant in contestants
        if not question.contestants or contestant.label in question.contestants
    }
    for index, contestant in enumerate(contestants):
        row = [reason for (label, _), reason in refused.items() if label == contestant.label]
        if not row and questions:
            findings.add(
                ("contestants", index), "no question asks for it; leave it out, or name it in a question"
            )
        elif row and all(row):
            findings.add(
                ("contestants", index), f"it can serve no question of this study: {row[0]}; leave it out"
            )
    told = set()
    for question, at in questions:
        column = [reason for (_, name), reason in refused.items() if name == question.name]
        if column and all(column) and at not in told:  # the questions of several links stand at one place
            told.add(at)
            findings.add((*at, "recipe"), f"no contestant can serve it: {column[0]}; add one that can")

"""From a study to its heats, in the order they run.

A block holds every question × contestant once, in an order drawn from the seed; no block begins before the
one before it has ended. So a machine that gets slower in the course of a race gets slower for all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from velodrome.guest.catalog import serves
from velodrome.guest.stack import Stack
from velodrome.model.claim import Claim
from velodrome.model.errors import NothingSelectedError
from velodrome.model.experiment import Experiment
from velodrome.model.load import Load
from velodrome.model.study import Question, Study, matches
from velodrome.model.trial import Contestant, Session, Trial


@dataclass(frozen=True)
class LeftOut:
    """A pair that is not raced, and why."""

    cell: str
    """`question/contestant`."""
    reason: str


@dataclass(frozen=True)
class Matrix:
    """What a study comes to, in the order it is run."""

    experiments: tuple[Experiment, ...]
    heats: tuple[Session, ...]
    profiles: tuple[Trial, ...]
    """One of each cell of the questions that ask for profiles."""
    left_out: tuple[LeftOut, ...]


def lay_out(study: Study, stacks: Mapping[str, Stack], only: Sequence[str] = (), python: str = "") -> Matrix:
    """Return all of a study in order, or what matches one of the patterns `only`.

    A pattern is `question/contestant`, `question` alone, either with `*` and `?`, or the name of an experiment.
    A filtered race keeps the order of the whole one. Raises NothingSelectedError when a pattern matches nothing.
    """
    pairs, left_out = _pairs(study, stacks)
    cells = [f"{question.name}/{contestant.label}" for question, contestant in pairs]
    experiments = [one for one in study.experiments if not study.skips(one.name)]
    for pattern in only:
        if not any(matches(name, pattern) for name in (*cells, *(one.name for one in experiments))):
            raise NothingSelectedError(pattern, cells)
    chosen = [not only or any(matches(cell, pattern) for pattern in only) for cell in cells]
    heats = [
        _heat(study, pairs[index], block, python)
        for block in range(study.blocks)
        for index in order(study.seed, block, len(pairs))
        if chosen[index]
    ]
    profiles = [
        _trial(study, pair, pair[0].profile, 0, python)
        for pair, wanted in zip(pairs, chosen, strict=True)
        if wanted and pair[0].profile
    ]
    tried = [one for one in experiments if not only or any(matches(one.name, pattern) for pattern in only)]
    return Matrix(tuple(tried), tuple(heats), tuple(profiles), tuple(left_out))


def narrowed(study: Study, laid_out: Matrix) -> Study:
    """Return the study without the questions, contestants, experiments and claims that none of this is about."""
    trials = [trial for heat in laid_out.heats for trial in heat.trials]
    questions = {trial.question for trial in trials}
    contestants = {trial.contestant.label for trial in trials}
    there = {trial.cell for trial in trials} | {one.name for one in laid_out.experiments}
    return replace(
        study,
        questions=tuple(one for one in study.questions if one.name in questions),
        contestants=tuple(one for one in study.contestants if one.label in contestants),
        experiments=laid_out.experiments,
        claims=tuple(claim for claim in study.claims if _names(claim) & there),
        tables=tuple(
            replace(table, rows=rows)
            for table in study.tables
            if (rows := tuple(row for row in table.rows if row.of in there))
        ),
    )


def _names(claim: Claim) -> set[str]:
    """Return the cells and experiments that a claim rests on."""
    figures = [
        figure for one in claim.checks for figure in (one.figure, one.over, *(one.than or ())) if figure
    ]
    return {figure.experiment or figure.cell for figure in figures}


def order(seed: int, block: int, count: int) -> list[int]:
    """Return the numbers below `count` in the order drawn for a block.

    Not `shuffle`: of the random module, Python promises only that `random()` gives the same sequence for the
    same seed in every version («Notes on Reproducibility»); seeding with a text hashes it by SHA-512, which
    no hash seed of the process touches. So a stored seed means the same order for ever.
    """
    draw = Random(f"{seed}/{block}")
    return [index for _, index in sorted((draw.random(), index) for index in range(count))]


def _pairs(
    study: Study, stacks: Mapping[str, Stack]
) -> tuple[list[tuple[Question, Contestant]], list[LeftOut]]:
    pairs, left_out = [], []
    for question, contestant in study.pairs():
        reason = serves(stacks[contestant.stack], question.recipe)
        if reason:
            left_out.append(LeftOut(f"{question.name}/{contestant.label}", reason))
        else:
            pairs.append((question, contestant))
    return pairs, left_out


def _heat(study: Study, pair: tuple[Question, Contestant], block: int, python: str) -> Session:
    return Session(tuple(_trial(study, pair, load, block, python) for load in study.loads(*pair)))


def _trial(study: Study, pair: tuple[Question, Contestant], load: Load, block: int, python: str) -> Trial:
    question, contestant = pair
    limits = question.limits or study.limits
    return Trial(
        study.name,
        question.name,
        question.recipe,
        contestant,
        load,
        limits,
        block,
        python,
        question.link,
        question.app,
    )

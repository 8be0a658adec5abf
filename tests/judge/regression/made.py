"""Made-up runs to be compared: of one cell, each block given by its figures."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.judge import made
from tests.judge.made import HELLO, OPEN, STACKS

from velodrome.judge import before_after
from velodrome.judge.regression import EVERYTHING, DiffCriteria, diff
from velodrome.model.difference import Diff, Difference
from velodrome.model.load import Load
from velodrome.model.measurement import Measurement
from velodrome.model.results import Result, Results
from velodrome.model.study import Question

CLOSED_Q = Question("hello", HELLO, (made.CLOSED,))
OPEN_Q = Question("hello", HELLO, (OPEN,))
BEFORE_Q, AFTER_Q = (Question(name, HELLO, (made.CLOSED,)) for name in ("before", "after"))
BEFORE_OPEN, AFTER_OPEN = (Question(name, HELLO, (OPEN,)) for name in ("before", "after"))


def rates(values: Sequence[float], question: Question = CLOSED_Q, **facts: Any) -> list[Measurement]:
    """One measurement a block, in the closed loop."""
    return made.steady("uvicorn", values, question, **{"latencies_ms": [5.0] * 400, **facts})


def latencies(
    blocks: Sequence[Sequence[float]], question: Question = OPEN_Q, load: Load = OPEN, rps: float = 100
) -> list[Measurement]:
    """One measurement a block, in the open loop, of these milliseconds."""
    return [
        made.measured(made.trial("uvicorn", question, number, load), rps, latencies_ms=block)
        for number, block in enumerate(blocks)
    ]


def stored(trials: Sequence[Result], *questions: Question, **facts: Any) -> Results:
    return made.results(list(trials), questions or (CLOSED_Q,), **facts)


def two_runs(
    before: Sequence[Result],
    after: Sequence[Result],
    *questions: Question,
    criteria: DiffCriteria = EVERYTHING,
) -> Diff:
    return diff(before_after.runs(stored(before, *questions), stored(after, *questions), STACKS), criteria)


def interleaved(
    before: Sequence[Result],
    after: Sequence[Result],
    questions: tuple[Question, Question] = (BEFORE_Q, AFTER_Q),
    criteria: DiffCriteria = EVERYTHING,
) -> Diff:
    """The two sides as questions of one run, whatever question the trials were made for."""
    asides = [
        replace(result, trial=replace(result.trial, question=question.name))
        for question, side in zip(questions, (before, after), strict=True)
        for result in side
    ]
    return diff(before_after.revisions(stored(asides, *questions), STACKS), criteria)


def figure(found: Diff, metric: str, load: str = "") -> Difference:
    (difference,) = [
        difference
        for difference in found.differences
        if difference.metric == metric and difference.load.startswith(load)
    ]
    return difference

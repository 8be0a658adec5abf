"""What stands before and what after: two stored runs of the same cells, or two questions of one interleaved run.

    runs(before, after, stacks)        # cells of the same names
    revisions(run, stacks)             # questions `before` and `after`, block by block

Both give the pairs of cells to compare, and what else must be said of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from velodrome.guest.stack import Stack
from velodrome.judge.differing.looks import looks
from velodrome.judge.field import Runner, runners
from velodrome.judge.figures.cell import Cell
from velodrome.judge.settling import block_s
from velodrome.judge.verdict import same_machine, set_aside
from velodrome.judge.words import listed, sentence
from velodrome.model.difference import Side
from velodrome.model.errors import NotTwoSidesError
from velodrome.model.load import Load
from velodrome.model.measurement import Failed, FailureKind, Measurement
from velodrome.model.results import Results
from velodrome.model.study import Question

BEFORE, AFTER = "before", "after"
"""Names of the questions of a run that races two revisions of an app."""
BROKEN = frozenset(
    {FailureKind.START, FailureKind.NEVER_ANSWERED, FailureKind.WRONG_ANSWER, FailureKind.DIED}
)
"""Failures that are the server's own."""


@dataclass(frozen=True)
class Pairing:
    """One cell of both sides under one load."""

    question: str
    before: Cell
    after: Cell
    load: Load

    @property
    def broken(self) -> tuple[str, str]:
        """Why a side cannot be measured at all, by its own fault and in every block: before, after; or nothing."""
        return _broken(self.before, self.load), _broken(self.after, self.load)


@dataclass(frozen=True)
class Sides:
    """All that is compared."""

    before: Side
    after: Side
    paired: bool
    pairings: tuple[Pairing, ...]
    set_aside: tuple[str, ...]
    notes: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    block_s: float = 0.0
    looks: int = 1
    """How often the race was looked at while it went on."""


def runs(
    before: Results, after: Results, stacks: Mapping[str, Stack], names: tuple[str, str] = (BEFORE, AFTER)
) -> Sides:
    """Return the cells that two stored runs have in common.

    Raises DifferentMachinesError, or NotTwoSidesError when they have none.
    """
    same_machine([before.header, after.header])
    ours, theirs = _cells(before, stacks), _cells(after, stacks)
    shared = [cell for cell in ours if cell in theirs]
    if not shared:
        raise NotTwoSidesError(names, ["/".join(one) for one in ours], ["/".join(one) for one in theirs])
    pairings = [
        Pairing(name[0], ours[name], theirs[name], load)
        for name in shared
        for load in _loads(ours[name], theirs[name])
    ]
    return Sides(
        before=Side(names[0], _when(before)),
        after=Side(names[1], _when(after)),
        paired=False,
        pairings=tuple(pairings),
        set_aside=(*_aside("before", before, stacks), *_aside("after", after, stacks)),
        notes=(*_only_one(ours, theirs), *_changed(pairings), *_other_load(ours, theirs, shared)),
        environment=_environment(before),
        block_s=_block_s((before, after), pairings),
    )


def revisions(run: Results, stacks: Mapping[str, Stack]) -> Sides:
    """Return the cells of the questions `before` and `after` of one run, interleaved block by block.

    Raises NotTwoSidesError when it has no such questions.
    """
    questions = {one.name: one for one in run.header.study.questions}
    if BEFORE not in questions or AFTER not in questions:
        raise NotTwoSidesError((run.header.study.name,), list(questions), [])
    fields = [
        {one.label: Cell(questions[name], one) for one in runners(questions[name], run.trials, stacks)}
        for name in (BEFORE, AFTER)
    ]
    pairings = [
        Pairing(_asked(questions[BEFORE]), fields[0][label], fields[1][label], load)
        for label in fields[0]
        if label in fields[1]
        for load in questions[BEFORE].loads
    ]
    return Sides(
        before=Side(_revision(questions[BEFORE]) or BEFORE),
        after=Side(_revision(questions[AFTER]) or AFTER),
        paired=True,
        pairings=tuple(pairings),
        set_aside=tuple(set_aside(run.trials, stacks)),
        notes=tuple(_changed(pairings)),
        environment=_environment(run),
        block_s=_block_s((run,), pairings),
        looks=looks(max((one.trial.block + 1 for one in run.trials), default=0)),
    )


def _cells(run: Results, stacks: Mapping[str, Stack]) -> dict[tuple[str, str], Cell]:
    return {
        (question.name, runner.label): Cell(question, runner)
        for question in run.header.study.questions
        for runner in runners(question, run.trials, stacks)
    }


def _loads(before: Cell, after: Cell) -> Iterator[Load]:
    labels = {load.label for load in after.question.loads}
    return (load for load in before.question.loads if load.label in labels)


def _broken(cell: Cell, load: Load) -> str:
    failed: Sequence[Failed] = [one for one in cell.runner.failed if one.trial.load.label == load.label]
    if cell.runner.under(load) or not failed or any(one.failure not in BROKEN for one in failed):
        return ""
    return failed[0].reason


def _revision(question: Question) -> str:
    return question.app.revision if question.app else ""


def _asked(question: Question) -> str:
    """Return what both questions ask, whatever their revision."""
    return question.app.path if question.app else question.recipe.name


def _when(run: Results) -> str:
    return f"run at {run.header.started_at}" if run.header.started_at else ""


def _environment(run: Results) -> dict[str, str]:
    facts = {name: str(value) for name, value in run.header.machine.items() if value is not None}
    return {**facts, "velodrome": run.header.velodrome, "started": run.header.started_at}


def _aside(side: str, run: Results, stacks: Mapping[str, Stack]) -> Iterator[str]:
    return (f"{side}: {told}" for told in set_aside(run.trials, stacks))


def _only_one(ours: Iterable[tuple[str, str]], theirs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for side, some, others in (("before", ours, theirs), ("after", theirs, ours)):
        lone = ["/".join(cell) for cell in some if cell not in set(others)]
        if lone:
            yield sentence(f"only {side}, so not compared: {listed(lone)}")


def _other_load(
    ours: Mapping[tuple[str, str], Cell],
    theirs: Mapping[tuple[str, str], Cell],
    shared: Sequence[tuple[str, str]],
) -> Iterator[str]:
    for question in dict.fromkeys(name for name, _ in shared):
        cells = [side[cell] for side in (ours, theirs) for cell in shared if cell[0] == question]
        loads = [{load.label: load for load in one.question.loads} for one in (cells[0], cells[-1])]
        lone = sorted(loads[0].keys() ^ loads[1].keys())
        if lone:
            yield sentence(f"{question}: under one side's loads only, so not compared: {listed(lone)}")
        longer = [
            label
            for label in loads[0]
            if label in loads[1] and loads[0][label].duration_s != loads[1][label].duration_s
        ]
        if longer:
            yield sentence(f"{question}: the spans of {listed(longer)} differ in length")


def _changed(pairings: Sequence[Pairing]) -> Iterator[str]:
    """Yield what differs between the sides beside what is measured: interpreters, packages, limits."""
    told: dict[str, None] = {}
    for one in pairings:
        before, after = _last(one.before.runner), _last(one.after.runner)
        if before is None or after is None:
            continue
        called = one.before.runner.called
        if before.python != after.python:
            told[f"{called}: Python {before.python} before, {after.python} after"] = None
        if before.trial.limits != after.trial.limits:
            told[f"{called}: the limits of the server differ"] = None
        names = sorted({*before.packages, *after.packages})
        versions = [
            f"{name} {before.packages.get(name, 'not there')} → {after.packages.get(name, 'gone')}"
            for name in names
            if before.packages.get(name) != after.packages.get(name)
        ]
        if versions:
            told[f"{called}: {listed(versions)}"] = None
    yield from map(sentence, told)


def _last(runner: Runner) -> Measurement | None:
    return runner.measured[-1] if runner.measured else None


def _block_s(found: Sequence[Results], pairings: Sequence[Pairing]) -> float:
    """Return the seconds that one more block of both sides takes."""
    both = [cell for one in pairings for cell in (one.before, one.after)]
    cells = {(cell.question.name, cell.runner.label) for cell in both}
    times = 1 if len(found) == 1 else 2
    each = [one for run in found for one in run.trials]
    return times * sum(block_s(each, [label], question) for question, label in cells)

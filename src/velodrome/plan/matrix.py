"""From a study to its server sessions in the order they run, and how long that takes.

A block holds every question × contestant once, in an order drawn from the seed; no block begins before the
last block has ended. So a machine that gets slower in the course of a race gets slower for all.

`grid` is the matrix of a tuning: every stack that can serve, with the values of its knobs that make sense on so many
CPUs: gunicorn-gthread[threads=16,workers=2], uvicorn[workers=2], …

`session_s` and `race_s` estimate the time before anything runs, right to about a fifth on an idle machine.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random

from velodrome.guest.catalog import serves
from velodrome.guest.stack import KnobValue, Stack
from velodrome.model.claim import Claim, Experiment
from velodrome.model.errors import NothingSelectedError
from velodrome.model.littles_law import Ceiling, ceiling
from velodrome.model.load import Closed, Load, Open, Schedule
from velodrome.model.study import Question, Study, matches
from velodrome.model.trial import Contestant, Session, Trial
from velodrome.model.tuning import Candidate


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
    sessions: tuple[Session, ...]
    profiles: tuple[Trial, ...]
    """A trial of each cell of the questions that ask for profiles."""
    left_out: tuple[LeftOut, ...]


def lay_out(study: Study, stacks: Mapping[str, Stack], only: Sequence[str] = (), python: str = "") -> Matrix:
    """Return all of a study in order, or what matches one of the patterns `only`.

    A pattern is `question/contestant`, `question` alone, either with `*` and `?`, or the name of an experiment.
    A filtered race keeps the order of the whole race. Raises NothingSelectedError when a pattern matches nothing.
    """
    pairs, left_out = _pairs(study, stacks)
    cells = [f"{question.name}/{contestant.label}" for question, contestant in pairs]
    # Over a link a question is called after both; its own name is meant, too.
    plain = [f"{_own_name(question)}/{contestant.label}" for question, contestant in pairs]
    experiments = [experiment for experiment in study.experiments if not study.skips(experiment.name)]
    for pattern in only:
        if not any(
            matches(name, pattern)
            for name in (*cells, *plain, *(experiment.name for experiment in experiments))
        ):
            raise NothingSelectedError(pattern, cells)
    chosen = [
        not only or any(matches(name, pattern) for pattern in only for name in names)
        for names in zip(cells, plain, strict=True)
    ]
    kept = {cell for cell, wanted in zip(cells, chosen, strict=True) if wanted}
    sessions = [
        session for block in range(study.blocks) for session in _block(study, pairs, kept, block, python)
    ]
    profiles = [
        _trial(study, pair, pair[0].profile, 0, python)
        for pair, wanted in zip(pairs, chosen, strict=True)
        if wanted and pair[0].profile
    ]
    tried = [
        experiment
        for experiment in experiments
        if not only or any(matches(experiment.name, pattern) for pattern in only)
    ]
    return Matrix(tuple(tried), tuple(sessions), tuple(profiles), tuple(left_out))


def beyond(study: Study, stacks: Mapping[str, Stack], laid_out: Matrix, block: int) -> tuple[Session, ...]:
    """Return, in order, what a block of any number consists of, of the cells of what was laid out."""
    pairs, _ = _pairs(study, stacks)
    python = laid_out.sessions[0].trials[0].python if laid_out.sessions else ""
    cells = {session.trials[0].cell for session in laid_out.sessions}
    return tuple(_block(study, pairs, cells, block, python))


def narrow(study: Study, laid_out: Matrix) -> Study:
    """Return the study without the questions, contestants, experiments and claims that none of this is about."""
    trials = [trial for session in laid_out.sessions for trial in session.trials]
    questions = {trial.question for trial in trials}
    contestants = {trial.contestant.label for trial in trials}
    there = {trial.cell for trial in trials} | {experiment.name for experiment in laid_out.experiments}
    return replace(
        study,
        questions=tuple(question for question in study.questions if question.name in questions),
        contestants=tuple(contestant for contestant in study.contestants if contestant.label in contestants),
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
        figure
        for check in claim.checks
        for figure in (check.figure, check.over, *(check.than or ()))
        if figure
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


def _own_name(question: Question) -> str:
    """Return the name of a question without that of its link."""
    return question.name.removesuffix(f"-{question.link.label}") if question.link else question.name


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


def _block(
    study: Study,
    pairs: Sequence[tuple[Question, Contestant]],
    cells: Collection[str],
    block: int,
    python: str,
) -> Iterator[Session]:
    """Yield a block in its order, of these cells alone: what is left out changes the order of nobody else."""
    for index in order(study.seed, block, len(pairs)):
        question, contestant = pairs[index]
        if f"{question.name}/{contestant.label}" in cells:
            yield _session(study, pairs[index], block, python)


def _session(study: Study, pair: tuple[Question, Contestant], block: int, python: str) -> Session:
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


THREADS = (4, 16, 64, 256)
REFINED: Mapping[str, tuple[int, ...]] = {"backlog": (128, 2048), "keepalive": (2, 75)}
"""Knobs that are tried around the best, with their values in seconds and connections."""


def grid(stacks: Iterable[Stack], cpus: int) -> tuple[Candidate, ...]:
    """Return all candidates on so many CPUs, in the order of stacks and knobs."""
    every = list(stacks)
    names = {stack.name for stack in every}
    # What a variant would be is among the settings of the stack that it is a variant of.
    return tuple(choice for stack in every if stack.variant_of not in names for choice in _of(stack, cpus))


def candidate(stack: Stack, knobs: Mapping[str, KnobValue]) -> Candidate:
    """Return one candidate. Raises KeyError for an unknown knob."""
    settings = stack.settings(knobs)
    changed = {name: value for name, value in knobs.items() if value != stack.knobs[name]}
    return Candidate(Contestant(stack.name, changed), int(settings.get("workers", 1)), stack.slots(settings))


def neighbours(best: Candidate, stack: Stack) -> tuple[Candidate, ...]:
    """Return the neighbours of a candidate in the knobs that decide nothing while a server keeps up."""
    settings = stack.settings(best.contestant.knobs)
    return tuple(
        candidate(stack, {**best.contestant.knobs, knob: value})
        for knob, values in REFINED.items()
        if knob in settings
        for value in values
        if value != settings[knob]
    )


def _of(stack: Stack, cpus: int) -> Iterator[Candidate]:
    values = {knob: _values(stack, knob, cpus) for knob in stack.knobs}
    axes = {knob: found for knob, found in values.items() if found}
    for chosen in product(*axes.values()):
        yield candidate(stack, dict(zip(axes, chosen, strict=True)))


def _values(stack: Stack, knob: str, cpus: int) -> tuple[KnobValue, ...]:
    """Return the values of a knob that are tried; none: it stays as it is."""
    if knob == "workers":
        # Where a worker serves one request at a time, the number of workers is how many are served at once.
        alone = stack.slots({**stack.knobs, "workers": 7}) == 7
        counts = (1, cpus, 2 * cpus + 1, 4 * cpus, 8 * cpus, 16 * cpus) if alone else (1, cpus, 2 * cpus)
        return tuple(sorted(set(counts)))
    if knob == "threads":
        return THREADS
    return stack.choices.get(knob, ())


START_S = 0.4
"""Start of a server until its first right answer has been checked; typical of two CPUs in 2026."""
STOP_S = 0.15
"""Orderly stop of a server and of the third party."""
COMPANION_S = 0.9
"""Start of a database, and its tables; several start at the same time, on the same CPU."""
LOAD_S = 0.12
"""Start of the generator, opening its connections, and writing down what it measured."""

COMMON_RPS = 3000.0
"""Of a Python server on one CPU, where nothing else bounds it."""


def session_s(session: Session, stacks: Mapping[str, Stack]) -> float:
    """Return the seconds one server session will take, all included."""
    companions = COMPANION_S * len(session.trials[0].recipe.services)
    loads = sum(_load_s(trial, stacks.get(trial.contestant.stack)) for trial in session.trials)
    return START_S + STOP_S + companions + loads


def race_s(sessions: Iterable[Session], stacks: Mapping[str, Stack]) -> float:
    """Return the seconds that server sessions take one after the other."""
    return sum(session_s(session, stacks) for session in sessions)


def _load_s(trial: Trial, stack: Stack | None) -> float:
    load = trial.load
    return (
        LOAD_S
        + load.warmup_s
        + _span_s(trial, stack)
        + (min(load.drain_s, _backlog_s(trial, stack)) if stack else 0)
    )


def _span_s(trial: Trial, stack: Stack | None) -> float:
    """Return the length of the measured span; that of a count is by what arithmetic allows, or a common rate."""
    load = trial.load
    if load.requests is None:
        return load.duration_s
    limit = _ceiling(trial, stack, load.pace) if stack else None
    return min(load.duration_s, load.requests / min(limit.rps if limit else COMMON_RPS, COMMON_RPS))


def _ceiling(trial: Trial, stack: Stack, pace: Closed | Open | Schedule) -> Ceiling | None:
    cpus = trial.limits.cpus
    given = cpus if isinstance(cpus, int) else None
    knobs, streams = trial.contestant.knobs, trial.load.streams
    rtt_ms = trial.link.rtt_ms if trial.link else 0.0
    return ceiling(stack, knobs, trial.recipe, pace, given, streams=streams, rtt_ms=rtt_ms)


def _backlog_s(trial: Trial, stack: Stack) -> float:
    """Return how long it takes to answer what is inside when the span ends."""
    limit = _ceiling(trial, stack, Closed(1_000_000))
    if limit is None or limit.bound == "connections":
        return trial.recipe.wait_ms / 1000
    pace, load = trial.load.pace, trial.load
    if isinstance(pace, Closed):
        return pace.connections / limit.rps
    return (
        max(0.0, pace.rate - limit.rps) * (load.duration_s + load.warmup_s) / limit.rps
        + trial.recipe.wait_ms / 1000
    )


SECONDS = 5.0
"""Five hundred samples: a share of them is known to two or three per cent."""


def with_profiles(study: Study) -> Study:
    """Return the study with a profile in every question."""
    return replace(study, questions=tuple(_with_profile(question) for question in study.questions))


def _with_profile(question: Question) -> Question:
    """Add a profile under the first open loop, where all contestants do the same work, or else under the first load."""
    if question.profile is not None or not question.loads:
        return question
    load = next((load for load in question.loads if isinstance(load.pace, Open)), question.loads[0])
    return replace(question, profile=as_profile(load))


def as_profile(load: Load) -> Load:
    """Return the load that a profile is taken under, made of a load of the race."""
    # By our own generator: it can be ended when the samples are taken.
    return replace(load, duration_s=SECONDS, requests=None, driver="velodrome", threads=1)

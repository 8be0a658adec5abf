"""What became worse or better: between two stored runs, or two revisions of an app that are raced for it.

compare_stored(before, None, criteria)          # the two revisions of one run
    diff(DiffSpec(app, "HEAD~1", "HEAD", Terms()), criteria, out, follower)

Revisions are raced block by block until the answer is settled.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.judge import before_after
from velodrome.judge.regression import EVERYTHING, DiffCriteria
from velodrome.judge.regression import diff as differing
from velodrome.judge.statistics import FIRST_LOOK, LAST_LOOK, next_look
from velodrome.model.diagnosis import Suspected
from velodrome.model.difference import Change, Diff
from velodrome.model.errors import NothingMeasuredError, RaceInterruptedError
from velodrome.model.measurement import Measurement
from velodrome.model.results import Results
from velodrome.model.study import Question, Study
from velodrome.plan import matrix
from velodrome.run.account import giving
from velodrome.run.apps import revisions
from velodrome.run.apps.revisions import Revision
from velodrome.run.lab import Lab
from velodrome.run.racing import race as racing
from velodrome.run.racing import store
from velodrome.run.racing.plan import RunPlan, plan_of, seat
from velodrome.usecases import apps, compare, race
from velodrome.usecases.apps import AppSpec
from velodrome.usecases.events import Events
from velodrome.usecases.suspects import machine_cpus, suspects
from velodrome.usecases.terms import Terms, refuse_count

BUDGET_S = 600.0
NAMES = (before_after.BEFORE, before_after.AFTER)


@dataclass(frozen=True)
class DiffSpec:
    """Which revisions of an app are raced, and how."""

    app: AppSpec
    before: str
    after: str
    terms: Terms
    extra: tuple[str, ...] = ()
    """Paths of stacks of the user's own."""
    budget_s: float = BUDGET_S
    blocks: int | None = None
    """So many, instead of until it is settled."""
    wait: bool = False
    """Wait while another velodrome measures."""


def diff(spec: DiffSpec, criteria: DiffCriteria, out: Path | None, follower: Events) -> Diff:
    """Check both revisions out, race them into `out`, or a folder of `runs/`, and compare them.

    Raises GitError, RevisionError, NotFromRevisionError and what a race raises.
    """
    with apps.commands_around(spec.app, follower.said), _prepare(spec, follower) as (study, lab):
        where = race.folder(study.name, out, resume=False)
        compared = race_revisions(
            study,
            lab,
            where,
            follower,
            criteria=criteria,
            budget_s=spec.budget_s,
            blocks=spec.blocks,
            wait_s=None if spec.wait else 0.0,
            report=follower.said,
        )
    follower.said(f"results are in {where}; show them again: velodrome diff {where}")
    return compared


@contextmanager
def _prepare(spec: DiffSpec, follower: Events) -> Iterator[tuple[Study, Lab]]:
    """Check both revisions out, and yield the study of them with its lab. Raises as `diff` does."""
    refuse_count("blocks", spec.blocks)
    with revisions.check_out(apps.folder(spec.app.cwd), (spec.before, spec.after)) as found:
        lab = apps.lab_for(spec.app, spec.extra)
        follower.said(f"{found[0].name} against {found[1].name}")
        study = lay_out(spec.app, found, spec.terms, lab)
        apps.say_unread(
            [question.app for question in study.questions],
            [lab.stacks[contestant.stack] for contestant in study.contestants],
            follower.said,
        )
        yield study, lab


def dry_run(spec: DiffSpec, follower: Events) -> RunPlan:
    """Return what `diff` would start. The app is imported at both revisions to see what it is.

    Its user's commands do not run. Raises as `diff` does.
    """
    with apps.as_user_of(spec.app, follower.said), _prepare(spec, follower) as (study, lab):
        sessions = matrix.lay_out(replace(study, blocks=spec.blocks or study.blocks), lab.stacks).sessions
        more = f"more such blocks while a difference is not decided, up to {LAST_LOOK} in all"
        return plan_of(
            f"study {study.name}",
            sessions,
            lab,
            lambda session: matrix.session_s(session, lab.stacks),
            adaptive=() if spec.blocks else (more,),
            budget_s=None if spec.blocks else spec.budget_s,
        )


def compare_stored(
    before: Results, after: Results | None, criteria: DiffCriteria, named: tuple[str, str] = ("", "")
) -> Diff:
    """Compare two stored runs, or without `after` the two revisions of one run; `named` are what they are called.

    Raises DifferentMachinesError, NotTwoSidesError.
    """
    stacks = catalog.stacks()
    if after is None:
        found = differing(before_after.revisions(before, stacks), criteria)
    else:
        found = differing(before_after.runs(before, after, stacks, named), criteria)
    return replace(found, suspects=_suspects([before] if after is None else [after, before], stacks))


def _suspects(runs: Sequence[Results], stacks: Mapping[str, Stack]) -> tuple[Suspected, ...]:
    """Return what the figures make likely, of the side after where both have it."""
    found: dict[tuple[str, str], Suspected] = {}
    for run in runs:
        for suspect in suspects((*run.trials, *run.checks), stacks, machine_cpus(run.header)):
            found.setdefault((suspect.id, suspect.of), suspect)
    return tuple(found.values())


def lay_out(spec: AppSpec, both: Sequence[Revision], terms: Terms, lab: Lab) -> Study:
    """Return the study of both revisions: a question each, on the stacks of `terms` or the common stack that fits.

    Raises what `apps.look` does, NoStackFitsError, and NotFromRevisionError for an app that is not imported from its
    folder.
    """
    spec = replace(spec, python=apps.interpreter(spec.python))
    found = [
        apps.look(replace(spec, cwd=revision.folder, revision=revision.name), revision) for revision in both
    ]
    chosen = terms.stacks or (apps.common(apps.stacks_for(found[0], lab)),)
    for app in found:
        apps.stacks_for(app, lab, chosen)
    cpus = terms.limits.for_cpus(len(seat(terms.limits, lab).placement.server_cpus))
    contestants = tuple(compare.contestant(lab.stacks[name], cpus, terms.workers) for name in chosen)
    name = found[0].path.partition(":")[0]
    return Study(
        name=f"diff-{name}",
        title=f"What {both[1].name} changed of {spec.app}, from {both[0].name} on",
        questions=tuple(
            Question(side, app.recipe, terms.loads, link=terms.link, app=app)
            for side, app in zip(NAMES, found, strict=True)
        ),
        contestants=contestants,
        blocks=FIRST_LOOK,
        seed=terms.seed,
        limits=terms.limits,
        sources=tuple(
            f"{side}: {revision.name}, {revision.commit}" for side, revision in zip(NAMES, both, strict=True)
        ),
    )


def race_revisions(
    study: Study,
    lab: Lab,
    folder: Path,
    follower: Events,
    *,
    criteria: DiffCriteria = EVERYTHING,
    budget_s: float = BUDGET_S,
    blocks: int | None = None,
    wait_s: float | None = 0.0,
    report: Callable[[str], None] = lambda _: None,
) -> Diff:
    """Race both revisions and return the diff: until all is settled or the budget is spent, or so many blocks.

    Blocks are added in the same file, and those that other programs spoilt are raced again with them; what would end
    after the budget is not begun. `report` gets a sentence whenever blocks do not settle it.
    Raises NothingMeasuredError where neither revision could be measured, and what a race raises.
    """
    began = time.monotonic()
    there, wanted = 0, blocks or FIRST_LOOK
    while True:
        now = replace(study, blocks=wanted)
        sessions = matrix.lay_out(now, lab.stacks).sessions
        plan = racing.Race(now, sessions, folder, resume=there > 0, redo=True, wait_s=wait_s)
        _run(plan, lab, follower)
        results = store.read(folder)
        if not any(isinstance(trial, Measurement) for trial in results.trials):
            raise NothingMeasuredError(str(folder))
        found = differing(before_after.revisions(results, lab.stacks), criteria)
        found = replace(found, suspects=_suspects([results], lab.stacks))
        if blocks is not None or wanted >= LAST_LOOK or (is_settled(found) and not _spoilt(results)):
            return found
        took = time.monotonic() - began
        affordable = int(wanted * budget_s / took)
        there, wanted = wanted, min(next_look(wanted), affordable)
        if wanted <= there:
            report(f"not settled after {there} blocks, and the budget is spent")
            return found
        report(f"not settled after {there} blocks, so {wanted - there} more: {found.sentence}")


def _run(plan: racing.Race, lab: Lab, follower: Events) -> None:
    try:
        with giving(plan.out):
            race.driven(plan, lab, follower)
    except RaceInterruptedError as error:
        cure = f"Show what was finished: velodrome diff {plan.out}"
        raise RaceInterruptedError(error.path, error.done, error.total, cure) from error


def _spoilt(results: Results) -> bool:
    """Return whether other programs spoilt a trial, which then is raced again."""
    measured = (trial for trial in results.trials if isinstance(trial, Measurement))
    return any(kind.of_the_moment for measurement in measured for kind in measurement.doubts)


def is_settled(found: Diff) -> bool:
    """Return whether more blocks would settle nothing more: all is decided, or will not be."""
    if any(
        difference.change is Change.INSUFFICIENT and difference.more_blocks
        for difference in found.differences
    ):
        return False
    return not any(gate.held is None and gate.more_blocks for gate in found.gates)

"""What a change of an app's source made worse: two revisions raced against each other, block by block, until settled.

with commands_around(asked), checked_out(cwd, ("HEAD~1", "HEAD")) as revisions:
    study = laid_out(asked, revisions, terms, lab)
    results = raced(study, lab, folder, follower, ...)
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from velodrome.judge import before_after
from velodrome.judge.regression import EVERYTHING, Asked, diff
from velodrome.judge.statistics import FIRST_LOOK, LAST_LOOK, next_look
from velodrome.model.app import App
from velodrome.model.difference import Change, Diff
from velodrome.model.errors import NotFromRevisionError, NothingMeasuredError, RaceInterruptedError
from velodrome.model.measurement import Measurement
from velodrome.model.results import Results
from velodrome.model.study import Question, Study
from velodrome.plan import matrix
from velodrome.plan import matrix as timing
from velodrome.run.account import giving
from velodrome.run.apps.revisions import Revision
from velodrome.run.lab import Lab
from velodrome.run.racing import race, store
from velodrome.run.racing.opening import Follower
from velodrome.run.racing.plan import seat
from velodrome.usecases import apps, compare
from velodrome.usecases.compare import Terms
from velodrome.usecases.load_blocks import common

BUDGET_S = 600.0
NAMES = (before_after.BEFORE, before_after.AFTER)


def laid_out(asked: apps.Asked, revisions: Sequence[Revision], terms: Terms, lab: Lab) -> Study:
    """Return the study of both revisions: a question each, on the stacks of `terms` or the common one that fits.

    Raises what `apps.look` does, NoStackFitsError, and NotFromRevisionError for an app that is not imported from its
    folder.
    """
    asked = replace(asked, python=apps.interpreter(asked.python))
    found = [_from_its_revision(replace(asked, cwd=one.folder, revision=one.name), one) for one in revisions]
    chosen = terms.stacks or (common(apps.stacks_for(found[0], lab)),)
    for app in found:
        apps.stacks_for(app, lab, chosen)
    cpus = len(seat(terms.limits, lab).placement.server_cpus)
    contestants = tuple(compare.contestant(lab.stacks[name], cpus, terms.workers) for name in chosen)
    name = found[0].path.partition(":")[0]
    return Study(
        name=f"diff-{name}",
        title=f"What {revisions[1].name} changed of {asked.app}, from {revisions[0].name} on",
        questions=tuple(
            Question(side, app.recipe, terms.loads, link=terms.link, app=app)
            for side, app in zip(NAMES, found, strict=True)
        ),
        contestants=contestants,
        blocks=FIRST_LOOK,
        seed=terms.seed,
        limits=terms.limits,
        sources=tuple(
            f"{side}: {one.name}, {one.commit}" for side, one in zip(NAMES, revisions, strict=True)
        ),
    )


def _from_its_revision(asked: apps.Asked, revision: Revision) -> App:
    """Look at an app, all of whose source is to come from its folder: that of both sides would else be the same."""
    app, found = apps.looked(asked, revision.elsewhere)
    for place in (found.origin, *found.imported):
        if place and revision.root not in Path(place).parents:
            raise NotFromRevisionError(app.path, revision.name, place)
    return app


def raced(
    study: Study,
    lab: Lab,
    folder: Path,
    follower: Follower,
    *,
    asked: Asked = EVERYTHING,
    budget_s: float = BUDGET_S,
    blocks: int | None = None,
    wait_s: float | None = 0.0,
    told: Callable[[str], None] = lambda _: None,
) -> Diff:
    """Race both revisions and return the diff: until all is settled or the budget is spent, or so many blocks.

    Blocks are added in the same file, and those that other programs spoilt are raced again with them; what would end
    after the budget is not begun. `told` hears how it goes.
    Raises NothingMeasuredError where neither revision could be measured, and what a race raises.
    """
    began = time.monotonic()
    there, wanted = 0, blocks or FIRST_LOOK
    while True:
        now = replace(study, blocks=wanted)
        heats = matrix.lay_out(now, lab.stacks).heats
        plan = race.Race(now, heats, folder, resume=there > 0, redo=True, wait_s=wait_s)
        _run(plan, lab, follower)
        results = store.read(folder)
        if not any(isinstance(one, Measurement) for one in results.trials):
            raise NothingMeasuredError(str(folder))
        found = diff(before_after.revisions(results, lab.stacks), asked)
        if blocks is not None or wanted >= LAST_LOOK or (settled(found) and not _spoilt(results)):
            return found
        took = time.monotonic() - began
        affordable = int(wanted * budget_s / took)
        there, wanted = wanted, min(next_look(wanted), affordable)
        if wanted <= there:
            told(f"not settled after {there} blocks, and the budget is spent")
            return found
        told(f"not settled after {there} blocks, so {wanted - there} more: {found.sentence}")


def _run(plan: race.Race, lab: Lab, follower: Follower) -> None:
    try:
        with giving(plan.out):
            race.run(plan, lab, follower, lambda heat: timing.session_s(heat, lab.stacks))
    except RaceInterruptedError as error:
        cure = f"Tell what was finished: velodrome diff {plan.out}"
        raise RaceInterruptedError(error.path, error.done, error.total, cure) from error


def _spoilt(results: Results) -> bool:
    """Return whether other programs spoilt a trial, which then is raced again."""
    measured = (one for one in results.trials if isinstance(one, Measurement))
    return any(kind.of_the_moment for one in measured for kind in one.doubts)


def settled(found: Diff) -> bool:
    """Return whether more blocks would tell nothing more: all is told, or will not be."""
    if any(one.change is Change.INSUFFICIENT and one.more_blocks for one in found.differences):
        return False
    return not any(one.held is None and one.more_blocks for one in found.gates)

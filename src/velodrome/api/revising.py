"""Two revisions of an app, raced against each other for `velodrome.diff`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from velodrome.api.apps import asked_of
from velodrome.api.asking import Asks, mix_of
from velodrome.api.conditions import limits_of, terms_of
from velodrome.api.spans import seconds_of
from velodrome.judge.regression import Asked
from velodrome.model.difference import Diff
from velodrome.run.apps import revisions
from velodrome.run.supervision import scratch
from velodrome.track import apps, revising
from velodrome.track.comparing import Terms
from velodrome.track.given_numbers import refuse_count
from velodrome.track.quiet import Quiet

DEFAULTS = Terms()
SECONDS = 3.0


def raced(
    before: str,
    after: str,
    app: str,
    looked: Asked,
    *,
    requests: Asks = ("GET /",),
    connections: int = DEFAULTS.connections,
    rate: float | None = None,
    duration: float | str = SECONDS,
    stacks: Sequence[str] = (),
    cpus: int | None = None,
    memory: str = "",
    link: str = "",
    workers: int | None = None,
    blocks: int | None = None,
    budget: float | str = revising.BUDGET_S,
    out: str | Path | None = None,
    wait: bool = False,
    **of_app: Any,
) -> Diff:
    """Check both revisions out, race them until all is settled, the budget is spent or so many blocks, and compare.

    Results go into `out`; without it into a temporary folder that is gone when this process ends. `of_app` as in
    `velodrome.compare`; `cwd` is a folder of the repository. Raises GitError, RevisionError, NotFromRevisionError and
    what a race raises.
    """
    refuse_count("blocks", blocks)
    names, extra = apps.named(stacks)
    terms = terms_of(
        limits_of(cpus, memory),
        connections=connections,
        rate=rate,
        duration=duration,
        link=link,
        stacks=names,
        workers=workers,
    )
    asked = asked_of(app, mix_of(requests), **of_app)
    with (
        apps.commands_around(asked),
        revisions.checked_out(apps.folder(asked.cwd), (before, after)) as found,
    ):
        lab = apps.lab_for(asked, extra)
        study = revising.laid_out(asked, found, terms, lab)
        return revising.raced(
            study,
            lab,
            Path(out) if out is not None else scratch.made("api") / "run",
            Quiet(),
            asked=looked,
            budget_s=seconds_of(budget),
            blocks=blocks,
            wait_s=None if wait else 0.0,
        )

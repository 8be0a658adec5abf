"""`velodrome.race`: race a study, by its name, its file or as a value, and return the run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from velodrome.api.asking import trusting
from velodrome.api.reading import Run, read
from velodrome.guest import catalog
from velodrome.model.study import Study
from velodrome.plan import finding, matrix, timing
from velodrome.plan.matrix import Matrix
from velodrome.run.account import giving
from velodrome.run.environments import guest_tree
from velodrome.run.faults import refusals
from velodrome.run.lab import Lab
from velodrome.run.profiling.taking import take
from velodrome.run.racing import race as racing
from velodrome.run.supervision import scratch
from velodrome.track.given_numbers import refuse_count
from velodrome.track.known import known
from velodrome.track.quiet import Quiet


@refusals()
def race(
    study: str | Path | Study,
    *,
    out: str | Path | None = None,
    only: Sequence[str] = (),
    quick: bool = False,
    blocks: int | None = None,
    seed: int | None = None,
    python: str = "",
    wait: bool = False,
    trust: bool = False,
) -> Run:
    """Race every contestant of a study: one that ships (`"first-lap"`), a TOML file, or a `Study`.

    Results go into `out`; without it into a temporary folder that is gone when this process ends. `only` are patterns
    of `question/contestant`; `wait` waits while another velodrome measures; `trust` allows what a file names:
    executables and packages. Raises StudyFileError, UntrustedError, UnknownNameError, NothingSelectedError, BusyError
    and what else keeps a race from being run; a contestant that fails is a result.
    """
    refuse_count("blocks", blocks)
    asked = study if isinstance(study, Study) else finding.load(str(study), known(), quick=quick)
    asked = replace(
        asked,
        blocks=asked.blocks if blocks is None else blocks,
        seed=asked.seed if seed is None else seed,
    )
    stacks = catalog.stacks()
    laid_out = matrix.lay_out(asked, stacks, only, python)
    if not isinstance(study, Study):
        trusting(trust).see_study(str(study), matrix.narrowed(asked, laid_out))
    asked = matrix.narrowed(asked, laid_out) if only else asked
    return raced(asked, laid_out, Lab(stacks, guest_tree.export(), profile=take), out, wait)


def raced(study: Study, laid_out: Matrix, lab: Lab, out: str | Path | None, wait: bool) -> Run:
    """Race what was laid out of a study into a folder, a temporary one without `out`, and return the run."""
    folder = Path(out) if out is not None else scratch.made("api") / "run"
    plan = racing.Race(
        study,
        laid_out.heats,
        folder,
        wait_s=None if wait else 0.0,
        experiments=laid_out.experiments,
        profiles=laid_out.profiles,
    )
    with giving(folder):
        racing.run(plan, lab, Quiet(), lambda heat: timing.heat_s(heat, lab.stacks))
    return read(folder)

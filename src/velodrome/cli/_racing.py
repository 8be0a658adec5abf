"""Runs one study from its name to its report: shared by a study alone and a group of them."""

import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from velodrome.cli import _app_options as trusting
from velodrome.cli import judge
from velodrome.cli._telling import tell
from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.model.errors import BadOptionError, NothingMeasuredError, ResultsError
from velodrome.model.load import Link
from velodrome.model.study import Study
from velodrome.model.verdict import Verdict
from velodrome.plan import matrix, study_file
from velodrome.plan import matrix as timing
from velodrome.plan.matrix import Matrix, profiled
from velodrome.plan.questions import over
from velodrome.report.terminal import RaceView
from velodrome.run.account import giving
from velodrome.run.drivers import driver
from velodrome.run.environments import guest_tree
from velodrome.run.lab import Lab
from velodrome.run.profiling.taking import take
from velodrome.run.racing import race, store
from velodrome.run.racing.plan import seat
from velodrome.usecases.studies import Trust, known

RUNS = Path("runs")


@dataclass(frozen=True)
class Options:
    """What the command line sets over a study."""

    only: tuple[str, ...] = ()
    resume: bool = False
    redo: bool = False
    """Resume, and measure again what the machine spoilt."""
    quick: bool = False
    blocks: int | None = None
    seed: int | None = None
    python: str = ""
    wait: bool = False
    profile: bool = False
    """Profile every cell, also where the study does not ask for it."""
    link: Link | None = None
    """For questions without one of their own."""
    databases: Mapping[str, str] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    """Paths of stacks of the user's own."""
    must_answer: bool = False
    """Whether a race ends early where one of its apps answers on no stack."""
    trust: Trust = field(default_factory=lambda: trusting.trust(False))
    """Decides on what a study names."""


def folder(name: str, out: Path | None, resume: bool, holds: str = store.NAME) -> Path:
    """Return where results go: `out`, or `runs/<date>-<name>`, numbered if there is one already.

    To resume without `out` is to go on with the newest run of that name that `holds` such a file.
    """
    plain = name.replace("/", "-")
    if out is not None:
        return out
    if resume:
        dated = re.compile(rf"\d{{4}}-\d\d-\d\d-{re.escape(plain)}(-\d+)?")
        found = [path for path in RUNS.glob(f"*/{holds}") if dated.fullmatch(path.relative_to(RUNS).parts[0])]
        if not found:
            raise BadOptionError(
                "--resume", name, "there is no earlier run of it in runs/; name one with --out"
            )
        newest = max(found, key=lambda path: path.stat().st_mtime)
        return RUNS / newest.relative_to(RUNS).parts[0]
    first = RUNS / f"{date.today().isoformat()}-{plain}"
    numbered = first
    number = 2
    while numbered.exists():
        numbered = first.with_name(f"{first.name}-{number}")
        number += 1
    return numbered


def chosen(study: Study, options: Options) -> Study:
    """Return the study with what the command line sets over it."""
    if options.blocks is not None and options.blocks < 1:
        raise BadOptionError("--blocks", str(options.blocks), "at least 1 is needed")
    study = profiled(study) if options.profile else study
    return replace(
        study,
        questions=tuple(one if one.link else over(one, options.link) for one in study.questions),
        seed=study.seed if options.seed is None else options.seed,
        blocks=study.blocks if options.blocks is None else options.blocks,
    )


def _begun_as(asked: Study, where: Path) -> bool:
    """Return whether a run was begun as the whole of a study: `--only` then chooses what of it goes on."""
    try:
        begun = store.begun(where).study
    except ResultsError:
        return False  # told when it is resumed
    return begun.questions == asked.questions and begun.contestants == asked.contestants


def allowed(name: str, stacks: Mapping[str, Stack], options: Options) -> tuple[Study, Matrix]:
    """Return a study and what it comes to, once the user allows all that it names and that is to be run.

    Raises UnknownNameError, StudyFileError, NothingSelectedError, UntrustedError.
    """
    asked = chosen(study_file.load_study(name, known(stacks), quick=options.quick), options)
    laid_out = matrix.lay_out(asked, stacks, options.only, options.python)
    options.trust.see_study(name, matrix.narrowed(asked, laid_out))
    return asked, laid_out


def race_study(name: str, out: Path | None, options: Options) -> Verdict:
    """Race a study by its name and show it; its report goes into `out`. Raises what `allowed` and `raced` do."""
    stacks = catalog.stacks(options.extra)
    asked, laid_out = allowed(name, stacks, options)
    form = "" if asked.form == "full" else f"-{asked.form}"
    where = folder(f"{asked.name}{form}", out, options.resume)
    if options.only and not (options.resume and _begun_as(asked, where)):
        asked = matrix.narrowed(asked, laid_out)
    lab = Lab(
        stacks,
        guest_tree.export(options.extra),
        driver.choose_driver,
        databases=options.databases,
        extra=options.extra,
        profile=take,
    )
    return raced(asked, laid_out, lab, where, options)


def raced(asked: Study, laid_out: Matrix, lab: Lab, where: Path, options: Options) -> Verdict:
    """Race what was laid out of a study and show it. Raises NothingMeasuredError beside what a race raises."""
    stacks = lab.stacks
    warnings: list[str] = []
    with giving(where), RaceView(sys.stdout) as view:
        view.started(
            asked,
            placement=seat(asked.limits, lab).placement,
            python=options.python or platform.python_version(),
            trials=sum(len(heat.trials) for heat in laid_out.heats),
            seconds=timing.race_s(laid_out.heats, stacks),
            called={one.label: one.called(stacks[one.stack]) for one in asked.contestants},
        )
        plan = race.Race(
            asked,
            laid_out.heats,
            where,
            options.resume,
            options.redo,
            None if options.wait else 0.0,
            laid_out.experiments,
            laid_out.profiles,
            options.must_answer,
        )
        ended = race.run(plan, lab, view, lambda heat: timing.session_s(heat, stacks), warnings.append)
        # A part of a race that is gone on with says nothing of the rest.
        finished = "" if options.only and options.resume else ended.how
        verdict, paths = judge.judged(where, stacks, finished=finished)
        view.verdict(verdict, paths)
    for sentence in warnings:  # where nothing is drawn over it any more
        tell(sentence)
    standings = [standing for answer in verdict.answers for standing in answer.standings]
    if all(one.failed for one in standings) and (standings or not verdict.findings):
        raise NothingMeasuredError(paths["results"])
    return verdict

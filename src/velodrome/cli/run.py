"""`velodrome run`: race a study, then judge and report what was measured."""

import platform
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from velodrome.cli import judge
from velodrome.cli.stacks import Extra
from velodrome.guest import catalog
from velodrome.model.claim import Judgement
from velodrome.model.errors import BadOptionError, ClaimsFailedError, NothingMeasuredError
from velodrome.model.study import Study
from velodrome.plan import finding, matrix, timing
from velodrome.plan.known import Known
from velodrome.report.live import RaceView
from velodrome.run import guest_tree, placement, race
from velodrome.run.companions.given import databases_of
from velodrome.run.drivers import choosing
from velodrome.run.experiments import choosing as experiments
from velodrome.run.lab import Lab


def folder(study: str, out: Path | None, resume: bool) -> Path:
    """Return where results go: `out`, or `runs/<date>-<study>`, numbered if there is one already.

    To resume without `out` is to go on with the newest run of that study.
    """
    if out is not None:
        return out
    runs = Path("runs")
    if resume:
        earlier = sorted(runs.glob(f"*-{study}*/results.jsonl"), key=lambda path: path.stat().st_mtime)
        if not earlier:
            raise BadOptionError(
                "--resume", study, "there is no earlier run of it in runs/; name one with --out"
            )
        return earlier[-1].parent
    first = runs / f"{date.today().isoformat()}-{study}"
    number = 2
    found = first
    while found.exists():
        found = first.with_name(f"{first.name}-{number}")
        number += 1
    return found


def chosen(study: Study, seed: int | None, blocks: int | None) -> Study:
    """Return the study with what the command line sets over it."""
    if blocks is not None and blocks < 1:
        raise BadOptionError("--blocks", str(blocks), "at least 1 is needed")
    return replace(
        study,
        seed=study.seed if seed is None else seed,
        blocks=study.blocks if blocks is None else blocks,
    )


def command(
    study: Annotated[str, typer.Argument(help="A study that ships (`velodrome studies`) or ./mine.toml.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for results and report (runs/<date>-<study>).")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="question/contestant, or a question; * and ? allowed.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="The study's quick form: minutes, not hours.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 if a claim does not hold.")] = False,
    blocks: Annotated[int | None, typer.Option(help="Repeats, instead of the study's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Order of the trials, instead of the study's.")] = None,
    python: Annotated[str, typer.Option(help="Interpreter of the servers: a version or a path.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait while another velodrome measures.")] = False,
    database: Annotated[
        list[str] | None,
        typer.Option(help="A database of yours for a recipe that asks one: mariadb=mysql://…."),
    ] = None,
    stack: Extra = None,
) -> None:
    """Race every contestant of STUDY on every question and say which to deploy, with the evidence."""
    extra = stack or []
    stacks = catalog.stacks(extra)
    known = Known(stacks, catalog.recipes(), choosing.known(), experiments.settings())
    asked = chosen(finding.load(study, known, quick=quick), seed, blocks)
    laid_out = matrix.lay_out(asked, stacks, only or (), python)
    asked = matrix.narrowed(asked, laid_out) if only else asked
    given = databases_of(database or ())
    lab = Lab(stacks, guest_tree.export(extra), choosing.choose, databases=given, extra=tuple(extra))
    where = folder(asked.name if asked.form == "full" else f"{asked.name}-{asked.form}", out, resume)
    with RaceView(sys.stdout) as view:
        view.started(
            asked,
            placement=placement.place(lab.cpus, asked.limits),
            python=python or platform.python_version(),
            trials=sum(len(heat.trials) for heat in laid_out.heats),
            seconds=timing.race_s(laid_out.heats, stacks),
            called={one.label: one.called(stacks[one.stack].title) for one in asked.contestants},
        )
        plan = race.Race(
            asked,
            laid_out.heats,
            where,
            resume,
            None if wait else 0.0,
            laid_out.experiments,
            laid_out.profiles,
        )
        ended = race.run(plan, lab, view, lambda heat: timing.heat_s(heat, stacks))
        verdict, paths = judge.judged(where, stacks, finished=ended.how)
        view.verdict(verdict, paths)
    standings = [standing for answer in verdict.answers for standing in answer.standings]
    if all(one.failed for one in standings) and (standings or not verdict.findings):
        raise NothingMeasuredError(paths["results"])
    failed = [one.claim.name for one in verdict.claims if one.judgement is Judgement.FAILS]
    if strict and failed:
        raise ClaimsFailedError(asked.name, failed)


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("run")(command)

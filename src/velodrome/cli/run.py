"""`velodrome run`: race a study, or a group of them, then judge and report what was measured."""

import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from velodrome.cli import _app_options as app_options
from velodrome.cli import _app_options as trusting
from velodrome.cli import _server_options as raced_options
from velodrome.cli._racing import Options, allowed, folder, race_study
from velodrome.cli._telling import tell
from velodrome.cli.stacks import Extra
from velodrome.guest import catalog
from velodrome.model.claim import Judgement
from velodrome.model.errors import (
    BadOptionError,
    ClaimsFailedError,
    RaceInterruptedError,
    StudyFileError,
    TooLargeError,
    VelodromeError,
)
from velodrome.model.secrets import mask
from velodrome.model.verdict import Verdict
from velodrome.plan import study_file
from velodrome.report import json, terminal
from velodrome.report import markdown as report
from velodrome.report.typeset import LINES, visible
from velodrome.run.faults import told
from velodrome.run.racing import store
from velodrome.run.services.service import databases_of
from velodrome.usecases import apps


def race_group(name: str, out: Path | None, options: Options) -> list[Verdict]:
    """Race the studies of a group into `out`/<study>/; return their verdicts.

    A study that cannot be run is told and the others go on; an interruption ends the group. Raises UntrustedError
    before the first where one names what the user does not allow, and the error of the last study that could not be
    run, after all.
    """
    if options.only:
        raise BadOptionError("--only", options.only[0], f"it is for one study; run one of: {_listed(name)}")
    form = "-quick" if options.quick else ""
    where = folder(f"{name}{form}", out, options.resume, f"*/{store.NAME}")
    members = study_file.members(name)
    stacks = catalog.stacks(options.extra)
    for study in members:
        # Before the first, which may take hours; what else is wrong is told in its turn.
        with suppress(StudyFileError, TooLargeError):
            allowed(study, stacks, options)
    screen = terminal.console(sys.stdout)
    trouble: dict[str, VelodromeError] = {}
    verdicts: dict[str, Verdict] = {}
    for number, (study, _) in enumerate(members.items(), 1):
        screen.print(Text(f"{study} ({number} of {len(members)})", style="bold"))
        inside = where / report.inside_group(study)
        again = options.resume and (inside / store.NAME).exists()
        try:
            verdicts[study] = race_study(study, inside, replace(options, resume=again))
        except RaceInterruptedError:
            raise
        except Exception as error:  # also what nobody foresaw: the other studies are no worse for it
            trouble[study] = told(error)
            screen.print(Text(f"velodrome: {visible(mask(str(trouble[study])), LINES)}"), soft_wrap=True)
            if (inside / "verdict.json").exists():
                verdicts[study] = json.read(inside / "verdict.json")
    reasons = {study: str(error).splitlines()[0] for study, error in trouble.items()}
    report.show_group(name, where, verdicts, reasons, screen)
    if trouble:
        raise list(trouble.values())[-1]
    return list(verdicts.values())


def _listed(name: str) -> str:
    return ", ".join(study_file.members(name))


def command(
    study: Annotated[
        str, typer.Argument(help="A study or group that ships (`velodrome studies`), or ./mine.toml.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder for results and report (runs/<date>-<study>).")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="question/contestant, a question or experiment; * and ? allowed.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")] = False,
    redo: Annotated[
        bool,
        typer.Option("--redo", help="Go on with a run, and measure again what the machine spoilt meanwhile."),
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="The study's quick form: minutes, not hours.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Sample the stacks of every server under load, after the race.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 if a claim does not hold.")] = False,
    blocks: Annotated[int | None, typer.Option(help="Repeats, instead of the study's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Order of the trials, instead of the study's.")] = None,
    link: Annotated[
        str, typer.Option(help="Network of questions without one: rtt=160ms,rate=100mbit,loss=1%.")
    ] = "",
    python: Annotated[str, typer.Option(help="Interpreter of the servers: a version or a path.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait while another velodrome measures.")] = False,
    database: Annotated[
        list[str] | None,
        typer.Option(help="A database of yours for a recipe that asks one: mariadb=mysql://…."),
    ] = None,
    user: app_options.User = "",
    stack: Extra = None,
    trust: trusting.TrustGiven = False,
) -> None:
    """Race every contestant of STUDY on every question and say which to deploy, with the evidence."""
    options = Options(
        only=tuple(only or ()),
        resume=resume or redo,
        redo=redo,
        quick=quick,
        blocks=blocks,
        seed=seed,
        python=python,
        wait=wait,
        profile=profile,
        link=raced_options.between(link),
        databases=databases_of(database or ()),
        extra=tuple(stack or ()),
        trust=trusting.trust(trust),
    )
    group = study_file.is_group(study)
    with apps.served_as(user, "", tell):
        verdicts = race_group(study, out, options) if group else [race_study(study, out, options)]
    claims = [one for verdict in verdicts for one in verdict.claims]
    failed = [one.claim.name for one in claims if one.judgement is Judgement.FAILS]
    if strict and failed:
        raise ClaimsFailedError(study, failed)


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("run")(command)

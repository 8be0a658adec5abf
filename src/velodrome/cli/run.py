"""`velodrome run`: race a study, or a group of them, then judge and report what was measured."""

import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from velodrome.cli import _app_options as apps
from velodrome.cli import _server_options as server
from velodrome.cli._stderr import tell
from velodrome.cli.lists import Extra
from velodrome.cli.main import heavy

if TYPE_CHECKING:
    from velodrome.model.errors import VelodromeError
    from velodrome.model.verdict import Verdict
    from velodrome.usecases.race import RaceSpec
    from velodrome.usecases.studies import Trust

STUDY = "The study"


def _of_study(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=STUDY, **more)


def command(
    study: Annotated[
        str, typer.Argument(help="A study or group that ships (`velodrome studies`), or ./mine.toml.")
    ],
    out: Annotated[
        Path | None, server.of_results(help="Folder for results and report (runs/<date>-<study>).")
    ] = None,
    only: Annotated[
        list[str] | None,
        _of_study(
            help="Run only question/contestant, a question or an experiment; * and ? allowed; repeatable."
        ),
    ] = None,
    resume: Annotated[bool, server.of_results("--resume", help="Continue an interrupted run.")] = False,
    redo: Annotated[
        bool,
        server.of_results(
            "--redo", help="Continue a run, and repeat the trials that other programs disturbed."
        ),
    ] = False,
    quick: Annotated[
        bool, _of_study("--quick", help="Run the study's quick form: minutes, not hours.")
    ] = False,
    profile: Annotated[
        bool,
        _of_study("--profile", help="Profile the call stacks of every server under load, after the race."),
    ] = False,
    strict: Annotated[
        bool, server.of_results("--strict", help="Exit with code 1 if a claim does not hold.")
    ] = False,
    blocks: Annotated[int | None, _of_study(help="Number of repeats, instead of the study's.")] = None,
    budget: Annotated[str, server.of_results(help="Time limit, instead of the study's.")] = "",
    seed: Annotated[
        int | None, _of_study(help="Seed of the order of trials, instead of the study's.")
    ] = None,
    link: Annotated[
        str,
        server.of_load(
            help="Emulate a network for questions without a link: rtt=160ms,rate=100mbit,loss=1%."
        ),
    ] = "",
    python: Annotated[str, server.of_server(help="Interpreter of the servers: a version or a path.")] = "",
    wait: server.Wait = False,
    database: Annotated[
        list[str] | None,
        server.of_server(help="Your own database for recipes that query one: mariadb=mysql://…; repeatable."),
    ] = None,
    user: apps.User = "",
    stack: Extra = None,
    trust: apps.TrustGiven = False,
    dry_run: server.DryRun = False,
    agents: server.Agents = "",
    keys: server.Keys = "",
    server_on: server.ServerOn = "",
    load_from: server.LoadFrom = "",
    third_party_on: server.ThirdPartyOn = "",
) -> None:
    """Race every contestant of STUDY on every question and say which to deploy, with the evidence."""
    with heavy:
        from velodrome.cli import _shown  # noqa: F401, PLC0415 - it brings the rest of what is heavy
        from velodrome.model.claim import Judgement  # noqa: PLC0415
        from velodrome.model.errors import ClaimsFailedError  # noqa: PLC0415
        from velodrome.plan import study_file  # noqa: PLC0415
        from velodrome.run.lab import OnHosts  # noqa: PLC0415
        from velodrome.run.services.service import databases_of  # noqa: PLC0415
        from velodrome.usecases import race  # noqa: PLC0415
        from velodrome.usecases.apps import run_as  # noqa: PLC0415
        from velodrome.usecases.race import RaceSpec  # noqa: PLC0415

    spec = RaceSpec(
        study,
        tuple(only or ()),
        quick,
        blocks,
        seed,
        python,
        profile,
        server.between(link),
        databases_of(database or ()),
        tuple(stack or ()),
        resume or redo,
        redo,
        wait,
        server.budget(budget) if budget else None,
        server.agents(agents, keys),
        Path(keys) if keys else None,
        user,
        OnHosts(server_on, server.names(load_from), third_party_on),
    )
    server.check_folder(out, resume=resume or redo)
    decides = apps.trust(trust)
    with run_as(user, "", tell):
        if dry_run:
            for member in study_file.members(study) if study_file.is_group(study) else (study,):
                server.show_plan(race.dry_run(replace(spec, study=member), decides, out))
            return
        verdicts = (
            _race_group(spec, decides, out) if study_file.is_group(study) else [_race(spec, decides, out)]
        )
    claims = [claim for verdict in verdicts for claim in verdict.claims]
    failed = [claim.claim.name for claim in claims if claim.judgement is Judgement.FAILS]
    if strict and failed:
        raise ClaimsFailedError(study, failed)


def _race(spec: "RaceSpec", trust: "Trust", out: Path | None) -> "Verdict":
    from velodrome.cli._shown import Shown  # noqa: PLC0415
    from velodrome.usecases import race  # noqa: PLC0415

    with Shown() as shown:
        race.race(spec, trust, out, shown)
    assert shown.verdict is not None
    return shown.verdict


def _race_group(spec: "RaceSpec", trust: "Trust", out: Path | None) -> "list[Verdict]":
    """Race the studies of a group into `out`/<study>/; return their verdicts.

    A study that cannot be run is reported and the others go on; an interruption ends the group. Raises UntrustedError
    before the first where one names what the user does not allow, and the error of the last study that could not be
    run, after all.
    """
    from rich.text import Text  # noqa: PLC0415

    from velodrome.model import errors  # noqa: PLC0415
    from velodrome.model.secrets import mask  # noqa: PLC0415
    from velodrome.model.study import inside_group  # noqa: PLC0415
    from velodrome.plan import study_file  # noqa: PLC0415
    from velodrome.report import json, markdown, terminal  # noqa: PLC0415
    from velodrome.report.typeset import LINES, visible  # noqa: PLC0415
    from velodrome.run.faults import as_velodrome_error  # noqa: PLC0415
    from velodrome.run.racing import store  # noqa: PLC0415
    from velodrome.usecases import race  # noqa: PLC0415

    name, members = str(spec.study), study_file.members(str(spec.study))
    if spec.only:
        listed = ", ".join(members)
        raise errors.BadOptionError("--only", spec.only[0], f"it is for one study; run one of: {listed}")
    form = "-quick" if spec.quick else ""
    where = race.folder(f"{name}{form}", out, spec.resume, f"*/{store.NAME}")
    for study in members:
        # Before the first, which may take hours; what else is wrong is raised in its turn.
        with suppress(errors.StudyFileError, errors.TooLargeError):
            race.plan_race(replace(spec, study=study), trust)
    screen = terminal.console(sys.stdout)
    trouble: dict[str, VelodromeError] = {}
    verdicts: dict[str, Verdict] = {}
    for number, study in enumerate(members, 1):
        screen.print(Text(f"{study} ({number} of {len(members)})", style="bold"))
        inside = where / inside_group(study)
        again = spec.resume and (inside / store.NAME).exists()
        try:
            verdicts[study] = _race(replace(spec, study=study, resume=again), trust, inside)
        except errors.RaceInterruptedError:
            raise
        except Exception as error:  # also what nobody foresaw: the other studies are no worse for it
            trouble[study] = as_velodrome_error(error)
            screen.print(Text(f"velodrome: {visible(mask(str(trouble[study])), LINES)}"), soft_wrap=True)
            if (inside / "verdict.json").exists():
                verdicts[study] = json.read(inside / "verdict.json")
    reasons = {study: str(error).splitlines()[0] for study, error in trouble.items()}
    markdown.show_group(name, where, verdicts, reasons, screen)
    if trouble:
        raise list(trouble.values())[-1]
    return list(verdicts.values())


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("run")(command)

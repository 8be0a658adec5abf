"""`velodrome judge`: judge and report stored results again, without running anything."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.judge.verdict import judge
from velodrome.model import results
from velodrome.model.errors import BadOptionError
from velodrome.model.study import Study
from velodrome.model.verdict import Verdict
from velodrome.plan import study_file
from velodrome.report import json, markdown, terminal
from velodrome.report import junit as junit_report
from velodrome.report.formats import JudgedRun, write_reports
from velodrome.report.typeset import visible
from velodrome.run.racing.store import NAME, read
from velodrome.usecases.studies import known


def judged(
    where: Path,
    stacks: Mapping[str, Stack],
    more: tuple[Path, ...] = (),
    finished: str = "",
    now: Study | None = None,
) -> tuple[Verdict, dict[str, str]]:
    """Judge what `where` holds, with `more` runs of the same study beside it, and write the reports into it.

    The claims and published tables of `now` are judged instead of those that were known when it was run.

    Returns the verdict and what was written, name to path. Raises ResultsError, DifferentMachinesError or
    OutputError.
    """
    runs = [read(one) for one in (where, *more)]
    if now is not None:
        study = replace(runs[0].header.study, claims=now.claims, tables=now.tables)
        runs[0] = replace(runs[0], header=replace(runs[0].header, study=study))
    verdict = judge(runs, stacks, finished)
    out = where if where.is_dir() else where.parent
    every = [trial for run in runs for trial in run.trials]
    stored = _stacks(verdict, [one if one.is_dir() else one.parent for one in (where, *more)])
    broken = write_reports(out, JudgedRun(verdict, every, results.plain_header(runs[0].header), stored))
    for origin, error in broken.items():
        print(f"report format from {visible(origin)}: {visible(error)}", file=sys.stderr)
    return verdict, {"report": str(out / "report.html"), "results": str(out / NAME)}


def claimed(name: str, study: Study) -> Study:
    """Return a study as its file has it now, in the form it was run in."""
    return study_file.load_study(name, known(), quick=study.form == "quick")


def _stacks(verdict: Verdict, folders: Sequence[Path]) -> dict[str, str]:
    """Return the stored stacks of the profiles by the path each names; one that is gone has no graph."""
    found = {}
    for path in (view.collapsed for view in verdict.profiles if view.collapsed):
        for folder in folders:
            file = folder / path
            if not file.resolve().is_relative_to(folder.resolve()):
                continue  # results may come from others
            with suppress(OSError):
                found[path] = file.read_text(encoding="utf-8", errors="replace")
    return found


def _files(claims: str, folders: Sequence[Path]) -> dict[Path, str]:
    """Return for each folder of a group's run the study of a group that it is a run of. Raises BadOptionError."""
    if not study_file.is_group(claims):
        raise BadOptionError(
            "--claims", claims, "this is a run of a group: name a group, or judge one study of it"
        )
    by_folder = {markdown.inside_group(member): member for member in study_file.members(claims)}
    for folder in folders:
        if folder.name not in by_folder:
            raise BadOptionError(
                "--claims",
                claims,
                f"{folder} is a run of none of its studies: {', '.join(by_folder.values())}",
            )
    return {folder: by_folder[folder.name] for folder in folders}


def _group(where: Path, folders: Sequence[Path], claims: str) -> list[Verdict]:
    """Judge every study of a group again, and write their page anew."""
    stacks = catalog.stacks()
    files = _files(claims, folders) if claims else {}
    asked = {folder: claimed(name, read(folder).header.study) for folder, name in files.items()}
    verdicts = {}
    for folder in folders:
        verdict, _ = judged(folder, stacks, now=asked.get(folder))
        verdicts[verdict.study] = verdict
    groups = {study.rpartition("/")[0] for study in verdicts}
    name = groups.pop() if len(groups) == 1 and groups != {""} else where.resolve().name
    markdown.show_group(name, where, verdicts, {}, terminal.console(sys.stdout))
    return list(verdicts.values())


def command(
    run: Annotated[
        list[Path], typer.Argument(help="Folders of runs of one study; reports go into the first.")
    ],
    claims: Annotated[
        str,
        typer.Option(
            help="Judge the claims of this study (or group) as its file has them now, not those of the run."
        ),
    ] = "",
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write the claims as a JUnit report into this file.")
    ] = None,
) -> None:
    """Judge stored results again and write the reports anew; several runs of one study add their blocks up."""
    inside = sorted(run[0].glob(f"*/{NAME}")) if not (run[0] / NAME).exists() else []
    if len(run) == 1 and inside:
        verdicts = _group(run[0], [path.parent for path in inside], claims)
    else:
        asked = claimed(claims, read(run[0]).header.study) if claims else None
        verdict, paths = judged(run[0], catalog.stacks(), tuple(run[1:]), now=asked)
        terminal.show(verdict, paths, terminal.console(sys.stdout))
        verdicts = [verdict]
    if junit is not None:
        json.save(junit, junit_report.claims_text(verdicts))


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("judge")(command)

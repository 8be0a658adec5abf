"""`velodrome judge`: judge and report stored results again, without running anything."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from velodrome.cli._load_outputs import check_paths
from velodrome.cli._server_options import Paste, of_results
from velodrome.cli.main import heavy

if TYPE_CHECKING:
    from velodrome.model.verdict import Verdict


def command(
    run: Annotated[
        list[Path], typer.Argument(help="Folders of runs of one study; reports are written to the first.")
    ],
    claims: Annotated[
        str,
        of_results(
            help="Judge the claims of this study (or group) as its file has them now, not as they were."
        ),
    ] = "",
    paste: Paste = False,
    junit: Annotated[
        Path | None, of_results("--junit", help="Write the claims to this file, as a JUnit report.")
    ] = None,
) -> None:
    """Judge stored results again and write their reports; several runs of one study are judged together."""
    with heavy:
        from velodrome.cli._shown import write_reports  # noqa: PLC0415
        from velodrome.guest import catalog  # noqa: PLC0415
        from velodrome.report import junit as junit_report  # noqa: PLC0415
        from velodrome.report import terminal, writing  # noqa: PLC0415
        from velodrome.run.racing.store import NAME  # noqa: PLC0415
        from velodrome.usecases import judge  # noqa: PLC0415

    check_paths([("--junit", junit)])
    if any((folder / NAME).exists() and judge.search(folder) is not None for folder in run):
        _search(run, claims=bool(claims or junit), paste=paste)
    inside = sorted(run[0].glob(f"*/{NAME}")) if not (run[0] / NAME).exists() else []
    if len(run) == 1 and inside:
        verdicts = _group(run[0], [path.parent for path in inside], claims, paste=paste)
    else:
        now = judge.study_of_run(claims, run[0]) if claims else None
        judged = judge.judge(run, catalog.stacks(), now=now, paste=paste)
        write_reports(judged, partial(terminal.show, out=terminal.console(sys.stdout)))
        verdicts = [judged.verdict]
    if junit is not None:
        writing.write(junit, junit_report.claims_text(verdicts))


def _search(run: Sequence[Path], *, claims: bool, paste: bool) -> NoReturn:
    """Judge a search again, show what it came to, and end as it did. Raises BadOptionError, ResultsError."""
    from velodrome.cli._stderr import of_search, of_tuning  # noqa: PLC0415
    from velodrome.guest import catalog  # noqa: PLC0415
    from velodrome.model.errors import BadOptionError  # noqa: PLC0415
    from velodrome.report import recommendation, searches  # noqa: PLC0415
    from velodrome.usecases import capacity, judge, tune  # noqa: PLC0415

    found = judge.search(run[0])
    if len(run) > 1 or claims:
        option = "--claims, --junit" if claims else "RUN"
        raise BadOptionError(
            option, str(run[0]), "this is a search, which is judged by itself and has no claims"
        )
    if found is None or found.header.sought is None:
        raise BadOptionError("RUN", str(run[0]), "this is no search")
    if found.header.sought.what == "capacity":
        done = capacity.judge_stored(found, catalog.stacks(), str(run[0]))
        print("\n".join(searches.lines(done.found, done.title)))
        sys.exit(of_search(done.found.ending))
    answer = tune.judge_stored(found, catalog.stacks(), str(run[0]), paste=paste)
    print("\n".join(recommendation.lines(answer)))
    sys.exit(of_tuning(answer.tuned.ending))


def _group(where: Path, folders: Sequence[Path], claims: str, *, paste: bool) -> "list[Verdict]":
    """Judge every study of a group again, and write their page anew. Raises BadOptionError."""
    from velodrome.cli._shown import write_reports  # noqa: PLC0415
    from velodrome.guest import catalog  # noqa: PLC0415
    from velodrome.report import markdown, terminal  # noqa: PLC0415
    from velodrome.usecases import judge  # noqa: PLC0415

    stacks = catalog.stacks()
    files = judge.members(claims, folders) if claims else {}
    now = {folder: judge.study_of_run(name, folder) for folder, name in files.items()}
    verdicts = {}
    for folder in folders:
        judged = judge.judge([folder], stacks, now=now.get(folder), paste=paste)
        write_reports(judged, lambda _verdict, _paths: None)  # the page of the group shows all
        verdicts[judged.verdict.study] = judged.verdict
    groups = {study.rpartition("/")[0] for study in verdicts}
    name = groups.pop() if len(groups) == 1 and groups != {""} else where.resolve().name
    markdown.show_group(name, where, verdicts, {}, terminal.console(sys.stdout))
    return list(verdicts.values())


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("judge")(command)

"""`velodrome diff`: what became worse or better between two stored runs, or two revisions of an app."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from velodrome.cli import _app_options as apps
from velodrome.cli import _server_options as server
from velodrome.cli._load_outputs import check_paths
from velodrome.cli._stderr import CANNOT_TELL, FAILED
from velodrome.cli.main import heavy
from velodrome.model.condition import DIFF_METRICS
from velodrome.model.difference import Change
from velodrome.model.load import INDEPENDENT
from velodrome.usecases.terms import Terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from velodrome.model.difference import Diff

DEFAULTS = Terms()
JUDGING = "What counts as a difference"
OF_STORED = frozenset(
    ("before", "after", "app", "threshold", "fail_on", "margin", "metrics", "form", "out", "help")
)
"""Parameters that say something to stored runs; all others are of two revisions, which are raced."""
Format = Literal["text", "markdown", "json", "junit"]


class FailOn(StrEnum):
    """A change that a command fails on."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"


def _of_judging(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=JUDGING, **more)


@apps.describes_an_app
def command(
    context: typer.Context,
    before: Annotated[
        str, typer.Argument(help="A stored run (folder or results.jsonl); with --app, a git revision.")
    ],
    after: Annotated[
        str, typer.Argument(help="What it is compared with; omit it for a run of two revisions.")
    ] = "",
    threshold: Annotated[
        list[str] | None,
        _of_judging(
            "--threshold", help="Exit with code 1 if a metric worsens by more: 'p99 +10%'; repeatable."
        ),
    ] = None,
    fail_on: Annotated[
        list[FailOn] | None,
        _of_judging(
            "--fail-on", help="Exit with code 1 on this change, 4 if it cannot be decided; repeatable."
        ),
    ] = None,
    margin: Annotated[
        list[str] | None,
        _of_judging("--margin", help="Ignore smaller differences: 5%, or p99=20%; repeatable."),
    ] = None,
    metrics: Annotated[
        str,
        _of_judging(
            "--metrics", help=f"Compare only these: {','.join(DIFF_METRICS)}. Fewer are decided sooner."
        ),
    ] = "",
    form: Annotated[Format, server.of_results("--format", help="Format of the output.")] = "text",
    out: Annotated[Path | None, server.of_results("--out", help="Write the output to this file.")] = None,
    app: Annotated[
        str, apps._of_app("--app", help="BEFORE and AFTER are revisions of this app: module:attribute.")
    ] = "",
    stack: Annotated[
        list[str] | None,
        server.of_server(
            help="Serve the app on this stack, or on yours in ./mine.py (a common one); repeatable."
        ),
    ] = None,
    workers: server.Workers = None,
    connections: server.Connections = DEFAULTS.connections,
    rate: server.Rate = None,
    arrivals: server.OfUsers = INDEPENDENT,
    length: server.Length = "3s",
    cpus: server.Cpus = None,
    memory: server.Memory = "",
    link: server.Between = "",
    blocks: Annotated[
        int | None, server.of_load(min=1, help="Two revisions: measure exactly this many blocks.")
    ] = None,
    budget: Annotated[
        str, server.of_results(help="Revisions: start no block that would end after this time.")
    ] = "10m",
    run: Annotated[
        Path | None,
        server.of_results("--run", help="Revisions: folder for results (runs/<date>-diff-…)."),
    ] = None,
    wait: server.Wait = False,
    dry_run: server.DryRun = False,
    **_of_app: Any,
) -> None:
    """Show what became worse or better: percentiles, throughput, CPU per request, memory, with intervals.

    BEFORE and AFTER are two stored runs of one machine or, with --app, two revisions of an app, which are raced against
    each other until the answer is settled.
    """
    with heavy:
        from velodrome.cli._shown import BlockLines  # noqa: PLC0415
        from velodrome.judge import regression  # noqa: PLC0415
        from velodrome.model.errors import BadOptionError, NeedlessOptionError  # noqa: PLC0415
        from velodrome.run.racing import store  # noqa: PLC0415
        from velodrome.usecases import diff  # noqa: PLC0415
        from velodrome.usecases.apps import split_stacks  # noqa: PLC0415
        from velodrome.usecases.events import Events  # noqa: PLC0415

    check_paths([("--out", out)])
    criteria = regression.criteria(
        threshold or (), margin or (), [name.strip() for name in metrics.split(",") if name.strip()]
    )
    if app:
        if not after:
            raise BadOptionError("--app", app, "name two revisions: velodrome diff HEAD~1 HEAD --app …")
        server.check_folder(run, resume=False, option="--run")
        mix = apps.mix(context.params)
        names, extra = split_stacks(stack or ())
        terms = Terms(
            connections,
            server.rate("--rate", rate) or mix.peak_rps,
            server.limits(cpus, memory),
            seconds=server.seconds("-z", length),
            link=server.between(link),
            stacks=names,
            workers=workers,
            arrivals=arrivals,
        )
        spec = diff.DiffSpec(
            apps.app_spec(app, context.params, mix.requests),
            before,
            after,
            terms,
            extra,
            server.budget(budget),
            blocks,
            wait,
        )
        if dry_run:
            server.show_plan(diff.dry_run(spec, Events()), as_json=form == "json")
            return
        found = diff.diff(spec, criteria, run, BlockLines())
    else:
        every = {str(param.name) for param in context.command.params} - OF_STORED
        if needless := apps.typed_options(context, every):
            raise NeedlessOptionError(
                needless, "stored runs are compared as they are; to race revisions name the --app"
            )
        second = store.read(Path(after)) if after else None
        found = diff.compare_stored(store.read(Path(before)), second, criteria, (before, after))
    _write(found, form, out)
    if code := exit_code(found, fail_on or ()):
        sys.exit(code)


def _write(found: Diff, form: Format, out: Path | None) -> None:
    """Write a diff in this form, to standard output or a file. Raises OutputError."""
    from velodrome.report import differences  # noqa: PLC0415

    if form == "text" and out is None:
        from velodrome.report import terminal  # noqa: PLC0415

        differences.show(found, terminal.console(sys.stdout))
        return
    match form:
        case "markdown":
            text = differences.markdown_text(found)
        case "json":
            text = differences.json_text(found)
        case "junit":
            text = differences.junit_text(found)
        case "text":
            text = "".join(f"{line.plain}\n" for line in differences.lines(found, 120))
    if out is None:
        sys.stdout.write(text)
        return
    from velodrome.report import writing  # noqa: PLC0415

    writing.write(out, text)


def exit_code(diff: Diff, fail_on: Sequence[FailOn]) -> int:
    """Return what the command ends with: a broken threshold before an undecided one."""
    changes = {difference.change for difference in diff.differences} or {Change.INSUFFICIENT}
    held = {gate.held for gate in diff.gates}
    if False in held or changes & {Change(name) for name in fail_on}:
        return FAILED
    if None in held or (fail_on and Change.INSUFFICIENT in changes):
        return CANNOT_TELL
    return 0


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("diff")(command)

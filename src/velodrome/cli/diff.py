"""`velodrome diff`: what became worse or better between two stored runs, or two revisions of an app."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from velodrome.cli import _app_options as app_options
from velodrome.cli import _app_options as asked_options
from velodrome.cli import _app_options as needless
from velodrome.cli import _app_options as trusting
from velodrome.cli import _server_options as raced_options
from velodrome.cli import _server_options as serving
from velodrome.cli._app_options import tell_unread
from velodrome.cli._racing import folder
from velodrome.cli._telling import CANNOT_TELL, FAILED, tell
from velodrome.guest import catalog
from velodrome.judge import before_after, regression
from velodrome.judge.regression import Asked, diff
from velodrome.model import quantity
from velodrome.model.difference import Change, Diff
from velodrome.model.errors import BadOptionError, NeedlessOptionError
from velodrome.model.measurement import Failed
from velodrome.model.metric import DIFF_METRICS
from velodrome.model.results import Result
from velodrome.run.apps import revisions
from velodrome.run.racing import store
from velodrome.usecases import apps
from velodrome.usecases import diff as revising
from velodrome.usecases.compare import Terms
from velodrome.usecases.quiet import Quiet

FORMATS = ("text", "markdown", "json", "junit")
Format = Literal["text", "markdown", "json", "junit"]


class FailOn(StrEnum):
    """A change that a command fails on."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"


Thresholds = Annotated[
    list[str] | None,
    typer.Option("--threshold", help="By how much a figure may become worse: 'p99 +10%'. Else exit code 1."),
]
FailsOn = Annotated[
    list[FailOn] | None, typer.Option("--fail-on", help="Exit code 1 on it, 4 if that cannot be told.")
]
Margins = Annotated[
    list[str] | None, typer.Option("--margin", help="A difference below this is none: 5%, or p99=20%.")
]
Metrics = Annotated[
    str, typer.Option("--metrics", help=f"Look only at these: {','.join(DIFF_METRICS)}. Fewer tell sooner.")
]
AsFormat = Annotated[Format, typer.Option("--format", help="How it is told.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write it into this file.")]


def looked_at(thresholds: Sequence[str] | None, margins: Sequence[str] | None, metrics: str) -> Asked:
    """Return what the options say. Raises ThresholdError."""
    named = [name.strip() for name in metrics.split(",") if name.strip()]
    return regression.asked(thresholds or (), margins or (), named)


@dataclass(frozen=True)
class Telling:
    """In which form a diff is told, and where."""

    form: Format
    out: Path | None

    def tell(self, diff: Diff) -> None:
        """Write it. Raises OutputError."""
        if self.out is None:
            sys.stdout.write(self._text(diff)) if self.form != "text" else self._show(diff)
            return
        from velodrome.report.json import save  # noqa: PLC0415

        save(self.out, self._text(diff))

    def _show(self, diff: Diff) -> None:
        from velodrome.report import differences, terminal  # noqa: PLC0415

        differences.show(diff, terminal.console(sys.stdout))

    def _text(self, diff: Diff) -> str:
        from velodrome.report import differences  # noqa: PLC0415

        match self.form:
            case "markdown":
                return differences.markdown_text(diff)
            case "json":
                return differences.json_text(diff)
            case "junit":
                return differences.junit_text(diff)
            case "text":
                return "".join(f"{line.plain}\n" for line in differences.lines(diff, 120))


def exit_code(diff: Diff, fail_on: Sequence[FailOn]) -> int:
    """Return what the command ends with: a broken threshold before one that cannot be told."""
    changes = {one.change for one in diff.differences} or {Change.INSUFFICIENT}
    held = {one.held for one in diff.gates}
    if False in held or changes & {Change(one) for one in fail_on}:
        return FAILED
    if None in held or (fail_on and Change.INSUFFICIENT in changes):
        return CANNOT_TELL
    return 0


App = Annotated[
    str, typer.Option("--app", help="BEFORE and AFTER are revisions of this app: module:attribute.")
]
Budget = Annotated[str, typer.Option(help="Revisions: no block is begun that would end after so long.")]
Blocks = Annotated[
    int | None, typer.Option(min=1, help="Revisions: so many blocks, instead of until it is settled.")
]
RunFolder = Annotated[
    Path | None, typer.Option("--run", help="Revisions: folder for results (runs/<date>-diff-…).")
]


@dataclass(frozen=True)
class Raced:
    """How two revisions are raced."""

    app: apps.Asked
    terms: Terms
    budget_s: float
    blocks: int | None
    run: Path | None
    wait: bool
    extra: tuple[str, ...] = ()
    """Paths of stacks of the user's own."""


def race(before: str, after: str, how: Raced, asked: Asked) -> Diff:
    """Check both out, race them, and return the diff; the app's commands run before and after.

    Raises GitError, RevisionError and what a race raises.
    """
    with (
        apps.commands_around(how.app, tell),
        revisions.checked_out(apps.folder(how.app.cwd), (before, after)) as found,
    ):
        lab = apps.lab_for(how.app, how.extra)
        tell(f"{found[0].name} against {found[1].name}")
        study = revising.laid_out(how.app, found, how.terms, lab)
        raced = [lab.stacks[one.stack] for one in study.contestants]
        tell_unread([one.app for one in study.questions], raced)
        where = folder(study.name, how.run, resume=False)
        diff = revising.raced(
            study,
            lab,
            where,
            ToldRace(),
            asked=asked,
            budget_s=how.budget_s,
            blocks=how.blocks,
            wait_s=None if how.wait else 0.0,
            told=tell,
        )
    tell(f"results are in {where}; tell them again: velodrome diff {where}")
    return diff


class ToldRace(Quiet):
    """A line for each result on standard error, where a report on standard output is not disturbed."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def preparing(self, text: str) -> None:
        """Told what is done before the first heat."""
        tell(text)

    def finished(self, result: Result) -> None:
        """Told each result; those of earlier blocks come again."""
        trial = result.trial
        if trial.key in self._told:
            return
        self._told.add(trial.key)
        if isinstance(result, Failed):
            said = f"failed: {result.reason}"
        else:
            aside = "" if result.valid else ", set aside"
            said = f"{quantity.rate(result.load.throughput_rps)}{aside}"
        tell(
            f"block {trial.block + 1}  {trial.question:6}  {trial.contestant.label}  {trial.load.label}  {said}"
        )


DEFAULTS = Terms()


OF_STORED = frozenset(
    ("before", "after", "app", "threshold", "fail_on", "margin", "metrics", "form", "out", "help")
)
"""Parameters that say something to stored runs; all others are of two revisions, which are raced."""


def command(
    context: typer.Context,
    before: Annotated[
        str, typer.Argument(help="A stored run, its folder or results.jsonl; with --app a revision of git.")
    ],
    after: Annotated[
        str, typer.Argument(help="What it is compared with; left out for a run of two revisions.")
    ] = "",
    threshold: Thresholds = None,
    fail_on: FailsOn = None,
    margin: Margins = None,
    metrics: Metrics = "",
    form: AsFormat = "text",
    out: Out = None,
    app: App = "",
    request: asked_options.Lines = None,
    requests: asked_options.File = None,
    access_log: asked_options.AccessLog = None,
    openapi: asked_options.OpenApi = None,
    methods: asked_options.Methods = "",
    trust: trusting.TrustGiven = False,
    header: app_options.Header = None,
    header_file: app_options.HeaderFile = None,
    python: app_options.Python = "",
    cwd: app_options.Cwd = "",
    env: app_options.Env = None,
    env_file: app_options.EnvFile = None,
    secret: app_options.Secret = None,
    interface: app_options.Interface = "",
    upstream: app_options.Upstream = None,
    proto: app_options.Proto = "",
    setup: app_options.Setup = "",
    teardown: app_options.Teardown = "",
    user: app_options.User = "",
    allow_sdist: app_options.AllowSdist = False,
    stack: Annotated[
        list[str] | None,
        typer.Option(help="Serve it on this stack, or yours in ./mine.py (a common one); repeatable."),
    ] = None,
    workers: serving.Workers = None,
    connections: raced_options.Connections = DEFAULTS.connections,
    rate: raced_options.Rate = None,
    length: raced_options.Length = "3s",
    cpus: serving.Cpus = None,
    memory: serving.Memory = "",
    link: raced_options.Between = "",
    blocks: Blocks = None,
    budget: Budget = "10m",
    run: RunFolder = None,
    wait: serving.Wait = False,
) -> None:
    """Tell what became worse or better: percentiles, throughput, CPU per request, memory, with intervals.

    BEFORE and AFTER are two stored runs of one machine or, with --app, two revisions of an app, which are raced against
    each other until the answer is settled.
    """
    asked = looked_at(threshold, margin, metrics)
    if app:
        if not after:
            raise BadOptionError("--app", app, "name two revisions: velodrome diff HEAD~1 HEAD --app …")
        mix = asked_options.mix(request, requests, access_log, openapi, methods, trust)
        given = app_options.Given(
            python,
            cwd,
            env,
            interface,
            upstream,
            proto,
            mix.requests,
            header,
            setup,
            teardown,
            user,
            allow_sdist,
            env_file,
            header_file,
        )
        names, extra = apps.named(stack or ())
        terms = Terms(
            connections,
            serving.rate("--rate", rate) or mix.peak_rps,
            serving.limits(cpus, memory),
            seconds=serving.seconds("-z", length),
            link=raced_options.between(link),
            stacks=names,
            workers=workers,
        )
        budget_s = serving.seconds("--budget", budget)
        how = Raced(given.asked(app), terms, budget_s, blocks, run, wait, extra)
        found = race(before, after, how, asked)
    else:
        _refuse_needless(context)
        found = _of_stored(before, after, asked)
    Telling(form, out).tell(found)
    if code := exit_code(found, fail_on or ()):
        sys.exit(code)


def _of_stored(before: str, after: str, asked: Asked) -> Diff:
    """Compare two stored runs, or the revisions in one."""
    stacks, first = catalog.stacks(), store.read(Path(before))
    if not after:
        return diff(before_after.revisions(first, stacks), asked)
    return diff(before_after.runs(first, store.read(Path(after)), stacks, (before, after)), asked)


def _refuse_needless(context: typer.Context) -> None:
    names = {str(one.name) for one in context.command.params} - OF_STORED
    if found := needless.given(context, names):
        raise NeedlessOptionError(
            found, "stored runs are compared as they are; to race revisions name the --app"
        )


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("diff")(command)

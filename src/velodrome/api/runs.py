"""`velodrome.read`: a stored run, its measurements as a table, and what is judged of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from velodrome.api import tables
from velodrome.api.apps import (
    Asks,
    app_spec,
    budget_of,
    folder_of,
    limits_of,
    mix_of,
    terms_of,
    trusting,
)
from velodrome.api.arguments import checked
from velodrome.guest import catalog
from velodrome.judge.regression import DiffCriteria, criteria
from velodrome.judge.verdict import judge
from velodrome.model import quantity
from velodrome.model.difference import Change, Diff, Difference
from velodrome.model.errors import UsageError
from velodrome.model.load import Arrivals
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.results import Result, Results
from velodrome.model.study import Study
from velodrome.model.verdict import Verdict
from velodrome.report import differences, names
from velodrome.report.typeset import estimate
from velodrome.run.faults import refusals
from velodrome.run.lab import OnHosts
from velodrome.run.racing import store
from velodrome.run.supervision import scratch
from velodrome.usecases import apps
from velodrome.usecases import compare as comparing
from velodrome.usecases import diff as revising
from velodrome.usecases import race as racing
from velodrome.usecases.compare import CompareSpec
from velodrome.usecases.diff import DiffSpec
from velodrome.usecases.events import Events
from velodrome.usecases.race import RaceSpec
from velodrome.usecases.terms import Terms

HEADS = ("", "requests/s", "p50 ms", "p99 ms", "CPU µs/request", "memory MB")


@dataclass(frozen=True)
class Run(tables.Tabled):
    """A race that was run."""

    path: Path
    """Its folder."""
    results: Results

    @cached_property
    def verdict(self) -> Verdict:
        """What its measurements say: an answer for each question, with rankings and intervals."""
        return judge([self.results], catalog.stacks())

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All that was measured, also what is set aside (`measurement.valid`)."""
        return tuple(trial for trial in self.results.trials if isinstance(trial, Measurement))

    @property
    def failures(self) -> tuple[Failed, ...]:
        """What could not be measured, each with its reason."""
        return tuple(trial for trial in self.results.trials if isinstance(trial, Failed))

    def rows(self) -> list[tables.Row]:
        """Return one row a trial."""
        return list(map(_row, self.results.trials))

    def __repr__(self) -> str:
        study = self.results.header.study
        return f"<run of {study.name}: {len(self.measurements)} measurements in {self.path}>"

    def _repr_html_(self) -> str:
        return "".join(
            tables.table(answer.sentence, HEADS, map(_standing, answer.standings), answer.why)
            for answer in self.verdict.answers
        )


@refusals()
@checked()
def read(run: str | Path) -> Run:
    """Return a stored run, given its folder or its results.jsonl. Raises ResultsError."""
    path = Path(run)
    return Run(path if path.is_dir() else path.parent, store.read(path))


def _standing(standing: Any) -> tuple[str, ...]:
    view = names.latency_view(standing.latency)
    rate, cpu = standing.throughput_rps, standing.cpu_us_per_request
    return (
        f"{standing.rank or '⚑'} {names.of_standing(standing)}",
        estimate(rate) if rate else quantity.MISSING,
        names.milliseconds(view, "p50_ms"),
        names.milliseconds(view, "p99_ms"),
        estimate(cpu) if cpu else quantity.MISSING,
        quantity.megabytes(standing.memory_bytes),
    )


def _row(result: Result) -> tables.Row:
    trial = result.trial
    row: dict[str, Any] = {
        "question": trial.question,
        "contestant": trial.label,
        "stack": trial.contestant.stack,
        "load": trial.load.label,
        "block": trial.block,
        "started_at": result.started_at,
        "valid": isinstance(result, Measurement) and result.valid,
        "throughput_rps": None,
        **{f"{name}_ms": None for name in _LATENCIES},
        "cpu_us": None,
        "memory_bytes": None,
        "requests": None,
        "ok": None,
        "flags": "",
        "failed": result.reason if isinstance(result, Failed) else "",
    }
    if isinstance(result, Failed):
        return row
    return row | {
        "throughput_rps": result.load.throughput_rps,
        **{f"{name}_ms": getattr(result.load.due, name) for name in _LATENCIES},
        "cpu_us": result.cpu_us_per_request,
        "memory_bytes": result.memory_bytes,
        "requests": result.load.requests,
        "ok": result.load.ok,
        "flags": ", ".join(sorted({flag.kind.value for flag in result.flags})),
    }


_LATENCIES = ("mean", "p50", "p90", "p99", "p99_9", "max")


@refusals()
@checked()
def race(
    study: str | Path | Study,
    *,
    out: str | Path | None = None,
    only: Sequence[str] = (),
    quick: bool = False,
    blocks: int | None = None,
    budget: float | str | None = None,
    seed: int | None = None,
    python: str = "",
    wait: bool = False,
    trust: bool = False,
    agents: str | int | None = None,
    keys: str | Path | None = None,
    server_on: str = "",
    load_from: Sequence[str] = (),
    third_party_on: str = "",
) -> Run:
    """Race every contestant of a study: a study that ships (`"first-lap"`), a TOML file, or a `Study`.

    Results go into `out`; without it into a temporary folder that is gone when this process ends. `only` are patterns
    of `question/contestant`; `budget` is the time to measure for (`"10m"`); `wait` waits while another velodrome
    measures; `trust` allows what a file names: executables and packages; `agents` run whole blocks each: those of a
    coordinator (`"tls://host:8786"`, with its certificates in the folder `keys`), or so many of this machine. Of
    agents, `server_on` serves while those of `load_from` load it and `third_party_on` has third parties: names, hosts
    or addresses of agents; without them their roles say it.

    Raises StudyFileError, UntrustedError, UnknownNameError, NothingSelectedError, BusyError, PlacingError and what else
    keeps a race from being run; a contestant that fails is a result.
    """
    spec = RaceSpec(
        study if isinstance(study, Study) else str(study),
        tuple(only),
        quick,
        blocks,
        seed,
        python,
        wait=wait,
        budget_s=None if budget is None else budget_of(budget),
        agents="" if agents is None else str(agents),
        keys=None if keys is None else Path(keys),
        on=OnHosts(server_on, tuple(load_from), third_party_on),
    )
    return read(racing.race(spec, trusting(trust), folder_of(out), Events()).folder)


DEFAULTS = Terms()


@refusals()
@checked(app_spec)
def compare(
    *app: object,
    requests: Asks = ("GET /",),
    connections: int = DEFAULTS.connections,
    rate: float | None = None,
    duration: float | str = DEFAULTS.seconds,
    blocks: int | None = None,
    budget: float | str | None = None,
    stacks: Sequence[str] = (),
    cpus: int | None = None,
    memory: str = "",
    link: str = "",
    arrivals: Arrivals = DEFAULTS.arrivals,
    seed: int = DEFAULTS.seed,
    out: str | Path | None = None,
    wait: bool = False,
    agents: str | int | None = None,
    keys: str | Path | None = None,
    server_on: str = "",
    load_from: Sequence[str] = (),
    third_party_on: str = "",
    send: bool = False,
    revision: str = "",
    **of_app: Any,
) -> Run:
    """Race one app, or several, on every stack that can serve it: its import path, or the object itself.

    `requests` are such as `"GET /cart?id=7"`, or those of `velodrome.requests`; `stacks` names some instead of all, or
    yours in `./mine.py`; `cpus` and `memory` (`"1g"`) limit the server, `link` (`"rtt=40ms"`) is the network between;
    `arrivals` are those at the `rate`; without `blocks` it goes on until it is settled or the `budget` is spent
    (`"10m"`), by default what three blocks of all take; `agents`, `keys` and hosts are those of `race`,
    to which `send` sends the app's folder, or `revision` a git revision of it;
    `of_app` says how it is found and what it gets: what `app_spec` takes. Each app is a question of the run.

    Raises what is wrong with the app, NoStackFitsError, BusyError and what else keeps it from being run.
    """
    if not app:
        raise UsageError("name an app: compare('shop.wsgi:application')")
    mix = mix_of(requests)
    apps_named = [app_spec(target, mix, **of_app) for target in app]
    names, extra = apps.split_stacks(stacks)
    terms = terms_of(
        limits_of(cpus, memory),
        connections=connections,
        rate=rate,
        duration=duration,
        link=link,
        stacks=names,
        blocks=blocks,
        seed=seed,
        arrivals=arrivals,
        budget_s=None if budget is None else budget_of(budget),
    )
    spec = CompareSpec(
        tuple(apps_named),
        terms,
        extra,
        wait=wait,
        agents="" if agents is None else str(agents),
        keys=None if keys is None else Path(keys),
        on=OnHosts(server_on, tuple(load_from), third_party_on),
        send=send,
        revision=revision,
    )
    return read(comparing.compare(spec, folder_of(out), Events()).folder)


@dataclass(frozen=True)
class Differences(tables.Tabled):
    """What changed, and whether thresholds were kept."""

    diff: Diff

    @property
    def change(self) -> Change:
        """The answer: `Change.REGRESSION`, `IMPROVEMENT`, `SAME` or `INSUFFICIENT`."""
        return self.diff.change

    @property
    def sentence(self) -> str:
        """The answer, for people."""
        return self.diff.sentence

    @property
    def regressions(self) -> tuple[Difference, ...]:
        """The figures that became worse."""
        return tuple(
            difference for difference in self.diff.differences if difference.change is Change.REGRESSION
        )

    @property
    def kept(self) -> bool | None:
        """Whether all thresholds were kept; None: a threshold is undecided."""
        held = {gate.held for gate in self.diff.gates}
        return False if False in held else None if None in held else True

    def markdown(self) -> str:
        """Return a comment for a pull request."""
        return differences.markdown_text(self.diff)

    def junit(self) -> str:
        """Return a JUnit report."""
        return differences.junit_text(self.diff)

    def rows(self) -> list[tables.Row]:
        """Return one row a figure."""
        return [
            {
                "question": difference.question,
                "contestant": difference.contestant,
                "load": difference.load,
                "metric": difference.metric,
                "before": difference.before,
                "after": difference.after,
                "low": difference.interval.low if difference.interval else None,
                "ratio": difference.interval.mid if difference.interval else None,
                "high": difference.interval.high if difference.interval else None,
                "change": difference.change.value,
                "margin": difference.margin,
                "chance": difference.chance,
                "chance_in_all": difference.chance_in_all,
                "more_blocks": difference.more_blocks,
                "reason": difference.reason,
            }
            for difference in self.diff.differences
        ]

    def __repr__(self) -> str:
        return f"<{self.diff.change.value}: {self.diff.sentence}>"

    def _repr_html_(self) -> str:
        found, reasons = differences.sections(self.diff)
        found_tables = [
            tables.table(section.title, differences.HEADS, (row.texts for row in section.rows))
            for section in found
        ]
        numbered = [f"[{number}] {reason}" for number, reason in enumerate(reasons, 1)]
        below = [self.diff.sentence, *numbered, *self.diff.notes]
        return tables.table(differences.headline(self.diff), (), (), below) + "".join(found_tables)


SECONDS = 3.0


def raced(
    before: str,
    after: str,
    app: str,
    looked: DiffCriteria,
    *,
    requests: Asks = ("GET /",),
    connections: int = DEFAULTS.connections,
    rate: float | None = None,
    duration: float | str = SECONDS,
    stacks: Sequence[str] = (),
    cpus: int | None = None,
    memory: str = "",
    link: str = "",
    arrivals: Arrivals = DEFAULTS.arrivals,
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
    names, extra = apps.split_stacks(stacks)
    terms = terms_of(
        limits_of(cpus, memory),
        connections=connections,
        rate=rate,
        duration=duration,
        link=link,
        stacks=names,
        workers=workers,
        arrivals=arrivals,
    )
    spec = DiffSpec(
        app_spec(app, mix_of(requests), **of_app),
        before,
        after,
        terms,
        extra,
        budget_of(budget),
        blocks,
        wait,
    )
    where = Path(out) if out is not None else scratch.make_folder("api") / "run"
    return revising.diff(spec, looked, where, Events())


@refusals()
@checked(raced, app_spec)
def diff(
    before: str | Path | Run,
    after: str | Path | Run | None = None,
    *,
    thresholds: Sequence[str] = (),
    margins: Sequence[str] = (),
    metrics: Sequence[str] = (),
    app: str = "",
    **how: Any,
) -> Differences:
    """Compare two runs of one machine, or the two revisions of one run (`after` left out).

    With `app`, an import path, `before` and `after` are revisions of git, which are raced against each other first;
    `how` is what `velodrome.compare` takes of requests, load and app, and `blocks` or `budget` (`"10m"`).

    `thresholds` are such as `"p99 +10%"`, `margins` such as `"5%"` or `"p99=20%"`, `metrics` those that are looked at.
    Raises DifferentMachinesError, NotTwoSidesError, ThresholdError, ResultsError, GitError, RevisionError.
    """
    looked = criteria(thresholds, margins, metrics)
    if app:
        if not isinstance(before, str) or not isinstance(after, str):
            raise UsageError("name two revisions: diff('HEAD~1', 'HEAD', app=…)")
        return Differences(raced(before, after, app, looked, **how))
    if how:
        raise UsageError(f"{', '.join(how)}: only where two revisions of an app are raced; name it: app=…")
    first, second = _run(before), None if after is None else _run(after)
    if second is None:
        return Differences(revising.compare_stored(first.results, None, looked))
    named = (str(first.path), str(second.path))
    return Differences(revising.compare_stored(first.results, second.results, looked, named))


def _run(run: str | Path | Run) -> Run:
    return run if isinstance(run, Run) else read(run)

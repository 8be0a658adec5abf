"""`velodrome.read`: a stored run, its measurements as a table, and what is judged of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from velodrome.api import tables
from velodrome.api.apps import Asks, asked_of, folder_of, limits_of, mix_of, seconds_of, terms_of, trusting
from velodrome.guest import catalog
from velodrome.judge.verdict import judge
from velodrome.model import quantity
from velodrome.model.errors import UsageError
from velodrome.model.load import Arrivals
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.results import Result, Results
from velodrome.model.study import Study
from velodrome.model.verdict import Verdict
from velodrome.report import names
from velodrome.report.typeset import estimate
from velodrome.run.faults import refusals
from velodrome.run.lab import OnHosts
from velodrome.run.racing import store
from velodrome.usecases import apps
from velodrome.usecases import compare as comparing
from velodrome.usecases import race as racing
from velodrome.usecases.compare import CompareSpec
from velodrome.usecases.quiet import Quiet
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
        budget_s=None if budget is None else seconds_of(budget),
        agents="" if agents is None else str(agents),
        keys=None if keys is None else Path(keys),
        on=OnHosts(server_on, tuple(load_from), third_party_on),
    )
    return read(racing.race(spec, trusting(trust), folder_of(out), Quiet()).folder)


DEFAULTS = Terms()


@refusals()
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
    `of_app` says how it is found and what it gets: what `asked_of` takes. Each app is a question of the run.

    Raises what is wrong with the app, NoStackFitsError, BusyError and what else keeps it from being run.
    """
    if not app:
        raise UsageError("name an app: compare('shop.wsgi:application')")
    mix = mix_of(requests)
    apps_named = [asked_of(target, mix, **of_app) for target in app]
    names, extra = apps.named(stacks)
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
        budget_s=None if budget is None else seconds_of(budget),
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
    return read(comparing.compare(spec, folder_of(out), Quiet()).folder)

"""`velodrome.capacity` and `velodrome.tune`: how much an app can do on a stack, and which setting to deploy."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from velodrome.api import tables
from velodrome.api.apps import (
    Asks,
    app_spec,
    budget_of,
    conditions_of,
    folder_of,
    limits_of,
    link_of,
    mix_of,
    seconds_of,
)
from velodrome.api.arguments import checked
from velodrome.guest.stack import KnobValue
from velodrome.model.errors import UsageError
from velodrome.model.load import INDEPENDENT, Arrivals
from velodrome.model.quantity import Interval
from velodrome.model.search import Ending, Knee, Probe, RateCapacity, RateFound, Sample
from velodrome.model.tuning import Goal, Recommendation
from velodrome.report import recommendation as recommending
from velodrome.report import searches
from velodrome.run.faults import refusals
from velodrome.usecases import capacity as searching
from velodrome.usecases import tune as tuning
from velodrome.usecases.apps import ServedSpec
from velodrome.usecases.capacity import CapacitySpec
from velodrome.usecases.events import Events
from velodrome.usecases.terms import Knobs, refuse_arrivals, refuse_rate
from velodrome.usecases.tune import TuneSpec

COLOURS = "--ink:currentColor;--muted:#808080;--grid:#80808055;--c0:#4477aa"
"""Of charts in a notebook, light or dark: a report sets its own."""
STUDY = "api"
"""The study that trials of a search are of."""


@dataclass(frozen=True)
class Capacity(tables.Tabled):
    """What a search for the highest rate, or for the knee of a closed loop, came to."""

    title: str
    found: RateCapacity | Knee

    @property
    def ending(self) -> Ending:
        """How it ended: `Ending.CONVERGED` has an interval, the others say why in the sentence."""
        return self.found.ending

    @property
    def interval(self) -> Interval | None:
        """The highest rate at which the SLO holds, requests a second; of a closed loop the connections of its knee."""
        search = self.found.found
        return search.interval if isinstance(search, RateFound) else search.connections

    @property
    def sentence(self) -> str:
        """The answer, for people."""
        return searches.sentence(self.found)

    def document(self) -> dict[str, Any]:
        """Return the answer as plain values, as `velodrome capacity --json` prints it."""
        return searches.document(self.found, self.title)

    def rows(self) -> list[tables.Row]:
        """Return one row for each load that was tried."""
        search = self.found.found
        tried: Sequence[Probe | Sample] = search.probes if isinstance(search, RateFound) else search.samples
        return [asdict(probe) for probe in tried]

    def __repr__(self) -> str:
        return f"<{self.title}: {self.sentence}>"

    def _repr_html_(self) -> str:
        table = tables.table(self.title, *tables.columns(self.rows()), [self.sentence])
        chart = searches.load_chart(self.found)
        return f'{table}<div style="{COLOURS}">{chart}</div>' if chart else table


@dataclass(frozen=True)
class Tuning(tables.Tabled):
    """Which setting to deploy, the runner-up, and what would change its mind."""

    recommendation: Recommendation

    @property
    def sentence(self) -> str:
        """The answer, for people."""
        return recommending.sentence(self.recommendation)

    @property
    def command(self) -> str:
        """The command line to deploy; empty: nothing can be recommended, or nothing is settled."""
        return recommending.command_line(self.recommendation)

    @property
    def text(self) -> str:
        """All of the answer, as `velodrome tune` prints it."""
        return "\n".join(recommending.lines(self.recommendation))

    def rows(self) -> list[tables.Row]:
        """Return one row a candidate, the best first."""
        return [
            {
                "stack": entry.candidate.contestant.stack,
                "contestant": entry.candidate.contestant.label,
                "fate": entry.fate.value,
                "why": entry.why,
                "trials": entry.trials,
                "low": entry.value.low if entry.value else None,
                "value": entry.value.mid if entry.value else None,
                "high": entry.value.high if entry.value else None,
                "memory_bytes": entry.memory_bytes,
            }
            for entry in self.recommendation.tuned.entries
        ]

    def document(self) -> dict[str, Any]:
        """Return the answer as plain values, as `velodrome tune --json` prints it."""
        return recommending.document(self.recommendation)

    def __repr__(self) -> str:
        return f"<{self.recommendation.of}: {self.sentence}>"

    def _repr_html_(self) -> str:
        below = [self.sentence, self.command, *(reason.sentence for reason in self.recommendation.mind)]
        return tables.table(self.recommendation.of, *tables.columns(self.rows()), below)


@refusals()
@checked(app_spec)
def capacity(
    app: object,
    *,
    slo: str | Sequence[str] = (),
    closed: bool = False,
    stack: str = "",
    knobs: Mapping[str, KnobValue] | None = None,
    requests: Asks = ("GET /",),
    duration: float | str | None = None,
    cpus: int | None = None,
    memory: str = "",
    link: str = "",
    arrivals: Arrivals = INDEPENDENT,
    wait: bool = False,
    budget: float | str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    **of_app: Any,
) -> Capacity:
    """Search the highest rate at which `slo` (`"p99 < 200ms and errors < 0.1%"`) holds on one stack, or with `closed`
    the connections at which throughput stops rising.

    `app` is an import path or the object itself; without `stack` a common one serves it, and `"./mine.py"` is yours;
    `link` (`"rtt=40ms"`) is the network between; requests arrive as those of independent users do, or with
    `arrivals="constant"` evenly spaced; `of_app` is what `app_spec` takes.

    `budget` is the time to measure in, seconds or `"5m"`; None: as long as it takes. Measurements go into `out`,
    without it into a temporary folder that is gone when this process ends; with `resume` a search that was interrupted
    goes on in `out`. Raises what is wrong with the app, UnknownKnobError, ConditionError, NoServerError, BusyError,
    ResultsExistError, StudyChangedError.
    """
    refuse_arrivals(arrivals)
    if closed and slo:
        raise UsageError("closed=True shows throughput alone: leave slo out, or leave closed out")
    if closed and budget is not None:
        raise UsageError("closed=True has no budget: leave budget out, or leave closed out")
    spec = CapacitySpec(
        ServedSpec(app_spec(app, mix_of(requests), **of_app)),
        stack,
        Knobs(named=knobs or {}),
        conditions_of(slo),
        closed,
        limits_of(cpus, memory),
        link_of(link),
        None if duration is None else seconds_of(duration),
        wait,
        STUDY,
        arrivals,
        folder_of(out),
        resume,
        None if budget is None else budget_of(budget),
    )
    found = searching.capacity(spec, Events())
    return Capacity(f"{found.called} · {found.name}", found.found)


@refusals()
@checked(app_spec)
def tune(
    app: object,
    *,
    slo: str | Sequence[str] = (),
    rate: float | None = None,
    goal: str = "",
    stacks: Sequence[str] = (),
    requests: Asks = ("GET /",),
    cpus: int | None = None,
    memory: str = "",
    budget: float | str = 600.0,
    arrivals: Arrivals = INDEPENDENT,
    wait: bool = False,
    paste: bool = False,
    out: str | Path | None = None,
    resume: bool = False,
    agents: str | int | None = None,
    keys: str | Path | None = None,
    **of_app: Any,
) -> Tuning:
    """Search the stack and settings with the most capacity at the SLO or, with a `rate`, those that carry it with the
    least CPU (or, `goal="memory"`, memory), within `cpus` and `memory`; with `paste` there is a command line although
    nothing is settled.

    Measurements go into `out`, without it into a temporary folder that is gone when this process ends; with `resume`
    a tuning that was interrupted goes on in `out`. With `agents` the hosts of a coordinator's agents measure
    (`"tls://host:8786"`, or how many of this machine; `keys` is the folder of the certificates). `of_app` is what
    `app_spec` takes.

    Raises what is wrong with the app, ConditionError, NoStackFitsError, BusyError, ResultsExistError,
    StudyChangedError, and with agents what `race` does.
    """
    if goal and goal not in {known.value for known in Goal}:
        raise UsageError(f"goal={goal!r} is none; there are {', '.join(known.value for known in Goal)}")
    refuse_rate(rate)
    refuse_arrivals(arrivals)
    wanted = Goal(goal) if goal else Goal.CPU if rate else Goal.CAPACITY
    if (wanted is Goal.CAPACITY) == bool(rate):
        raise UsageError(f"goal={wanted.value!r} {'takes no' if rate else 'needs a'} rate")
    spec = TuneSpec(
        ServedSpec(app_spec(app, mix_of(requests), **of_app)),
        tuple(stacks),
        wanted,
        rate or 0.0,
        conditions_of(slo),
        limits_of(cpus, memory),
        budget_of(budget),
        wait,
        STUDY,
        paste,
        arrivals,
        folder_of(out),
        resume,
        "" if agents is None else str(agents),
        None if keys is None else Path(keys),
    )
    return Tuning(tuning.tune(spec, Events()))

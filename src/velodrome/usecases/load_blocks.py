"""One load in several blocks, one after the other, on a server that runs already or on an app that is served for it.

    load(Target("http://127.0.0.1:8000/"), Terms(rate=200))
    load_app(AppSpec("shop.wsgi:application"), Terms(rate=200))

Several blocks, because a single span cannot tell how sure its figures are.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from velodrome.guest.stack import KnobValue
from velodrome.judge.loaded import Block, Blocks
from velodrome.model.errors import AgentLostError, NothingAnsweredError, UsageError
from velodrome.model.load import INDEPENDENT, Arrivals, Closed, Link, Load, Open
from velodrome.model.measurement import Failed, LoadFacts
from velodrome.model.trial import Session, Trial
from velodrome.run.drivers import load_document
from velodrome.run.drivers.driver import LoadEvent, Target
from velodrome.run.drivers.velodrome import VelodromeDriver
from velodrome.run.engine import LoadSpec
from velodrome.run.machine import facts, known_noise
from velodrome.run.racing.session import refusal, run_alone
from velodrome.usecases.apps import AppSpec, ServedSpec, prepare_on
from velodrome.usecases.bench import QUESTION, UNLIMITED
from velodrome.usecases.terms import Knobs, refuse_arrivals, refuse_count, refuse_rate

BLOCKS = 5
LEAST_S = 0.2
"""Of a block."""
SETTLE_S = 0.1
"""Warm-up of the blocks after the first: connections are opened anew."""


@dataclass(frozen=True)
class Terms:
    """How a server is loaded: plain data."""

    rate: float | None = None
    """Requests a second, whatever the server does; None: a closed loop."""
    connections: int | None = None
    """At most; None: 1000 in an open loop, 50 in a closed loop."""
    seconds: float = 10.0
    """Of all blocks together."""
    warmup_s: float = 1.0
    timeout_s: float = 10.0
    blocks: int = BLOCKS
    arrivals: Arrivals = INDEPENDENT
    """Of an open loop."""

    @property
    def loads(self) -> tuple[Load, ...]:
        """The load of each block: the first after a warm-up. Raises UsageError for what makes no sense."""
        refuse_rate(self.rate)
        refuse_count("connections", self.connections)
        refuse_arrivals(self.arrivals)
        if self.blocks < 1 or self.seconds / self.blocks < LEAST_S:
            least = max(self.blocks, 1) * LEAST_S
            raise UsageError(
                f"{self.seconds:g} s are too few for {self.blocks} blocks; load for {least:g} s at least"
            )
        pace: Open | Closed
        if self.rate is None:
            pace = Closed(self.connections or LoadSpec.connections)
        else:
            pace = Open(self.rate, self.arrivals, self.connections or Open.connections)
        first = Load(pace, self.seconds / self.blocks, self.warmup_s, timeout_s=self.timeout_s)
        rest = replace(first, warmup_s=min(first.warmup_s, SETTLE_S))
        return first, *[rest] * (self.blocks - 1)


def load(target: Target, terms: Terms, agents: str | None = None, keys: Path | None = None) -> Blocks:
    """Load a server that runs already, by agents if there are any (`cluster_load`), and return all blocks.

    Raises NothingAnsweredError when no request was answered right, LoadRefusedError for a target that is not this
    machine, UsageError, DriverError; AgentLostError and what else `cluster_load.load` raises.
    """
    found = []
    with _carrier(agents, keys) as carried:
        for number, next_load in enumerate(terms.loads):
            became = carried(VelodromeDriver(seed=number + 1), next_load, target)
            if not number and not became.ok:
                raise NothingAnsweredError(target.url, became.examples[0] if became.examples else "")
            found.append(Block.of_url(became))
    return Blocks(terms.loads[0], tuple(found), known_noise.of(facts.facts()))


@contextmanager
def _carrier(
    agents: str | None, keys: Path | None
) -> Iterator[Callable[[VelodromeDriver, Load, Target], LoadFacts]]:
    """Yield what carries a load: an engine of this machine, or agents."""
    if agents is None:
        yield lambda driver, load, target: driver.run(load, target, _go_on)
        return
    from velodrome.usecases import cluster_load  # noqa: PLC0415 - brings Dask

    with cluster_load.by_agents(agents, keys) as by_agents:

        def carried(driver: VelodromeDriver, load: Load, target: Target) -> LoadFacts:
            document = by_agents(driver.spec(load, target), lambda _event: True)
            for row in document["agents"]:
                if row["lost"]:  # what the others measured is not this load
                    raise AgentLostError(row["name"], row["address"], row["lost"])
            return load_document.facts_of(document)

        yield carried


@dataclass(frozen=True)
class On:
    """On what an app is served for a load."""

    stack: str = ""
    """Its name, or its file (`./mine.py`); empty: the first that can, of those that are common."""
    knobs: Mapping[str, KnobValue] = field(default_factory=dict)
    link: Link | None = None
    """The network between; None: loopback."""


DEFAULT = On()


def load_app(spec: AppSpec, terms: Terms, on: On = DEFAULT) -> Blocks:
    """Serve an app between its user's commands, load it, and return all blocks.

    Raises AppAnswersWrongError, AppNotServedError, and what `apps.prepare_on` does.
    """
    loads = terms.loads
    with prepare_on(ServedSpec(spec), on.stack, Knobs(named=on.knobs), lambda _: None) as (served, who):
        app, lab = served.app, served.lab
        assert app is not None
        trials = [
            Trial(app.path, QUESTION, app.recipe, who, load, UNLIMITED, number, link=on.link, app=app)
            for number, load in enumerate(loads)
        ]
        found = []
        with closing(run_alone(Session(tuple(trials)), lab)) as results:
            for result in results:
                if isinstance(result, Failed):
                    raise refusal(
                        app, result.trial.contestant.label, result.failure, result.reason, result.last_lines
                    )
                found.append(Block.of(result))
    return Blocks(loads[0], tuple(found), known_noise.of(facts.facts()))


def _go_on(_event: LoadEvent) -> bool:
    return True

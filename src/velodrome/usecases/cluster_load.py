"""One load from many agents: those of a coordinator, or so many of this machine for the length of the load.

document = load(Work(LoadSpec(url="http://127.0.0.1:8000/", rate=500, duration_s=10), agents="2"), on_event)
"""

import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from velodrome.judge.bottleneck import bottleneck, evidence
from velodrome.model.errors import TooFewCpusError, UsageError
from velodrome.run.cluster import conducting, coordinator, keys, mesh, talking
from velodrome.run.cluster.address import AUTO, count_local
from velodrome.run.cluster.conducting import OnEvent, Player
from velodrome.run.engine import LoadSpec
from velodrome.run.machine.facts import usable_cpus
from velodrome.run.supervision import scratch
from velodrome.usecases.load import Work

Document = dict[str, Any]

LOOPBACK = "127.0.0.1"
LOOK_S, LOOK_RATE = 1.0, 10_000.0
"""How long the look before a load takes, and at which rate at most: one CPU can do it, and at higher rates a request
costs less, because several are sent at each waking."""
PLANNED = 0.6
"""Of a CPU, that agents are planned to use: on a busier one a request waits for those before it."""


@dataclass(frozen=True)
class Need:
    """How many agents a rate takes, by what one request took of a CPU."""

    rate: float
    """The highest of the load, requests a second."""
    cpu_s: float
    """Of one request."""
    threads: int
    """Of each agent."""

    @property
    def agents(self) -> int:
        """So many at least, none of them busier than planned."""
        return max(1, math.ceil(self.rate * self.cpu_s / (PLANNED * self.threads)))

    @property
    def note(self) -> str:
        """For whoever reads the result."""
        share = self.rate * self.cpu_s / (self.agents * self.threads)
        return (
            f"{self.agents} agent{'s' * (self.agents > 1)}, because a request took {self.cpu_s * 1e6:.1f} µs of CPU in "
            f"a look of {LOOK_S:g} s: {share:.0%} of a CPU for each thread at {self.rate:,.0f}/s"
        )


def load(work: Work, on_event: OnEvent) -> Document:
    """Carry a load by its agents and return its document, with `agents`, `server` (null) and `limit`.

    `work.agents` is the address of a coordinator, or a number: so many agents of this machine; `auto`: as many as a
    short look says, which `work.notes` then have. `on_event` gets how it goes, and ends the load by returning False.
    Raises ClusterAddressError, ClusterKeysError, CoordinatorError, NoAgentsError, AgentsDifferError, AgentRefusedError,
    AgentLostError, TooFewCpusError, UsageError.
    """
    if work.idle:
        raise UsageError("--idle holds connections from this machine; leave it out with --agents")
    agents = work.agents or "1"
    if agents == AUTO:
        need = agents_needed(work.spec)
        agents, work.notes = str(need.agents), [*work.notes, need.note]
    with by_agents(agents, Path(work.keys) if work.keys else None) as carried:
        document = carried(work.spec, on_event)
    if (more := _more(work.spec, document)) is not None:
        work.notes = [*work.notes, more]
    return document


def agents_needed(spec: LoadSpec) -> Need:
    """Return how many agents of this machine a load takes, by a short load of the same target by one of them.

    Raises UsageError for a closed loop, TooFewCpusError where this machine has too few, and what `load` does.
    """
    rate = highest(spec)
    if rate is None:
        raise UsageError("a closed loop has no rate that agents could be counted for; give -R, or --agents N")
    look = spec.changed(
        rate=min(rate, LOOK_RATE), schedule=(), duration_s=LOOK_S, requests=None, warmup_s=0.0
    )
    with by_agents("1") as carried:
        document = carried(look, lambda _: True)
    need = Need(rate, _cpu_s(document), spec.threads)
    cpus = len(usable_cpus())
    if need.agents * spec.threads > cpus:
        raise TooFewCpusError(rate, need.agents * spec.threads, need.cpu_s * 1e6, cpus)
    return need


def highest(spec: LoadSpec) -> float | None:
    """Return the highest rate of a load; None: it is a closed loop."""
    steps = [float(step[name]) for step in spec.schedule for name in ("rate", "to_rate") if step.get(name)]
    return max(steps, default=spec.rate)


def _cpu_s(document: Mapping[str, Any]) -> float:
    return float(document["generator"]["cpu_s"]) / max(int(document["requests"]), 1)


def _more(spec: LoadSpec, document: Mapping[str, Any]) -> str | None:
    """Return how many agents it would have taken, if the busiest was at its end."""
    rate = highest(spec)
    if rate is None or not document["generator"]["saturated"]:
        return None
    need, had = Need(rate, _cpu_s(document), spec.threads), len(document["agents"])
    return (
        f"{max(need.agents, had + 1)} agents with free CPUs are needed for {rate:,.0f}/s instead of {had}, by what a "
        f"request took of a CPU here ({need.cpu_s * 1e6:.1f} µs)"
    )


@contextmanager
def by_agents(agents: str, folder: Path | None = None) -> Iterator[Callable[[LoadSpec, OnEvent], Document]]:
    """Yield what carries loads, one after the other, by the same agents; it and this raise what `load` does."""
    with reach(agents, folder) as (text, keys_folder):
        address = talking.Address.read(text)
        security = talking.security(address.scheme, keys_folder)

        def carried(spec: LoadSpec, on_event: OnEvent) -> Document:
            document = talking.run(conducting.load(spec, address, security, on_event))
            return document | {"server": None, "limit": _limit(document)}

        yield carried


def overview(agents: str, folder: Path | None = None, *, transfers: bool = False) -> dict[str, Any]:
    """Return a `velodrome/agents/1` document: the agents of a coordinator with their clocks, and what lies
    between them.

    `transfers`: also how much goes through, which takes some seconds. Raises what `load` does of the way to them.
    """
    address = talking.Address.read(agents)
    security = talking.security(address.scheme, folder)
    return talking.run(_overview(address, security, transfers))


async def _overview(address: talking.Address, security: Any, transfers: bool) -> dict[str, Any]:
    async with _meet(address, security) as players:
        found = await mesh.between(players, transfers)
        return {
            "schema": "velodrome/agents/1",
            "coordinator": str(address),
            "agents": [_row(player) for player in players],
            "between": [asdict(pair) for pair in found.pairs],
            "left_out": found.left_out,
        }


@asynccontextmanager
async def _meet(address: talking.Address, security: Any) -> AsyncIterator[list[Player]]:
    """Yield the agents of a coordinator, their clocks read; hang up afterwards."""
    players = await conducting.present(address, security)
    try:
        await conducting.align(players)
        yield players
    finally:
        for player in players:
            await player.line.close()


def _row(player: Player) -> dict[str, Any]:
    assert player.before is not None
    best = min(reading.round_trip_ns for reading in player.readings)
    return dict(player.facts) | {
        "address": player.line.address,
        "offset_ms": player.before.ns / 1e6,
        "uncertainty_ms": player.before.uncertainty_ns / 1e6,
        "round_trip_ms": best / 1e6,
    }


@contextmanager
def reach(agents: str, folder: Path | None) -> Iterator[tuple[str, Path | None]]:
    """Yield the address of a coordinator and its keys: that which is named, or one that is started for this.

    Raises ClusterAddressError, ClusterKeysError, CoordinatorError.

    Also on loopback with keys, made for this load alone: who reaches an agent can run code as this user, and others may
    use this machine.
    """
    number = count_local(agents)
    if number is None:
        yield agents, folder
        return
    with scratch.hold_folder("keys") as made:
        keys.make(made)
        with coordinator.coordinating(LOOPBACK, 0, number, scheme="tls", folder=made) as address:
            yield address, made


def _limit(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what limited the load, by the busiest agent: one that is at its end spoils the whole."""
    shares = [row["cpu_share"] for row in document["agents"] if row["cpu_share"] is not None]
    generator = document["generator"]
    busiest = max(shares, default=0.0) * document["duration_s"] * generator["threads"]
    seen = dict(document) | {"generator": generator | {"cpu_s": max(busiest, generator["cpu_s"])}}
    return asdict(bottleneck(evidence(seen, None, None)))

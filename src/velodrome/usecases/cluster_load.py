"""One load from many agents: those of a coordinator, or so many of this machine for the length of the load.

document = load(Work(LoadSpec(url="http://127.0.0.1:8000/", rate=500, duration_s=10), agents="2"), on_event)
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from velodrome.judge.bottleneck import bottleneck, evidence
from velodrome.model.errors import ClusterAddressError, UsageError
from velodrome.run.cluster import conducting, coordinator, keys, mesh, talking
from velodrome.run.cluster.conducting import OnEvent, Player
from velodrome.run.engine import LoadSpec
from velodrome.run.supervision import scratch
from velodrome.usecases.load import Work

Document = dict[str, Any]

MOST_LOCAL = 64
"""Agents of one machine: more share its CPUs, and measure each other."""
LOOPBACK = "127.0.0.1"


def load(work: Work, on_event: OnEvent) -> Document:
    """Carry a load by its agents and return its document, with `agents`, `server` (null) and `limit`.

    `work.agents` is the address of a coordinator, or a number: so many agents of this machine. `on_event` gets how it
    goes, and ends the load by returning False. Raises ClusterAddressError, ClusterKeysError, CoordinatorError,
    NoAgentsError, AgentsDifferError, AgentRefusedError, AgentLostError, UsageError.
    """
    if work.idle:
        raise UsageError("--idle holds connections from this machine; leave it out with --agents")
    with by_agents(work.agents or "1", Path(work.keys) if work.keys else None) as carried:
        return carried(work.spec, on_event)


@contextmanager
def by_agents(agents: str, folder: Path | None = None) -> Iterator[Callable[[LoadSpec, OnEvent], Document]]:
    """Yield what carries loads, one after the other, by the same agents; it and this raise what `load` does."""
    with _coordinator(agents, folder) as (text, keys_folder):
        address = talking.Address.read(text)
        way = talking.security(address.scheme, keys_folder)

        def carried(spec: LoadSpec, on_event: OnEvent) -> Document:
            document = talking.run(conducting.load(spec, address, way, on_event))
            return document | {"server": None, "limit": _limit(document)}

        yield carried


def overview(agents: str, folder: Path | None = None, *, transfers: bool = False) -> dict[str, Any]:
    """Return a `velodrome/agents/1` document: the rows of `listed`, and what lies between agents.

    `transfers`: also how much goes through, which takes some seconds. Raises what `listed` does.
    """
    address = talking.Address.read(agents)
    way = talking.security(address.scheme, folder)
    return talking.run(_overview(address, way, transfers))


async def _overview(address: talking.Address, way: Any, transfers: bool) -> dict[str, Any]:
    players = await conducting.present(address, way)
    try:
        for player in players:
            await player.alignment()
        found = await mesh.between(players, transfers)
        return {
            "schema": "velodrome/agents/1",
            "coordinator": str(address),
            "agents": [_row(player) for player in players],
            "between": [asdict(one) for one in found.pairs],
            "left_out": found.left_out,
        }
    finally:
        for player in players:
            await player.line.close()


def listed(agents: str, folder: Path | None = None) -> list[dict[str, Any]]:
    """Return what agents a coordinator has, with their clocks. Raises what `load` does of the way to them."""
    address = talking.Address.read(agents)
    way = talking.security(address.scheme, folder)
    return talking.run(_listed(address, way))


async def _listed(address: talking.Address, way: Any) -> list[dict[str, Any]]:
    players = await conducting.present(address, way)
    try:
        for player in players:
            await player.alignment()
        return [_row(player) for player in players]
    finally:
        for player in players:
            await player.line.close()


def _row(player: Player) -> dict[str, Any]:
    assert player.before is not None
    best = min(one.round_trip_ns for one in player.readings)
    return dict(player.facts) | {
        "address": player.line.address,
        "offset_ms": player.before.ns / 1e6,
        "uncertainty_ms": player.before.uncertainty_ns / 1e6,
        "round_trip_ms": best / 1e6,
    }


@contextmanager
def _coordinator(agents: str, folder: Path | None) -> Iterator[tuple[str, Path | None]]:
    """Yield the address of a coordinator and its keys: that which is named, or one that is started for this.

    Also on loopback with keys, made for this load alone: who reaches an agent can run code as this user, and others may
    use this machine.
    """
    if not agents.isdecimal():
        yield agents, folder
        return
    if not 1 <= int(agents) <= MOST_LOCAL:
        raise ClusterAddressError(agents)
    with scratch.held("keys") as made:
        keys.make(made)
        with coordinator.coordinating(LOOPBACK, 0, int(agents), scheme="tls", folder=made) as address:
            yield address, made


def _limit(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what limited the load, by the busiest agent: one that is at its end spoils the whole."""
    shares = [row["cpu_share"] for row in document["agents"] if row["cpu_share"] is not None]
    generator = document["generator"]
    busiest = max(shares, default=0.0) * document["duration_s"] * generator["threads"]
    seen = dict(document) | {"generator": generator | {"cpu_s": max(busiest, generator["cpu_s"])}}
    return asdict(bottleneck(evidence(seen, None, None)))

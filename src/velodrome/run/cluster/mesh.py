"""How long agents take to reach each other, and how much goes through between them, as they measure it themselves.

Through what carries the talk of loads, Dask's connections, with TLS where that is on: a lower bound of the network.
One pair at a time, so that none disturbs another; what does not fit into the time is left out.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from velodrome.model.errors import AgentLostError
from velodrome.run.cluster import talking
from velodrome.run.cluster.conducting import Player

READINGS = 10
TRANSFER_S = 0.25
"""A transfer that took so long says enough."""
FIRST_BYTES, MOST_BYTES = 1 << 18, 1 << 24
"""Of one transfer; each is twice the one before it."""
WHOLE_S = 20.0
"""After so long no further pair is measured."""


@dataclass(frozen=True)
class Between:
    """What lies between two agents, in one direction."""

    origin: str
    target: str
    round_trip_ms: float | None
    mbit_s: float | None
    """Of data, one connection; None: not measured."""
    error: str = ""
    """Why nothing is known."""


@dataclass(frozen=True)
class Mesh:
    """What lies between agents."""

    pairs: tuple[Between, ...]
    left_out: int
    """Pairs for which there was no time."""


async def measure(address: str, security: talking.Security, transfers: bool) -> dict[str, float | None]:
    """Measure from this agent to another. Raises AgentLostError."""
    line = talking.Line(address, address, security)
    try:
        await line.call("velodrome_clock")  # the connection is made with the first call
        trips = []
        for _ in range(READINGS):
            sent = time.monotonic_ns()
            await line.call("velodrome_clock")
            trips.append(time.monotonic_ns() - sent)
        best = min(trips) / 1e6
        return {"round_trip_ms": best, "mbit_s": await _rate(line, best / 1e3) if transfers else None}
    finally:
        await line.close()


async def _rate(line: talking.Line, round_trip_s: float) -> float:
    """Return Mbit/s, by growing transfers, without the way of the answer."""
    size, fastest = FIRST_BYTES, 0.0
    while True:
        data = bytes(size)
        sent = time.monotonic()
        await line.call("velodrome_sink", 30.0, data=data)
        took = time.monotonic() - sent
        fastest = max(fastest, size * 8 / 1e6 / max(took - round_trip_s, took / 2))
        if took >= TRANSFER_S or size >= MOST_BYTES:
            return fastest
        size *= 2


async def measure_route(origin: Player, target: Player, *, transfers: bool, limit_s: float) -> dict[str, Any]:
    """Have an agent `measure` to another; where it does not reach that, return `error`. Raises AgentLostError."""
    question = {"address": target.line.address, "transfers": transfers}
    found: dict[str, Any] = json.loads(await origin.line.call("velodrome_measure", limit_s, **question))
    return found


async def between(players: Sequence[Player], transfers: bool) -> Mesh:
    """Have each agent measure to each other, in both directions."""
    wanted = [(origin, target) for origin in players for target in players if origin is not target]
    found: list[Between] = []
    begun = time.monotonic()
    for origin, target in wanted:
        if time.monotonic() - begun > WHOLE_S:
            break
        try:
            answer = await measure_route(origin, target, transfers=transfers, limit_s=60.0)
        except AgentLostError as error:
            answer = {"error": error.why}
        found.append(
            Between(
                origin.name,
                target.name,
                answer.get("round_trip_ms"),
                answer.get("mbit_s"),
                answer.get("error", ""),
            )
        )
    return Mesh(tuple(found), len(wanted) - len(found))

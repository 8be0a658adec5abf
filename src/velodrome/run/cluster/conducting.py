"""Conducts one load that many agents carry: sees that they agree, has all begin at once, and joins what they measured.

Request *n* of the schedule is that of agent *n mod N*, so the agents together send what one machine would. A load that
loses an agent ends: what the others measured then is no longer the load that was requested, and is marked so.
"""

import asyncio
import json
import secrets as random
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from velodrome.model import secrets
from velodrome.model.errors import (
    AgentLostError,
    AgentRefusedError,
    AgentsDifferError,
    NoAgentsError,
    UsageError,
)
from velodrome.run.cluster import clocks, merging, talking
from velodrome.run.cluster.clocks import Alignment, Reading, Windows
from velodrome.run.engine import LoadSpec
from velodrome.run.supervision import own_process

OnEvent = Callable[[Mapping[str, Any]], bool]
Document = dict[str, Any]

ROLE = "load"
"""Of the agents that carry loads."""
READINGS, FEWEST_READINGS = 20, 4
"""Of each clock, before and after a load; fewer where there are many clocks."""
MOST_READINGS = 4000
"""Of all clocks together, unless each then had too few: a reading takes a third of a millisecond here."""
READING_S = 0.0005
"""From one reading to the next, of whichever clocks: at once they would wait for each other, and show that time."""
AT_ONCE = 32
"""Agents that are met at once: each has a handshake of its own."""
POLL_S, SLOWEST_POLL_S = 0.2, 1.0
"""From one question to an agent to the next; of many agents it is longer, so that this process keeps up."""
EACH_S = 0.001
"""For each agent: of the time between two questions, and of that in which all have to hear of the beginning."""
LOST_S = 2.0
"""An agent that says nothing for so long is lost: it ends its own load half a second later."""
LEAD_S = 0.25
"""From the call to begin until the beginning, beside ten round trips: all agents have to hear of it before."""
READY_S = 65.0
FINEST_NS = 100e6
"""Clocks further apart than this do not bear a series by seconds."""


@dataclass
class Player:
    """One agent in a load."""

    line: talking.Line
    facts: Mapping[str, Any]
    readings: list[Reading] = field(default_factory=list)
    """Before the load."""
    during: Windows = field(default_factory=Windows)
    before: clocks.Offset | None = None
    tick: Mapping[str, Any] | None = None
    phase: str = "preparing"
    document: Document | None = None
    steal: float | None = None
    lost: str = ""
    """Why, if it was."""

    @property
    def name(self) -> str:
        """That of the agent."""
        return str(self.facts["name"])

    async def read_clock(self) -> Reading:
        """Ask it for the time."""
        sent = time.monotonic_ns()
        theirs = await self.line.call("velodrome_clock")
        return Reading(sent, theirs, time.monotonic_ns())

    async def alignment(self, turns: "Turns") -> None:
        """Read its clock before a load. Raises AgentLostError."""
        self.readings = await turns.readings(self)
        self.before = clocks.best(self.readings).offset

    def aligned(self, after: Sequence[Reading]) -> Alignment | None:
        """Return how its clock stood in a load; None: it was lost before anybody knew."""
        if self.before is None:
            return None
        during = self.during.kept
        last = clocks.best(after).offset if after else during[-1].offset if during else self.before
        least = clocks.best([*self.readings, *during, *after]).round_trip_ns
        return Alignment(self.before, [reading.offset for reading in during], last, least)


class Turns:
    """Has clocks read one reading after the other, however many agents there are and however far away they are."""

    def __init__(self, agents: int) -> None:
        self.each = min(READINGS, max(FEWEST_READINGS, MOST_READINGS // max(agents, 1)))
        self._next = 0.0

    async def readings(self, player: Player) -> list[Reading]:
        """Return readings of a clock. Raises AgentLostError."""
        found = []
        for _ in range(self.each):
            now = time.monotonic()
            self._next = max(self._next + READING_S, now)
            if self._next > now:
                await asyncio.sleep(self._next - now)
            found.append(await player.read_clock())
        return found


async def align(players: Sequence[Player]) -> None:
    """Read the clocks of agents before a load. Raises AgentLostError."""
    turns = Turns(len(players))
    await _all(player.alignment(turns) for player in players)


async def _all(works: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Do all at once; where one fails, the others are ended, and it is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def present(address: talking.Address, security: talking.Security) -> list[Player]:
    """Return the agents of a coordinator, in the order of their names. Raises CoordinatorError, AgentLostError."""
    known = await talking.workers(address, security)
    at_once = asyncio.Semaphore(AT_ONCE)

    async def met(where: str, name: str) -> Player:
        async with at_once:
            line = talking.Line(where, name, security)
            return Player(line, json.loads(await line.call("velodrome_facts")))

    names = {where: str(worker.get("name") or where) for where, worker in known.items()}
    found = await _all(met(where, name) for where, name in names.items())
    return sorted(found, key=lambda player: player.name)


async def load(
    spec: LoadSpec, address: talking.Address, security: talking.Security, on_event: OnEvent
) -> Document:
    """Carry a load by all agents of a coordinator that may, and return its document, with `agents`.

    Raises NoAgentsError, AgentsDifferError, AgentRefusedError, AgentLostError before anything is loaded, and
    CoordinatorError.
    """
    own_process.raise_limit("RLIMIT_NOFILE", talking.FILES)
    every = await present(address, security)
    players = [player for player in every if ROLE in player.facts["roles"]]
    try:
        if not players:
            others = {player.name: ",".join(player.facts["roles"]) for player in every}
            raise NoAgentsError(str(address), ROLE, others)
        return await carry_load(spec, players, on_event)
    finally:
        await asyncio.gather(*(player.line.close() for player in every))


async def carry_load(
    spec: LoadSpec,
    players: Sequence[Player],
    on_event: OnEvent,
    on_begin: Callable[[int], None] = lambda _at: None,
) -> Document:
    """Carry a load by these agents, whose lines stay open; the rest is as in `load`.

    `on_begin` hears, before it comes, the moment of the clock here (CLOCK_MONOTONIC, ns) at which all begin.
    """
    agree(players, spec)
    return await _Load(spec, players, on_event, on_begin).carry()


def agree(players: Sequence[Player], spec: LoadSpec) -> None:
    """See that agents make one load. Raises AgentsDifferError, AgentRefusedError, UsageError."""
    first = players[0]
    for what in ("version", "engine", "transport"):
        for player in players[1:]:
            if player.facts[what] != first.facts[what]:
                raise AgentsDifferError(
                    what, {first.name: first.facts[what], player.name: player.facts[what]}
                )
    from velodrome.run import engine  # noqa: PLC0415 - the name of a parameter elsewhere
    from velodrome.run.cluster.agent import VERSION  # noqa: PLC0415 - brings the worker

    if (first.facts["version"], first.facts["engine"]) != (VERSION, engine.VERSION):
        raise AgentsDifferError("version", {"this command": VERSION, first.name: first.facts["version"]})
    for player in players:
        if spec.threads > (cpus := len(player.facts["cpus"])):
            raise AgentRefusedError(
                player.name,
                f"it has {cpus} CPUs for {spec.threads} threads; give -t {cpus} at most, or more with --cpus",
            )
        if player.facts["busy"]:
            raise AgentRefusedError(player.name, "it carries another load; wait until that has ended")
        for host in spec.allow_target:
            if host not in player.facts["allow_target"]:
                raise AgentRefusedError(
                    player.name,
                    f"it may not load {host}; start it with: velodrome agent --allow-target {host}",
                )
    if talking.is_loopback(_host(spec)) and len({player.facts["machine"] for player in players}) > 1:
        raise UsageError(
            f"{_host(spec)} is another server for each of these agents, because they are on several hosts; name the "
            "server's host"
        )
    if spec.websocket is not None and spec.websocket.get("mode") == "broadcast" and len(players) > 1:
        raise UsageError("the members of a room are heard by one engine; load a room without --agents")
    if spec.connections < len(players) * spec.threads:
        raise UsageError(
            f"{spec.connections} connections are too few for {len(players)} agents of {spec.threads} threads; "
            f"give -c {len(players) * spec.threads} at least"
        )


def _host(spec: LoadSpec) -> str:
    return urlsplit(spec.url).hostname or ""


class _Load:
    def __init__(
        self, spec: LoadSpec, players: Sequence[Player], on_event: OnEvent, on_begin: Callable[[int], None]
    ) -> None:
        self.spec, self.players, self.on_event, self.on_begin = spec, players, on_event, on_begin
        self.number = random.token_hex(8)
        self.ended = False
        self.begun = False
        self.ready = asyncio.Event()
        """All agents are."""
        self.every_s = min(SLOWEST_POLL_S, max(POLL_S, EACH_S * len(players)))

    async def carry(self) -> Document:
        """Run it, and have it ended on every agent whatever happens here."""
        try:
            await align(self.players)
            await self._get_ready()
            await self._begin()
            await asyncio.gather(*(self._follow(player) for player in self.players), self._show())
            return await self._document()
        finally:
            if not all(player.document or player.lost for player in self.players):
                await self._end()

    async def _get_ready(self) -> None:
        """Pass the barrier: every agent has its connections. Raises AgentRefusedError, AgentLostError."""
        await _all(self._prepare(number) for number in range(len(self.players)))

    async def _prepare(self, number: int) -> None:
        player, many = self.players[number], len(self.players)
        own = self.spec.connections // many + (number < self.spec.connections % many)
        part = self.spec.changed(part={"number": number, "of": many}, connections=own)
        reply = json.loads(
            await player.line.call(
                "velodrome_prepare",
                READY_S,
                load=self.number,
                spec=part.json(),
                body=part.body,
                expected=part.expect_body,
            )
        )
        if not reply["ready"]:
            raise AgentRefusedError(player.name, reply["error"])
        player.phase = "ready"
        if all(player.phase == "ready" for player in self.players):
            self.ready.set()
        while (
            not self.ready.is_set()
        ):  # the others may take long, and an agent that nobody asks ends its load
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ready.wait(), self.every_s)
                return
            await self._poll(player)
            if player.phase != "ready":
                raise AgentRefusedError(player.name, "its engine ended before all agents were ready")

    async def _begin(self) -> None:
        """Call the beginning: a moment of each agent's own clock."""
        slowest = max(clocks.best(player.readings).round_trip_ns for player in self.players)
        lead = LEAD_S + EACH_S * len(self.players)
        start = time.monotonic_ns() + round(lead * 1e9) + 10 * slowest
        self.begun = True
        self.on_begin(start)
        calls = []
        for player in self.players:
            # The latest word of a clock that drifts, which getting ready may have taken a minute of.
            player.before = clocks.best_at([*player.readings, *player.during.kept], start)
            player.during = Windows()
            calls.append(
                player.line.call("velodrome_begin", load=self.number, at_ns=start + player.before.ns)
            )
        for player, known in zip(self.players, await _all(calls), strict=True):
            if not known:
                raise AgentLostError(player.name, player.line.address, "it has forgotten the load")

    async def _follow(self, player: Player) -> None:
        """Ask an agent how far it is until it is done or lost, and take what it measured."""
        try:
            while True:
                reply = await self._poll(player)
                if player.phase in ("done", "failed", "unknown"):
                    break
                await asyncio.sleep(self.every_s)
            if player.phase != "done":
                player.lost = reply.get("error") or "its engine ended"
            else:
                taken = json.loads(await player.line.call("velodrome_take", load=self.number))
                player.document, player.steal = json.loads(taken["document"]), taken["steal"]
        except AgentLostError as error:
            player.lost = error.why
        except (ValueError, KeyError, TypeError) as error:
            player.lost = f"its reply cannot be read: {error!r}"
        if player.lost:
            await self._end()

    async def _poll(self, player: Player) -> Mapping[str, Any]:
        sent = time.monotonic_ns()
        reply: Mapping[str, Any] = json.loads(
            await player.line.call("velodrome_poll", LOST_S, load=self.number)
        )
        player.phase, player.tick = reply["phase"], reply.get("tick") or player.tick
        player.during.add(Reading(sent, reply["now"], time.monotonic_ns()))
        return reply

    async def _show(self) -> None:
        """Hand on how all are doing, until all are done; and end the load where that is wanted."""
        while not all(player.document or player.lost for player in self.players):
            await asyncio.sleep(self.every_s)
            ticks = [player.tick for player in self.players if player.tick is not None and not player.lost]
            event = merging.tick(ticks) if ticks else {"event": "preparing"}
            if not self.on_event(event) and not self.ended:
                await self._end()

    async def _end(self) -> None:
        """Have every agent that is there end its load early."""
        self.ended = True
        calls = [
            player.line.call("velodrome_end", 1.0, load=self.number)
            for player in self.players
            if not player.lost and player.document is None
        ]
        await asyncio.gather(*calls, return_exceptions=True)

    async def _document(self) -> Document:
        had = [player for player in self.players if player.document is not None]
        if not had:
            raise AgentLostError(
                self.players[0].name, self.players[0].line.address, self.players[0].lost, last=True
            )
        document = merging.merge_documents([player.document for player in had if player.document is not None])
        turns = Turns(len(self.players))

        async def after(player: Player) -> Alignment | None:
            with suppress(AgentLostError):  # what it measured is here
                return player.aligned([] if player.lost else await turns.readings(player))
            return player.aligned([])

        aligned = await _all(after(player) for player in self.players)
        document["agents"] = [_row(player, how) for player, how in zip(self.players, aligned, strict=True)]
        flags = set(document["flags"])
        if any(player.lost for player in self.players):
            flags.add("agent-lost")
        if any(how is not None and how.uncertainty_ns > FINEST_NS for how in aligned):
            flags.add("clocks-apart")
            document["series"] = []
        if _share_cpus(self.players):
            flags.add("agents-share-cpus")
        document["flags"] = sorted(flags)
        return secrets.mask_noun(document)


def _share_cpus(players: Sequence[Player]) -> bool:
    """Whether two agents of one host may use the same CPU."""
    boots: dict[str, list[set[int]]] = {}
    for player in players:
        boots.setdefault(player.facts["machine"].split(" ")[0], []).append(set(player.facts["cpus"]))
    return any(sum(map(len, every)) > len(set().union(*every)) for every in boots.values())


def _row(player: Player, how: Alignment | None) -> Document:
    """Return the row of an agent in the document."""
    found, tick = player.document, player.tick or {}
    generator = found["generator"] if found else {}
    had_s = max(found["duration_s"] * generator["threads"], 1e-9) if found else 0.0
    return {
        "name": player.name,
        "host": player.facts["host"],
        "address": player.line.address,
        "cpus": list(player.facts["cpus"]),
        "lost": player.lost or None,
        "requests": found["requests"] if found else tick.get("requests", 0),
        "ok": found["ok"] if found else tick.get("ok", 0),
        "lag_p99_ms": found["lag_ms"]["p99"] if found else None,
        "lag_max_ms": found["lag_ms"]["max"] if found else None,
        "cpu_share": generator["cpu_s"] / had_s if found else None,
        "steal_share": player.steal,
        "transport": generator.get("transport"),
        "flags": found["flags"] if found else [],
        "offset_ms": how.before.ns / 1e6 if how else None,
        "uncertainty_ms": how.uncertainty_ns / 1e6 if how else None,
        "drift_ppm": how.drift_ppm if how else None,
        "drift_uncertainty_ppm": how.drift_uncertainty_ppm if how else None,
        "round_trip_ms": how.round_trip_ns / 1e6 if how else None,
    }

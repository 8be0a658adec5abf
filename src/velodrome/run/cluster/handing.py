"""Hands the blocks of a race out to hosts, each whole to one of them, and brings back what they measure.

    with hosts(address, way, ground) as elsewhere:
        racing.run(race, lab, follower, elsewhere=elsewhere)

`Handing` says who does what next: pure. `Hosts` talks to the agents, on a thread with a loop of its own; whoever races
stays on theirs, and takes in what happens from a queue. An agent that comes while a race runs is given blocks, too.
"""

import asyncio
import base64
import json
import queue
import secrets as random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from velodrome.model import results
from velodrome.model.errors import (
    AgentLostError,
    AgentsDifferError,
    AgentsRefuseRaceError,
    CoordinatorError,
    NoAgentsError,
    ResultsError,
)
from velodrome.model.measurement import Failed, Measurement, RanOn
from velodrome.model.results import Entry
from velodrome.model.study import Study
from velodrome.model.trial import Session
from velodrome.run import engine
from velodrome.run.cluster import conducting, talking
from velodrome.run.cluster.agent import VERSION
from velodrome.run.cluster.blocks import Ground, errand_line, race_line
from velodrome.run.cluster.conducting import Player
from velodrome.run.lab import Lab
from velodrome.run.racing.opening import Follower, Preparing
from velodrome.run.racing.plan import PlannedEnvironment, RunPlan
from velodrome.run.racing.race import Errand

POLL_S = 0.2
LOST_S = 10.0
"""An agent that cannot be reached for so long is lost; it has ended what it ran two seconds before."""
CALL_S = 5.0
READY_S = 120.0
"""For an agent's host to look at the app and the interpreters."""
NEW_S = 3.0
"""So often it is looked whether there is another agent."""
END_S = 6.0
"""For a server to be stopped in order."""

SILENT = "it ended the race, as it heard nothing of its command for too long"

Work = TypeVar("Work")


# --- Who does what next.


class Handing(Generic[Work]):
    """Gives each host its next piece of work when it is free; what a lost one had goes to another, before all else."""

    def __init__(self, upcoming: Callable[[], Work | None]) -> None:
        """`upcoming` returns the next piece, None where there is no more; it is called when a host is free."""
        self._upcoming = upcoming
        self._back: deque[Work] = deque()
        self._running: dict[str, Work] = {}
        self._idle: dict[str, None] = {}

    def free(self, host: str) -> Work | None:
        """Return what a host does next, whatever it did being whole; None: it waits, as all that is left is running."""
        self._running.pop(host, None)
        self._idle.pop(host, None)
        work = self._back.popleft() if self._back else self._upcoming()
        if work is None:
            self._idle[host] = None
        else:
            self._running[host] = work
        return work

    def lost(self, host: str) -> dict[str, Work]:
        """Take back what a host had; return who of those that wait does it now."""
        self._idle.pop(host, None)
        if (work := self._running.pop(host, None)) is not None:
            self._back.append(work)
        given = {}
        for other in [*self._idle]:
            if not self._back:
                break
            if (again := self.free(other)) is not None:
                given[other] = again
        return given

    @property
    def running(self) -> tuple[str, ...]:
        """Who has something to do."""
        return tuple(self._running)

    @property
    def done(self) -> bool:
        """Whether nothing runs and nothing was given back; what is still to come is given out when a host is free."""
        return not self._running and not self._back


# --- The agents, and what they say.


@dataclass
class _Host:
    """One agent in a race."""

    player: Player
    race: str
    name: str = ""
    """Of its host."""
    after: int = 0
    """Events that are taken in."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    pythons: Mapping[str, str] = field(default_factory=dict)
    ready: bool = False
    """Whether it is given errands; whoever races sets it."""
    gone: bool = False
    unfit: bool = False
    """Whether it refused the race, or failed in it, so that it is not taken in again."""
    given: deque[str] = field(default_factory=deque)
    errands: int = 0
    """That have come there."""

    @property
    def agent(self) -> str:
        """Its agent's name."""
        return self.player.name


_Event = tuple[str, _Host | None, Any]


class Hosts:
    """The agents of a coordinator as the hosts of a race: `Elsewhere` of `run/racing/race.py`."""

    given = "blocks"
    """What they are given (`blocks.PROCESSES`)."""

    def __init__(
        self, address: talking.Address, way: talking.Security, ground: Callable[[Lab, Study], Ground]
    ) -> None:
        """`ground` says what a race needs of a host."""
        self._address, self._way, self._ground = address, way, ground
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._hosts: dict[str, _Host] = {}
        self._lost: list[str] = []
        self._said = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: list[asyncio.Task[None]] = []
        self._trials: dict[str, Any] = {}
        self._study: Study | None = None

    def start(self) -> None:
        """Begin to talk."""
        self._thread.start()

    def close(self) -> None:
        """End what runs on every agent, and hang up."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._over(), self._loop).result(END_S + 2)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(END_S)
        if not self._thread.is_alive():
            self._loop.close()

    @property
    def hosts(self) -> int:
        """How many agents there are now."""
        return sum(one.ready for one in self._hosts.values())

    @property
    def gone(self) -> str:
        """Why there is no agent left."""
        return "" if self.hosts else "; ".join(self._lost) or "there is none"

    def begin(self, plan: RunPlan, study: Study, lab: Lab, follower: Follower) -> None:
        """Have every agent see that its host can run this.

        Raises CoordinatorError, NoAgentsError, AgentsDifferError, AgentsRefuseRaceError.
        """
        self._call(self._over_races())
        self._hosts, self._lost = {}, []
        self._events = queue.SimpleQueue()
        ground = self._ground(lab, study)
        if ground.secret and self._address.scheme == "tcp" and not talking.is_loopback(self._address.host):
            raise AgentsRefuseRaceError(
                str(self._address),
                "the app's variables, headers or databases may hold secrets, and this way is plain TCP; use TLS "
                "(velodrome cluster keys)",
            )
        self._study = study
        distinct = {PlannedEnvironment.of(one.trials[0], lab): one for one in plan.sessions}
        self._said = race_line(
            plan.what,
            ground,
            [Session(one.trials[:1]) for one in distinct.values()],
            plan.experiments,
            plan.profiles,
            given=self.given,
        )
        players: list[Player] = self._call(conducting.present(self._address, self._way))
        players = [one for one in players if "load" in one.facts["roles"]]
        if not players:
            raise NoAgentsError(str(self._address))
        for player in players:
            _refuse_other_version(player)
            if player.facts["busy"]:
                raise AgentsRefuseRaceError(
                    player.name, "it does something else for another command; wait until that has ended"
                )
        self._call(self._join(players))
        self._wait_ready(follower)
        self._call(self._watch_for_more())

    def _wait_ready(self, follower: Follower) -> None:
        until = time.monotonic() + READY_S
        waiting = {one.agent for one in self._hosts.values()}
        while waiting:
            kind, host, said = self._event(until)
            if host is None:
                silent = sorted(waiting)[0]
                raise AgentsRefuseRaceError(silent, f"its host was not ready after {READY_S:g} s")
            if kind == "ready":
                host.ready = True
                waiting.discard(host.agent)
            elif kind in ("refused", "lost", "failed"):
                raise AgentsRefuseRaceError(host.agent, said)
            elif kind == "preparing":
                follower.preparing(f"{host.agent}: {said['text']}")
        for one in self._hosts.values():
            if odd := self._odd(one):
                what, found = odd
                raise AgentsDifferError(what, found)

    def _odd(self, host: _Host) -> tuple[str, Mapping[str, str]] | None:
        """Return which interpreter is of another version on a host than on one that is there already."""
        for other in self._hosts.values():
            for name, version in host.pythons.items():
                theirs = other.pythons.get(name, version)
                if other.ready and theirs != version:
                    return f"Python {name}".strip(), {other.agent: theirs, host.agent: version}
        return None

    def entries(
        self,
        upcoming: Callable[[], Errand | None],
        follower: Follower,
        out: Path,
        left_s: Callable[[], float | None],
    ) -> Iterator[Entry]:
        """Yield what errands come to; see `Elsewhere`."""
        handing: Handing[Errand] = Handing(upcoming)
        for there in [one for one in self._hosts.values() if one.ready]:
            self._give(there, handing.free(there.agent))
        while not handing.done and not self.gone:
            kind, host, said = self._event(time.monotonic() + 1.0)
            if host is None or host.gone:
                continue
            if kind == "entry" and host.agent in handing.running:
                yield self._entry(host, said, out)
            elif kind == "whole":
                self._give(host, handing.free(host.agent))
            elif kind == "ready" and self._odd(host) is None:
                host.ready = True
                follower.preparing(f"{host.agent} is there")
                self._give(host, handing.free(host.agent))
            elif kind in ("lost", "refused", "failed", "ready"):
                if kind == "ready":
                    said = "its Python is another"
                host.unfit = kind != "lost"
                self._take_leave(host, said, follower)
                for name, errand in handing.lost(host.agent).items():
                    self._give(self._hosts[name], errand)
            elif kind == "session":
                follower.heat_started(f"{said['label']} on {host.agent}", left_s())
            elif kind in ("preparing", "warning"):
                follower.preparing(f"{host.agent}: {said['text']}")

    def _take_leave(self, host: _Host, why: str, follower: Preparing) -> None:
        host.gone, host.ready = True, False
        self._lost.append(f"{host.agent}: {why}")
        follower.preparing(
            f"{host.agent} is no longer there ({why}); what it had begun is run anew by another"
        )

    def _entry(self, host: _Host, said: Mapping[str, Any], out: Path) -> Entry:
        assert self._study is not None
        entry = results.load(said["line"], self._study, host.agent)
        for name, data in (said.get("files") or {}).items():
            file = out / name
            if not file.resolve().is_relative_to(out.resolve()):
                raise ResultsError(host.agent, 0, f"it names the file {name}, outside of the results")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(base64.b64decode(data))
        if isinstance(entry, Measurement | Failed):
            return replace(entry, machine=RanOn(host.name, host.facts))
        return entry

    def _give(self, host: _Host, errand: Errand | None) -> None:
        if errand is not None:
            self._loop.call_soon_threadsafe(host.given.append, errand_line(errand))

    def _event(self, until: float) -> _Event:
        """Return what happens next; nothing where nothing does until then. Ctrl-C ends the wait."""
        try:
            return self._events.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return "", None, None

    # --- On the thread of the loop.

    def _call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _join(self, players: Sequence[Player]) -> None:
        for player in players:
            host = _Host(player, random.token_hex(8))
            host.name = self._name_of(player)
            self._hosts[host.agent] = host
            self._tasks.append(asyncio.ensure_future(self._follow(host)))

    def _name_of(self, player: Player) -> str:
        """Return the name of an agent's host; where two hosts call themselves the same, that of the agent."""
        boot = player.facts["machine"].split(" ")[0]
        for other in self._hosts.values():
            same = other.player.facts["host"] == player.facts["host"]
            if same and other.player.facts["machine"].split(" ")[0] != boot:
                return player.name
        return str(player.facts["host"])

    async def _follow(self, host: _Host) -> None:
        """Begin the race on an agent, hand it what it is given, and take in what it says, until it is over there."""
        events, line, since = self._events, host.player.line, time.monotonic()
        try:
            refused = await line.call("velodrome_race_begin", CALL_S, race=host.race, said=self._said)
            if refused:
                events.put(("refused", host, refused))
                return
        except AgentLostError as error:
            events.put(("lost", host, error.why))
            return
        while not host.gone:
            try:
                while host.given:
                    number = host.errands + 1
                    there = await line.call(
                        "velodrome_race_errand", CALL_S, race=host.race, number=number, said=host.given[0]
                    )
                    if not there:
                        events.put(("lost", host, await self._why(host)))
                        return
                    host.errands = number
                    host.given.popleft()
                said = json.loads(
                    await line.call("velodrome_race_poll", CALL_S, race=host.race, after=host.after)
                )
            except AgentLostError as error:
                if time.monotonic() - since > LOST_S or await self._has_left(host):
                    events.put(("lost", host, error.why))
                    return
                await asyncio.sleep(POLL_S)
                continue
            since = time.monotonic()
            if said is None:
                events.put(("lost", host, SILENT))
                return
            for event in map(json.loads, said):
                host.after += 1
                if self._put(host, event):
                    return
            await asyncio.sleep(POLL_S)

    async def _has_left(self, host: _Host) -> bool:
        """Return whether the coordinator says that an agent is gone, so that nobody need wait for it."""
        with suppress(CoordinatorError):
            return host.player.line.address not in await talking.workers(self._address, self._way)
        return False

    async def _why(self, host: _Host) -> str:
        """Return why an agent takes no errand: its process may have said so."""
        with suppress(AgentLostError):
            said = await host.player.line.call(
                "velodrome_race_poll", CALL_S, race=host.race, after=host.after
            )
            for event in map(json.loads, json.loads(said) or ()):
                if event["event"] in ("failed", "over"):
                    return str(event["why"])
        return SILENT

    def _put(self, host: _Host, event: dict[str, Any]) -> bool:
        """Say what happened to whoever races. Returns whether it is the last of that agent."""
        kind = event["event"]
        if kind == "ready":
            host.facts, host.pythons = event["facts"], event["pythons"]
        self._events.put(("lost" if kind == "over" else kind, host, event.get("why", event)))
        return kind in ("failed", "over", "refused")

    async def _watch_for_more(self) -> None:
        self._tasks.append(asyncio.ensure_future(self._more()))

    async def _more(self) -> None:
        """Take in agents that come later, or come back."""
        while True:
            await asyncio.sleep(NEW_S)
            with suppress(CoordinatorError, AgentLostError):
                for player in await conducting.present(self._address, self._way):
                    there = self._hosts.get(player.name)
                    fits = "load" in player.facts["roles"] and not player.facts["busy"]
                    new = there is None or (there.gone and not there.unfit)
                    if fits and new and _same_version(player):
                        if there is not None:
                            await there.player.line.close()
                        await self._join([player])
                    else:
                        await player.line.close()

    async def _over_races(self) -> None:
        """End the race on every agent."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        calls = [
            one.player.line.call("velodrome_race_end", END_S, race=one.race)
            for one in self._hosts.values()
            if not one.gone
        ]
        await asyncio.gather(*calls, return_exceptions=True)
        for one in self._hosts.values():
            await one.player.line.close()

    async def _over(self) -> None:
        await self._over_races()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for one in left:
            one.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def _same_version(player: Player) -> bool:
    return (player.facts["version"], player.facts["engine"]) == (VERSION, engine.VERSION)


def _refuse_other_version(player: Player) -> None:
    if not _same_version(player):
        raise AgentsDifferError("version", {"this command": VERSION, player.name: player.facts["version"]})


@contextmanager
def hosts(
    address: talking.Address, way: talking.Security, ground: Callable[[Lab, Study], Ground]
) -> Iterator[Hosts]:
    """Yield the agents of a coordinator as hosts of races, one race after the other."""
    found = Hosts(address, way, ground)
    found.start()
    try:
        yield found
    finally:
        found.close()

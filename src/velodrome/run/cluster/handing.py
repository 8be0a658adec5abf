"""Hands the blocks of a race out to hosts, each whole to one of them, and brings back what they measure.

    with hosts(address, security, needs) as elsewhere:
        driven(race, lab, follower)

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

from velodrome.model import results, secrets
from velodrome.model.errors import (
    AgentLostError,
    AgentsDifferError,
    AgentsRefuseRaceError,
    CoordinatorError,
    ExaminationRefusedError,
    NoAgentsError,
    PlacingError,
    ResultsError,
)
from velodrome.model.measurement import Failed, Measurement, RanOn
from velodrome.model.results import Entry
from velodrome.model.study import Study
from velodrome.model.trial import Session, Trial
from velodrome.run import engine
from velodrome.run.cluster import conducting, placing, talking
from velodrome.run.cluster.agent import VERSION
from velodrome.run.cluster.blocks import Needs, race_line, unit_line
from velodrome.run.cluster.conducting import Player
from velodrome.run.cluster.placing import Cast, Conductor
from velodrome.run.drivers.driver import OWN
from velodrome.run.lab import Lab, OnHosts
from velodrome.run.racing.opening import Follower, Preparing
from velodrome.run.racing.plan import PlannedEnvironment, RunPlan
from velodrome.run.racing.race import WorkUnit
from velodrome.run.racing.session import LINKED

POLL_S = 0.2
LOST_S = 10.0
"""An agent that cannot be reached for so long is lost; it has ended what it ran two seconds before."""
CALL_S = 5.0
SENT_S = 120.0
"""For an app's folder to arrive."""
READY_S = 120.0
"""For an agent's host to look at the app and the interpreters."""
NEW_S = 3.0
"""So often it is looked whether there is another agent."""
LOADED_POLL_S = 0.5
"""While agents load a server, its host is left in peace."""
PLACED_POLL_S = 0.05
"""Of a host whose process waits for others before each load."""
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

    def give_back(self, host: str) -> dict[str, Work]:
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

    def work_of(self, host: str) -> Work | None:
        """Return what a host does; None: nothing."""
        return self._running.get(host)

    @property
    def done(self) -> bool:
        """Whether nothing runs and nothing was given back; what is still to come is given out when a host is free."""
        return not self._running and not self._back


# --- The agents, and what they say.


@dataclass
class Host:
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
    """Whether it is given work units; whoever races sets it."""
    gone: bool = False
    given_up: bool = False
    """Whether it is there, and whoever loads it, or answers as third parties, is not."""
    unfit: bool = False
    """Whether it refused the race, or failed in it, so that it is not taken in again."""
    given: deque[str] = field(default_factory=deque)
    units: int = 0
    """That have come there."""
    messages: "asyncio.Queue[str]" = field(default_factory=asyncio.Queue)
    """About what others do for its process, in order."""

    @property
    def agent(self) -> str:
        """Its agent's name."""
        return self.player.name


_Event = tuple[str, Host | None, Any]


class Hosts:
    """The agents of a coordinator as the hosts of a race: `Elsewhere` of `run/racing/race.py`."""

    given = "blocks"
    """What they are given (`holding.RACES`)."""

    def __init__(
        self,
        address: talking.Address,
        security: talking.Security,
        needs: Callable[[Lab, Study], Needs],
        wanted: OnHosts | None = None,
    ) -> None:
        """`needs` says what a race needs of a host, `wanted` who is to serve and to load, if not by roles."""
        self._address, self._security, self._needs = address, security, needs
        self._wanted = wanted or OnHosts()
        self.who: tuple[str, ...] = ()
        self.cast: Cast | None = None
        """Who serves and who loads, once `look` has seen that; None: each agent does both, block by block."""
        self._conductor: Conductor | None = None
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._hosts: dict[str, Host] = {}
        self._lost: list[str] = []
        self._first_line = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: list[asyncio.Task[None]] = []
        self._trials: dict[str, Any] = {}
        self._study: Study | None = None
        self._role = placing.LOAD
        """Which agents must have, of those that measure."""

    def start(self) -> None:
        """Begin to talk."""
        self._thread.start()

    def look(self) -> None:
        """See who is there, and who is to do what; in a race over machines also whether they can.

        Raises CoordinatorError, NoAgentsError, PlacingError, AgentsDifferError, AgentRefusedError.
        """
        players: list[Player] = self._call(conducting.present(self._address, self._security))
        try:
            self.cast = placing.choose_cast(players, self._wanted, str(self._address))
            if self.cast is not None:
                placing.refuse_unfit(self.cast)
                self.who = (self.cast.sentence, *self.cast.warnings)
            else:
                sharing = [player.name for player in players if placing.LOAD in player.facts["roles"]]
                self.who = (f"agents that run whole blocks: {', '.join(sharing) or 'none'}",)
        finally:
            self._call(_hung_up(players))

    def lab(self, lab: Lab) -> Lab:
        """See `Elsewhere`."""
        return lab if self.cast is None else self.cast.lab(lab)

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
        return sum(host.ready for host in self._hosts.values())

    @property
    def gone(self) -> str:
        """Why there is no agent left."""
        return "" if self.hosts else "; ".join(self._lost) or "there is none"

    def begin(self, plan: RunPlan, study: Study, lab: Lab, follower: Follower) -> None:
        """Have every agent see that its host can run this.

        Raises CoordinatorError, NoAgentsError, AgentsDifferError, AgentsRefuseRaceError.
        """
        needs = self._needs(lab, study)
        players = self._present_anew(needs.secret)
        self._study = study
        # A search shares its loads out over the hosts, whatever their roles.
        shared = self.given != Hosts.given
        self.cast = None if shared else placing.choose_cast(players, self._wanted, str(self._address))
        trips_ms: Mapping[str, float] = {}
        if self.cast is not None:
            placing.refuse_unfit(self.cast)
            _refuse_unfit(plan)
            _refuse_without_third(self.cast, plan)
            trips_ms = self._call(placing.round_trips(self.cast))
            for sentence in (self.cast.sentence, *self.cast.warnings):
                follower.preparing(sentence)
        distinct = {PlannedEnvironment.of(session.trials[0], lab): session for session in plan.sessions}
        self._first_line = race_line(
            plan.what,
            needs,
            [Session(session.trials[:1]) for session in distinct.values()],
            plan.experiments,
            plan.profiles,
            given=self.given,
            around=self.cast.around if self.cast else None,
        )
        mine = [player for player in players if self._role in player.facts["roles"]]
        if self.cast is not None:
            mine = [self.cast.server]
        self._begin_on(
            mine, [player for player in players if player not in (self.cast.players if self.cast else mine)]
        )
        if self.cast is not None:
            self._call(self._conduct(self.cast, trips_ms))
        self._wait_ready(follower)
        if self.cast is None:
            self._call(self._watch_for_more())

    def begin_other(
        self, given: str, needs: Mapping[str, Any], *, secret: bool, follower: Preparing, files: str = ""
    ) -> None:
        """Have agents begin what is no race: `given` says what (`holding.RACES`), `needs` for which `user` and `cwd`.

        The one that is named to serve, or those with the role `server`, or with `load` where none has that. `secret`
        says whether what is sent may hold secrets; `files` are of a folder that is sent, in base64. Raises as `begin`
        does.
        """
        first = {"given": given, "needs": needs, "marked": list(secrets.marked_names()), "files": files}
        players = self._present_anew(secret)
        servers = any(placing.SERVER in player.facts["roles"] for player in players)
        self._first_line, self._role = json.dumps(first), placing.SERVER if servers else placing.LOAD
        mine = [player for player in players if self._role in player.facts["roles"]]
        if self._wanted.server:
            mine = [placing.named_server(players, self._wanted.server)]
        self._begin_on(mine, [player for player in players if player not in mine])
        self._wait_ready(follower)
        self._call(self._watch_for_more())

    def _present_anew(self, secret: bool) -> list[Player]:
        """End what there was, and return who is there."""
        self._call(self._over_races())
        self._hosts, self._lost = {}, []
        self._events = queue.SimpleQueue()
        if secret and self._address.scheme == "tcp" and not talking.is_loopback(self._address.host):
            raise AgentsRefuseRaceError(
                str(self._address),
                "the app's variables, headers, databases or files may hold secrets, and this connection is plain TCP; "
                "use TLS (velodrome cluster keys)",
            )
        players: list[Player] = self._call(conducting.present(self._address, self._security))
        return players

    def _begin_on(self, mine: Sequence[Player], others: Sequence[Player]) -> None:
        self._call(_hung_up(others))
        if not mine:
            raise NoAgentsError(str(self._address), self._role)
        for player in mine:
            _refuse_other_version(player)
            if player.facts["busy"]:
                raise AgentsRefuseRaceError(
                    player.name, "it does something else for another command; wait until that has ended"
                )
        self._call(self._join(mine))

    def _wait_ready(self, follower: Preparing) -> None:
        until = time.monotonic() + READY_S
        waiting = {one.agent for one in self._hosts.values()}
        while waiting:
            kind, host, message = self._event(until)
            if host is None:
                silent = sorted(waiting)[0]
                raise AgentsRefuseRaceError(silent, f"its host was not ready after {READY_S:g} s")
            if kind == "ready":
                host.ready = True
                waiting.discard(host.agent)
            elif kind in ("refused", "lost", "failed"):
                raise AgentsRefuseRaceError(host.agent, message)
            elif kind == "preparing":
                follower.preparing(f"{host.agent}: {message['text']}")
        for one in self._hosts.values():
            if odd := self._odd(one):
                what, found = odd
                raise AgentsDifferError(what, found)

    def _odd(self, host: Host) -> tuple[str, Mapping[str, str]] | None:
        """Return which interpreter is of another version on a host than on one that is there already."""
        for other in self._hosts.values():
            for name, version in host.pythons.items():
                theirs = other.pythons.get(name, version)
                if other.ready and theirs != version:
                    return f"Python {name}".strip(), {other.agent: theirs, host.agent: version}
        return None

    def entries(
        self,
        upcoming: Callable[[], WorkUnit | None],
        follower: Follower,
        out: Path,
        left_s: Callable[[], float | None],
    ) -> Iterator[Entry]:
        """Yield what work units come to; see `Elsewhere`."""
        for kind, host, _, message in self._hand_out(Handing(upcoming), unit_line, follower):
            if kind == "entry":
                yield self._entry(host, message, out)
            elif kind == "session":
                follower.session_started(f"{message['label']} on {host.agent}", left_s())

    def others(
        self, upcoming: Callable[[], Work | None], line: Callable[[Work], str], follower: Preparing
    ) -> Iterator[tuple[Work, Mapping[str, Any] | ExaminationRefusedError]]:
        """Yield what pieces of work come to that are no race's, each with the piece, until none is left.

        `line` is what a piece is handed out as. A piece of a lost host is done by another; none is left where `gone`.
        """
        for kind, host, work, message in self._hand_out(Handing(upcoming), line, follower):
            if kind == "entry":
                if "reason" in message:
                    yield work, ExaminationRefusedError(host.agent, message["reason"], message["exit_code"])
                else:
                    yield work, message

    def _hand_out(
        self, handing: Handing[Work], line: Callable[[Work], str], follower: Preparing
    ) -> Iterator[tuple[str, Host, Work, Mapping[str, Any]]]:
        """Give work out, and yield what its hosts say of it: the kind of event, the host, its work, and the event."""

        def give(host: Host, work: Work | None) -> None:
            if work is not None:
                self._loop.call_soon_threadsafe(host.given.append, line(work))

        for there in [one for one in self._hosts.values() if one.ready]:
            give(there, handing.free(there.agent))
        while not handing.done and not self.gone:
            kind, host, message = self._event(time.monotonic() + 1.0)
            if host is None or host.gone:
                continue
            if kind in ("entry", "session") and (work := handing.work_of(host.agent)) is not None:
                yield kind, host, work, message
            elif kind == "whole":
                give(host, handing.free(host.agent))
            elif kind == "ready" and self._odd(host) is None:
                host.ready = True
                follower.preparing(f"{host.agent} is there")
                give(host, handing.free(host.agent))
            elif kind in ("lost", "refused", "failed", "ready"):
                if kind == "ready":
                    message = "its Python is another"
                host.unfit = kind != "lost"
                self._take_leave(host, message, follower)
                for name, work in handing.give_back(host.agent).items():
                    give(self._hosts[name], work)
            elif kind in ("preparing", "warning"):
                follower.preparing(f"{host.agent}: {message['text']}")

    def _take_leave(self, host: Host, why: str, follower: Preparing) -> None:
        host.gone, host.ready = True, False
        if self.cast is not None:
            self._lost.append(why if host.given_up else f"{host.agent}: {why}")
            follower.preparing(f"{self._lost[-1]}: the race ends here")
            if self._conductor is not None:  # nothing is to be loaded while what is known is judged
                asyncio.run_coroutine_threadsafe(self._conductor.stop(), self._loop)
            return
        self._lost.append(f"{host.agent}: {why}")
        follower.preparing(
            f"{host.agent} is no longer there ({why}); what it had begun is run anew by another"
        )

    def _entry(self, host: Host, message: Mapping[str, Any], out: Path) -> Entry:
        assert self._study is not None
        entry = results.load(message["line"], self._study, host.agent)
        for name, data in (message.get("files") or {}).items():
            file = out / name
            if not file.resolve().is_relative_to(out.resolve()):
                raise ResultsError(host.agent, 0, f"it names the file {name}, outside of the results")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(base64.b64decode(data))
        if isinstance(entry, Measurement | Failed):
            return replace(entry, machine=RanOn(host.name, host.facts))
        return entry

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
            host = Host(player, random.token_hex(8))
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

    async def _follow(self, host: Host) -> None:
        """Begin the race on an agent, hand it what it is given, and take in what it says, until it is over there."""
        events, line, since = self._events, host.player.line, time.monotonic()
        try:
            limit_s = SENT_S if len(self._first_line) > 1 << 20 else CALL_S
            refused = await line.call(
                "velodrome_race_begin", limit_s, race=host.race, message=self._first_line
            )
            if refused:
                events.put(("refused", host, refused))
                return
        except AgentLostError as error:
            events.put(("lost", host, error.why))
            return
        while not host.gone:
            try:
                while host.given:
                    number = host.units + 1
                    there = await line.call(
                        "velodrome_race_unit", CALL_S, race=host.race, number=number, message=host.given[0]
                    )
                    if not there:
                        events.put(("lost", host, await self._why(host)))
                        return
                    host.units = number
                    host.given.popleft()
                polled = json.loads(
                    await line.call("velodrome_race_poll", CALL_S, race=host.race, after=host.after)
                )
            except AgentLostError as error:
                if time.monotonic() - since > LOST_S or await self._has_left(host):
                    events.put(("lost", host, error.why))
                    return
                await asyncio.sleep(POLL_S)
                continue
            since = time.monotonic()
            if polled is None:
                events.put(("lost", host, SILENT))
                return
            for event in map(json.loads, polled):
                host.after += 1
                if self._conductor is not None and self._conductor.take(event):
                    continue
                if self._put(host, event):
                    return
            await asyncio.sleep(self._pause_s)

    @property
    def _pause_s(self) -> float:
        """From one question to the next."""
        if self._conductor is None:
            return POLL_S
        return LOADED_POLL_S if self._conductor.loading else PLACED_POLL_S

    async def _conduct(self, cast: Cast, trips_ms: Mapping[str, float]) -> None:
        """Begin to do what the server's process says that it needs of other hosts."""
        host = self._hosts[cast.server.name]

        def lost(why: str) -> None:
            host.given_up = True
            self._events.put(("lost", host, why))

        self._conductor = Conductor(
            cast,
            host.race,
            trips_ms,
            present=lambda: conducting.present(self._address, self._security),
            send=lambda message: host.messages.put_nowait(json.dumps(message)),
            lost=lost,
        )
        self._tasks.append(asyncio.ensure_future(self._speak(host)))

    async def _speak(self, host: Host) -> None:
        """Hand messages to the server's process, one after the other, however often the connection breaks."""
        number = 0
        while True:
            message, number = await host.messages.get(), number + 1
            while not host.gone:
                with suppress(AgentLostError):
                    await host.player.line.call(
                        "velodrome_race_message", CALL_S, race=host.race, number=number, message=message
                    )
                    break
                await asyncio.sleep(POLL_S)

    async def _has_left(self, host: Host) -> bool:
        """Return whether the coordinator says that an agent is gone, so that nobody need wait for it."""
        with suppress(CoordinatorError):
            return host.player.line.address not in await talking.workers(self._address, self._security)
        return False

    async def _why(self, host: Host) -> str:
        """Return why an agent takes no work unit: its process may have said why."""
        with suppress(AgentLostError):
            events = await host.player.line.call(
                "velodrome_race_poll", CALL_S, race=host.race, after=host.after
            )
            for event in map(json.loads, json.loads(events) or ()):
                if event["event"] in ("failed", "over"):
                    return str(event["why"])
        return SILENT

    def _put(self, host: Host, event: dict[str, Any]) -> bool:
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
                for player in await conducting.present(self._address, self._security):
                    there = self._hosts.get(player.name)
                    fits = self._role in player.facts["roles"] and not player.facts["busy"]
                    new = there is None or (there.gone and not there.unfit)
                    if fits and new and _same_version(player):
                        if there is not None:
                            await there.player.line.close()
                        await self._join([player])
                    else:
                        await player.line.close()

    async def _over_races(self) -> None:
        """End the race on every agent."""
        await talking.cancel_all(self._tasks)
        self._tasks = []
        calls = [
            host.player.line.call("velodrome_race_end", END_S, race=host.race)
            for host in self._hosts.values()
            if not host.gone or host.given_up
        ]
        if self._conductor is not None:
            calls.append(self._conductor.stop())
        await asyncio.gather(*calls, return_exceptions=True)
        if (
            self._conductor is not None
        ):  # third parties after the server: what ends is not to be an error of it
            await self._conductor.close()
            self._conductor = None
        others = self.cast.players if self.cast else ()
        await _hung_up([*(host.player for host in self._hosts.values()), *others])

    async def _over(self) -> None:
        await self._over_races()
        await talking.cancel_all([task for task in asyncio.all_tasks() if task is not asyncio.current_task()])


async def _hung_up(players: Sequence[Player]) -> None:
    for player in players:
        await player.line.close()


def _refuse_unfit(plan: RunPlan) -> None:
    """Raise PlacingError where no trial can be loaded from other hosts; where some can, the others fail in turn."""
    trials = plan.trials
    if trials and all(trial.link is not None for trial in trials):
        raise PlacingError(placing.OPTIONS[placing.SERVER], "", LINKED)
    if trials and all(trial.load.driver != OWN for trial in trials):
        why = f"{trials[0].load.driver} loads from the server's host alone, and agents by {OWN}; leave it out"
        raise PlacingError(placing.OPTIONS[placing.SERVER], "", why)


def _refuse_without_third(cast: Cast, plan: RunPlan) -> None:
    """Raise PlacingError where a server calls a third party and no host is to have it."""
    calling = [
        session.trials[0]
        for session in plan.sessions
        if session.trials[0].recipe.calls_upstream or _thirds(session.trials[0])
    ]
    if calling and cast.third is None:
        raise PlacingError(
            placing.OPTIONS[placing.THIRD],
            "",
            f"{calling[0].cell} calls a third party, and no agent has that role; name a host for it, which may be one "
            f"that loads ({', '.join(load.name for load in cast.loads)})",
        )


def _thirds(trial: Trial) -> bool:
    return trial.app is not None and bool(trial.app.third_parties)


def _same_version(player: Player) -> bool:
    return (player.facts["version"], player.facts["engine"]) == (VERSION, engine.VERSION)


def _refuse_other_version(player: Player) -> None:
    if not _same_version(player):
        raise AgentsDifferError("version", {"this command": VERSION, player.name: player.facts["version"]})


@contextmanager
def hosts(
    address: talking.Address,
    security: talking.Security,
    needs: Callable[[Lab, Study], Needs],
    wanted: OnHosts | None = None,
) -> Iterator[Hosts]:
    """Yield the agents of a coordinator as hosts of races, one race after the other."""
    found = Hosts(address, security, needs, wanted)
    found.start()
    try:
        yield found
    finally:
        found.close()

"""Who serves, loads and answers as third parties in a race over machines, and its loads: the side of the command.

    cast = choose_cast(await conducting.present(address, security), OnHosts(server="shop-1"), str(address))
    conductor = Conductor(cast, race, present, send, end)      # does for the server's process what its events say

`choose_cast` is pure. A load that loses an agent ends, and its trial is invalid; the next one waits for that agent to
come back, and where it does not, the race ends: a load of fewer agents would be another ruler.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from velodrome.model.errors import (
    AgentLostError,
    AgentRefusedError,
    AgentsDifferError,
    CoordinatorError,
    NoAgentsError,
    PlacingError,
    UsageError,
)
from velodrome.run import engine
from velodrome.run.cluster import clocks, conducting, mesh, talking
from velodrome.run.cluster.agent import VERSION
from velodrome.run.cluster.apart import Around, read_spec
from velodrome.run.cluster.conducting import Player
from velodrome.run.engine import LoadSpec
from velodrome.run.lab import Apart, Lab, OnHosts

SERVER, LOAD, THIRD = "server", "load", "third-party"
OPTIONS = {SERVER: "--server-on", LOAD: "--load-from", THIRD: "--third-party-on"}
BACK_S = 10.0
"""For a loading agent that was lost to come back before the next load."""
READY_S = 10.0
"""For the round trips between hosts to be measured."""
PING_S = 2.0
"""From one question after third parties to the next: an agent that nobody asks ends them."""


@dataclass(frozen=True)
class Cast:
    """Who does what."""

    server: Player
    loads: tuple[Player, ...]
    third: Player | None

    @property
    def address(self) -> str:
        """Of the server's host, as the others reach it."""
        return address_of(self.server)

    @property
    def players(self) -> tuple[Player, ...]:
        """All of them, each once."""
        every = (self.server, *self.loads, *((self.third,) if self.third else ()))
        return tuple({one.name: one for one in every}.values())

    @property
    def near(self) -> tuple[Player, ...]:
        """Loading agents on the server's machine, whose engines use CPUs of the server."""
        boot = _boot(self.server)
        cpus = {*self.server.facts["cpus"]}
        return tuple(load for load in self.loads if _boot(load) == boot and cpus & {*load.facts["cpus"]})

    @property
    def around(self) -> Around:
        """What the server's process has to know."""
        boot, near = _boot(self.server), [cpu for player in self.near for cpu in player.facts["cpus"]]
        here = [player for player in self.players if _boot(player) == boot and player is not self.server]
        return Around(
            self.address,
            tuple(self.server.facts["cpus"]),
            tuple(sorted({*near})),
            tuple(int(player.facts["pid"]) for player in here),
        )

    def lab(self, lab: Lab) -> Lab:
        """Return a lab by which races on that host are planned."""
        around = self.around
        return replace(lab, cpus=around.cpus, apart=Apart(around.address, around.load_cpus))

    @property
    def sentence(self) -> str:
        """Who does what, in words."""
        loads = " and ".join(load.name for load in self.loads)
        third = f"; third parties run on {self.third.name}" if self.third else ""
        return f"{self.server.name} serves on {self.address}, its load comes from {loads}{third}"

    @property
    def warnings(self) -> list[str]:
        """What makes figures worth less, as sentences."""
        found = []
        if self.near:
            names = " and ".join(player.name for player in self.near)
            found.append(
                f"warning: {names} load from CPUs of the machine that serves, so each takes time from the other; start "
                "them on another machine, or share its CPUs out with velodrome agent --cpus"
            )
        return found


def _boot(player: Player) -> str:
    return str(player.facts["machine"]).split(" ")[0]


def address_of(player: Player) -> str:
    """Return the address by which others reach an agent's host."""
    return urlsplit(player.line.address).hostname or ""


def _names_of(player: Player) -> set[str]:
    return {player.name, str(player.facts["host"]), address_of(player), player.line.address}


def _roles(player: Player) -> set[str]:
    return {*player.facts["roles"]}


def choose_cast(players: Sequence[Player], wanted: OnHosts, address: str) -> Cast | None:
    """Return who does what; None: nobody is to serve for others, and agents share blocks.

    Hosts that are named may do what one of their roles says, and with the role `load`, which agents have unless
    something else is said, everything. By roles, an agent with `server` serves, the others with `load` load, and one
    with `third-party` has third parties. Raises PlacingError, NoAgentsError.
    """
    servers = [player for player in players if SERVER in _roles(player)]
    if not wanted.any and not servers:
        return None
    others = {player.name: ",".join(player.facts["roles"]) for player in players}
    if wanted.server:
        server = named_server(players, wanted.server)
    elif not servers:
        raise NoAgentsError(address, SERVER, others)
    elif len(servers) > 1:
        names = " and ".join(player.name for player in servers)
        raise PlacingError(OPTIONS[SERVER], "", f"{names} have the role {SERVER}; name one of them with it")
    else:
        (server,) = servers
    loads = (
        _those(players, LOAD, wanted.load)
        if wanted.load
        else [player for player in players if LOAD in _roles(player) and player is not server]
    )
    if server in loads:
        raise PlacingError(
            OPTIONS[LOAD],
            server.name,
            "it serves, and cannot load itself; name another agent, or leave --server-on out for a race on one host",
        )
    thirds = [player for player in players if THIRD in _roles(player)]
    third = thirds[0] if len(thirds) == 1 else None
    if wanted.third_party:
        (third,) = _those(players, THIRD, (wanted.third_party,), one=True)
    elif len(thirds) > 1:
        names = " and ".join(player.name for player in thirds)
        raise PlacingError(OPTIONS[THIRD], "", f"{names} have the role {THIRD}; name one of them with it")
    if wanted.third_party and not wanted.load:
        loads = [load for load in loads if load is not third] or loads
    if not loads:
        raise NoAgentsError(address, LOAD, others)
    if third is server:
        raise PlacingError(
            OPTIONS[THIRD], server.name, "it serves; third parties would take its CPUs: name another agent"
        )
    return Cast(server, tuple(loads), third)


def named_server(players: Sequence[Player], name: str) -> Player:
    """Return the agent that is named to serve. Raises PlacingError."""
    (server,) = _those(players, SERVER, (name,), one=True)
    return server


def _those(players: Sequence[Player], role: str, names: Sequence[str], *, one: bool = False) -> list[Player]:
    """Return the agents that are named. Raises PlacingError for a name that is no agent's, or not of one alone."""
    option, found = OPTIONS[role], dict[str, Player]()
    for name in names:
        own = [player for player in players if name in _names_of(player)]
        if not own:
            there = ", ".join(f"{player.name} ({address_of(player)})" for player in players) or "none"
            raise PlacingError(option, name, f"no agent is called so; there are: {there}")
        if one and len(own) > 1:
            raise PlacingError(option, name, f"{len(own)} agents are there; name one: {_list_names(own)}")
        for player in own:
            if not {role, LOAD} & _roles(player):
                had = ",".join(player.facts["roles"])
                raise PlacingError(
                    option, name, f"its roles are {had}; start it with: velodrome agent --roles {role}"
                )
            found[player.name] = player
    return list(found.values())


def _list_names(players: Sequence[Player]) -> str:
    return ", ".join(player.name for player in players)


def refuse_unfit(cast: Cast) -> None:
    """See that those who are to race together can, before anything is started.

    Raises AgentsDifferError, AgentRefusedError.
    """
    for player in cast.players:
        if (player.facts["version"], player.facts["engine"]) != (VERSION, engine.VERSION):
            raise AgentsDifferError(
                "version", {"this command": VERSION, player.name: player.facts["version"]}
            )
        if player.facts["busy"]:
            raise AgentRefusedError(
                player.name, "it does something else for another command; wait until that has ended"
            )
    if not talking.is_loopback(cast.address):
        for player in cast.loads:
            if cast.address not in player.facts["allow_target"]:
                raise AgentRefusedError(
                    player.name,
                    f"it may not load {cast.address}, where {cast.server.name} serves; start it with: velodrome agent "
                    f"--allow-target {cast.address}",
                )
    elif len({player.facts["machine"] for player in (*cast.loads, cast.server)}) > 1:
        raise UsageError(
            f"{cast.server.name} is known by {cast.address}, which is another host for each agent; start it with: "
            "velodrome agent --host ADDRESS"
        )
    # What a load of the least demands is looked at, so that transports that differ are refused now.
    conducting.agree(
        cast.loads, LoadSpec(url=f"http://{cast.address}/", connections=len(cast.loads), duration_s=1.0)
    )


async def round_trips(cast: Cast) -> dict[str, float]:
    """Return milliseconds between the server's host and each other one, by agent: the least of ten.

    Raises AgentRefusedError where one does not reach it.
    """
    found = {}
    for origin, to in [
        *((load, cast.server) for load in cast.loads),
        *((cast.server, player) for player in _third(cast)),
    ]:
        message = await mesh.measure_route(origin, to, transfers=False, limit_s=READY_S)
        if "error" in message:
            raise AgentRefusedError(
                origin.name,
                f"it does not reach {to.name} at {to.line.address} ({message['error']}); "
                "open the way between these hosts",
            )
        found[(origin if to is cast.server else to).name] = float(message["round_trip_ms"])
    return found


def _third(cast: Cast) -> tuple[Player, ...]:
    return () if cast.third is None else (cast.third,)


# --- The load, and third parties, as the server's process says that it needs them.


Send = Callable[[Mapping[str, Any]], None]
Present = Callable[[], Awaitable[Sequence[Player]]]


class Conductor:
    """Does what the process of a race says that it needs of other hosts; on the loop that talks to agents."""

    def __init__(
        self,
        cast: Cast,
        race: str,
        trips_ms: Mapping[str, float],
        *,
        present: Present,
        send: Send,
        lost: Callable[[str], None],
    ) -> None:
        """`send` hands a message to the process, in order; `lost` ends the race, with a reason."""
        self._cast, self._race, self._trips_ms = cast, race, trips_ms
        self._present, self._send, self._lost = present, send, lost
        self._ended: set[int] = set()
        """Loads that are to end early."""
        self._loads: dict[int, _CarriedLoad] = {}
        self._thirds: dict[int, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._missing = False
        """Whether an agent was lost in the load before, or since."""

    @property
    def loading(self) -> bool:
        """Whether a load is in progress: then the server's host is to be left in peace."""
        return bool(self._loads)

    def take(self, event: Mapping[str, Any]) -> bool:
        """Take in what the process says. Returns whether it was for this one."""
        kind, number = event["event"], int(event.get("number", 0))
        if kind == "load":
            spec = read_spec(event["spec"])
            # Agents load their own machine, whatever they are allowed.
            if talking.is_loopback(self._cast.address):
                spec = spec.changed(allow_target=())
            self._do(self._load(number, spec))
        elif kind == "load-end":
            self._ended.add(number)
        elif kind == "third":
            self._do(self._third(number, json.dumps({"third": event["third"], "seed": event["seed"]})))
        elif kind == "third-facts":
            self._do(self._say_facts(number))
        elif kind == "third-end":
            self._thirds.pop(number, None)
            self._do(self._quietly("end", number))
        else:
            return False
        return True

    async def stop(self) -> None:
        """End loads."""
        await talking.cancel_all(self._tasks)

    async def close(self) -> None:
        """End all that runs on other hosts."""
        await self.stop()
        await self._quietly("over", 0)
        for load in self._cast.loads:  # of one that came back the line is its own
            await load.line.close()

    def _do(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _message(self, about: int, what: str, **facts: Any) -> None:
        self._send({"about": about, "is": what, **facts})

    # Loads.

    async def _load(self, number: int, spec: LoadSpec) -> None:
        try:
            document = await self._carry(number, spec)
        except AgentLostError as error:
            self._lost(f"{error.name}: {error.why}")
        except Exception as error:  # this load cannot be had: its trial says so
            self._message(number, "refused", why=str(error))
        else:
            for row in document["agents"]:
                row["server_round_trip_ms"] = self._trips_ms.get(row["name"])
            self._missing = any(row["lost"] for row in document["agents"])
            self._message(number, "ended", document=document)
        finally:
            self._loads.pop(number, None)

    async def _carry(self, number: int, spec: LoadSpec) -> dict[str, Any]:
        until = time.monotonic() + BACK_S
        while True:
            try:
                load = self._loads[number] = _CarriedLoad(self, number, spec)
                return await load.carry([Player(p.line, p.facts) for p in self.loaders(spec)])
            except (AgentLostError, AgentRefusedError) as error:
                self._missing = self._missing or isinstance(error, AgentLostError)
                if not self._missing or self._loads[number].begun or time.monotonic() > until:
                    raise
                await asyncio.sleep(1.0)  # it may have been lost in the load before, and come back
                await self._find_again()

    def loaders(self, spec: LoadSpec) -> tuple[Player, ...]:
        """Return who carries a load: all, but of one with fewer connections as many as it has.

        The members of a room are heard by one engine.
        """
        room = spec.websocket is not None and spec.websocket.get("mode") == "broadcast"
        most = 1 if room else max(1, spec.connections // spec.threads)
        return self._cast.loads[:most]

    async def _find_again(self) -> None:
        """Look for the loading agents anew: one that was started again has another address."""
        with suppress(CoordinatorError, AgentLostError):
            there = {player.name: player for player in await self._present()}
            loads = []
            for old in self._cast.loads:
                new = there.pop(old.name, None)
                same = new is None or new.line.address == old.line.address
                if new is not None:
                    await (new if same else old).line.close()
                loads.append(old if new is None or same else new)
            for player in there.values():
                await player.line.close()
            self._cast = replace(self._cast, loads=tuple(loads))

    readings: Sequence[clocks.Reading] = ()
    """Of the server's clock, before a load."""

    async def read_server(self) -> None:
        """Read the clock of the server's host. Raises AgentLostError."""
        turns = conducting.Turns(1)
        self.readings = await turns.readings(self._cast.server)

    def begun(self, number: int, at: int) -> None:
        """Say when all agents begin, by the server's clock."""
        self._message(number, "began", at_ns=at + clocks.best(self.readings).offset.ns)

    def goes(self, number: int, tick: Mapping[str, Any]) -> bool:
        """Say how a load goes. Returns whether it is to go on."""
        self._message(number, "tick", facts={key: value for key, value in tick.items() if key != "event"})
        return number not in self._ended

    # Third parties.

    async def _third(self, number: int, message: str) -> None:
        third = self._cast.third
        if third is None:
            why = f"no agent has the role {THIRD}; name one with {OPTIONS[THIRD]}"
            self._message(number, "refused", why=why)
            return
        try:
            found = json.loads(await self._ask("start", number, message))
        except AgentLostError as error:
            self._lost(f"{error.name}: {error.why}")
            return
        if "error" in found:
            self._message(number, "refused", why=f"agent {third.name}: {found['error']}")
            return
        near = _boot(third) == _boot(self._cast.server)
        self._message(
            number,
            "there",
            url=found["url"],
            pid=found["pid"] if near else None,
            agent=third.name,
            host=third.facts["host"],
            round_trip_ms=self._trips_ms.get(third.name),
        )
        if not self._thirds:
            self._do(self._ping())
        self._thirds[number] = None

    async def _ask(self, what: str, number: int = 0, message: str = "") -> str:
        assert self._cast.third is not None
        return str(
            await self._cast.third.line.call(
                "velodrome_third",
                conducting.LOST_S * 5,
                what=what,
                race=self._race,
                number=number,
                message=message,
            )
        )

    async def _quietly(self, what: str, number: int) -> None:
        if self._cast.third is not None:
            with suppress(AgentLostError):
                await self._ask(what, number)

    async def _ping(self) -> None:
        """Keep third parties: an agent that hears of nobody ends them."""
        await asyncio.sleep(PING_S)
        while self._thirds:
            await self._quietly("keep", 0)
            await asyncio.sleep(PING_S)

    async def third_facts(self) -> Mapping[str, Any]:
        """Return what each third party did since it was asked last. Raises AgentLostError."""
        found: Mapping[str, Any] = json.loads(await self._ask("facts")) if self._thirds else {}
        return found

    def say_third_facts(self, found: Mapping[str, Any]) -> None:
        """Hand on what they did over the span of a load, or why that is not known."""
        for number in self._thirds:
            facts = found.get(str(number))
            if facts is None:
                self._message(number, "refused", why=str(found.get("error", "it has ended")))
            else:
                self._message(number, "facts", facts=facts)

    async def _say_facts(self, number: int) -> None:
        with suppress(AgentLostError):
            found = await self.third_facts()
            self._message(number, "facts", facts=found.get(str(number), {}))


class _CarriedLoad:
    """One load that agents carry for the server's process."""

    def __init__(self, conductor: Conductor, number: int, spec: LoadSpec) -> None:
        self._conductor, self._number, self._spec = conductor, number, spec
        self.begun = False
        self._over = asyncio.Event()
        self._span: asyncio.Task[None] | None = None

    async def carry(self, players: Sequence[Player]) -> dict[str, Any]:
        """Return its document. Raises what `conducting.carry_load` does."""
        try:
            await self._conductor.read_server()
            return await conducting.carry_load(self._spec, players, self._on_event, self._on_begin)
        finally:
            self._over.set()
            if self._span is not None:
                await self._span

    def _on_event(self, event: Mapping[str, Any]) -> bool:
        return event["event"] != "tick" or self._conductor.goes(self._number, event)

    def _on_begin(self, at: int) -> None:
        self.begun = True
        self._conductor.begun(self._number, at)
        self._span = asyncio.ensure_future(self._watch_thirds(at))

    async def _watch_thirds(self, at: int) -> None:
        """Have third parties say what they did over the measured span."""
        measuring_s = at / 1e9 + self._spec.warmup_s
        try:
            await self._until(measuring_s)
            await self._conductor.third_facts()
            await self._until(None if self._spec.duration_s is None else measuring_s + self._spec.duration_s)
            found = await self._conductor.third_facts()
        except AgentLostError as error:
            found = {"error": f"it was lost: {error.why}"}
        self._conductor.say_third_facts(found)

    async def _until(self, moment_s: float | None) -> None:
        """Wait for a moment of the clock here (CLOCK_MONOTONIC, s), or the end of the load; None: for that alone."""
        wait_s = None if moment_s is None else max(0.0, moment_s - time.monotonic())
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), wait_s)

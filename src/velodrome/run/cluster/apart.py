"""A server whose load and third parties are on other hosts: the side of its own host.

    process of the race --- «load this», by an event ---> command --- conducts it ---> loading agents
    (AgentsDriver)      <-- how it goes, by messages  ---           (placing.py)  ---> agent of third parties (Thirds)

The process that runs races everywhere (`blocks.py`) serves, samples and judges flags here as anywhere. In the place of
an engine and of a third party of its own it has these: each says what it needs, and waits for messages about it. When
the measured span begins and ends it reads from its own clock: a message says before, at which moment of this clock all
agents begin. `Thirds` is what an agent does that runs third parties for a server elsewhere.
"""

import base64
import json
import queue
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

import psutil

from velodrome.model.app import ThirdParty
from velodrome.model.errors import LoadElsewhereError, UnfitLoadError, UpstreamError, VelodromeError
from velodrome.model.load import Load
from velodrome.model.measurement import Loader, LoadFacts, UpstreamFacts
from velodrome.model.results import adapter
from velodrome.run import third_party
from velodrome.run.drivers import load_document
from velodrome.run.drivers.driver import OWN, LoadEvent, OnEvent, Target
from velodrome.run.drivers.velodrome import VelodromeDriver
from velodrome.run.engine import LoadSpec
from velodrome.run.third_party import Upstream

Say = Callable[[dict[str, Any]], None]
Message = Mapping[str, Any]

SPEC_BODIES = ("body", "expect_body")
"""Fields of a load that are bytes."""
QUIET_S = 90.0
"""Without a message about a load for so long nobody conducts it: getting ready may take a minute."""
THIRD_S = 30.0
"""For an agent to start a third party, or to say what it did."""
LOOK_S = 0.25
"""So often it is looked whether the server still lives."""
FORGOTTEN_S = 10.0
"""Third parties that nobody asks about for so long have lost their race."""


@dataclass(frozen=True)
class Around:
    """What is around the server's host, as its process has to know it: plain data."""

    address: str
    """Of the server's host, as the others reach it."""
    cpus: tuple[int, ...]
    """For the server."""
    load_cpus: tuple[int, ...] = ()
    """Of its machine, that loading agents use all the same."""
    pids: tuple[int, ...] = ()
    """Of these agents: what they use is not that of other programs."""


def plain_spec(spec: LoadSpec) -> dict[str, Any]:
    """Return a load as JSON-ready values."""
    found = json.loads(spec.json())
    for name in SPEC_BODIES:
        value = getattr(spec, name)
        found[name] = None if value is None else base64.b64encode(value).decode()
    return dict(found)


def read_spec(plain: Mapping[str, Any]) -> LoadSpec:
    """Return a load from what `plain_spec` made of it."""
    bodies = {name: None if plain[name] is None else base64.b64decode(plain[name]) for name in SPEC_BODIES}
    return LoadSpec(**{**plain, **bodies})


# --- The process of the race.


class Channel:
    """From the process of a race to the command, which conducts for it, and back."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._received: dict[int, queue.SimpleQueue[Message]] = {}

    def begin(self, event: str, **facts: Any) -> "Exchange":
        """Say that something is needed; return by what it goes on."""
        number = len(self._received) + 1
        received = self._received[number] = queue.SimpleQueue()
        self.say(event, number, **facts)
        return Exchange(self, number, received)

    def say(self, event: str, number: int, **facts: Any) -> None:
        """Say something about what was begun."""
        self._say({"event": event, "number": number, **facts})

    def receive(self, message: Message) -> None:
        """Take a message in; by any thread."""
        if (received := self._received.get(int(message["about"]))) is not None:
            received.put(message)


@dataclass(frozen=True)
class Exchange:
    """What was begun, and the messages about it."""

    channel: Channel
    number: int
    received: "queue.SimpleQueue[Message]"

    def say(self, event: str) -> None:
        """Say something about it."""
        self.channel.say(event, self.number)

    def message(self, limit_s: float) -> Message | None:
        """Return the next message about it; None: there was none in that time."""
        with suppress(queue.Empty):
            return self.received.get(timeout=max(0.0, limit_s))
        return None


class AgentsDriver:
    """A driver whose load agents on other hosts carry."""

    name = OWN

    def __init__(self, channel: Channel, around: Around, seed: int) -> None:
        self._channel, self._around, self._seed = channel, around, seed

    def run(self, load: Load, target: Target, on_event: OnEvent) -> LoadFacts:
        """See `Driver.run`. Raises UnfitLoadError, LoadElsewhereError."""
        if load.driver != OWN:
            raise UnfitLoadError(load.driver, "agents", "other hosts", f"agents carry loads of {OWN} alone")
        # Of the specification the address alone is not the user's: servers listen on it, and agents may load it.
        spec = VelodromeDriver(seed=self._seed).spec(load, target)
        exchange = self._channel.begin("load", spec=plain_spec(spec))
        try:
            ended = _LoadInProgress(load, on_event, exchange, self._around).to_the_end()
        except BaseException:
            exchange.say("load-end")
            raise
        try:
            found = load_document.facts_of(ended["document"])
            return replace(found, loaders=tuple(map(_loader, ended["document"]["agents"])))
        except (ValueError, KeyError, TypeError) as error:
            raise LoadElsewhereError(f"what came back cannot be read: {error!r}") from error


def _loader(row: Mapping[str, Any]) -> Loader:
    return Loader(
        row["name"],
        row["host"],
        row["server_round_trip_ms"],
        row["requests"],
        row["ok"],
        row["cpu_share"],
        row["lag_p99_ms"],
        row["steal_share"],
        row["lost"] or "",
    )


class _LoadInProgress:
    """One load, from «load this» to its document."""

    def __init__(self, load: Load, on_event: OnEvent, exchange: Exchange, around: Around) -> None:
        self._load, self._on_event, self._exchange, self._around = load, on_event, exchange, around
        self._to_come: list[tuple[int, str]] = []
        """Moments of this clock at which the measured span begins and ends."""
        self._over = False
        self._tick: Mapping[str, Any] | None = None

    def to_the_end(self) -> Message:
        """Tell what happens as it does, and return the last message. Raises LoadElsewhereError."""
        heard_at = time.monotonic()
        while True:
            wait_s = LOOK_S
            if self._to_come:
                wait_s = min(wait_s, (self._to_come[0][0] - time.monotonic_ns()) / 1e9)
            message = self._exchange.message(wait_s)
            while self._to_come and self._to_come[0][0] <= time.monotonic_ns():
                at, kind = self._to_come.pop(0)
                self._tell(kind, {"monotonic_ns": at})
            if message is None:
                if time.monotonic() - heard_at > QUIET_S:
                    raise LoadElsewhereError("nobody conducted it any more")
                if self._tick is not None:
                    self._tell("tick", self._tick)  # whoever listens sees whether the server lives
                continue
            heard_at = time.monotonic()
            if (last := self._take(message)) is not None:
                return last

    def _take(self, message: Message) -> Message | None:
        """Take a message in; return it if it is the last."""
        kind = message["is"]
        if kind == "began":
            begin = int(message["at_ns"])
            measuring = begin + round(self._load.warmup_s * 1e9)
            self._to_come = [(measuring, "measuring")]
            if self._load.requests is None:
                self._to_come.append((measuring + round(self._load.duration_s * 1e9), "span_ended"))
            for pid in _engines(self._around.pids):
                self._tell("started", {"pid": pid})
        elif kind == "tick":
            self._tick = message["facts"]
            self._tell("tick", message["facts"])
        elif kind == "refused":
            raise LoadElsewhereError(str(message["why"]))
        elif kind == "ended":
            now = time.monotonic_ns()
            left = [name for _, name in self._to_come]
            for name in [*left, *(["span_ended"] if self._load.requests is not None else [])]:
                self._tell(name, {"monotonic_ns": now})  # it ended early, or by its number of requests
            return message
        return None

    def _tell(self, kind: str, facts: Mapping[str, Any]) -> None:
        if not self._on_event(LoadEvent(kind, facts)) and not self._over:
            self._over = True
            self._exchange.say("load-end")


def _engines(agents: Iterable[int]) -> list[int]:
    """Return the processes of agents on this machine, with the engines that they or their holders started."""
    found: dict[int, None] = {}
    for pid in agents:
        with suppress(psutil.Error):
            agent = psutil.Process(pid)
            holder = agent.parent()
            held = holder is not None and "velodrome" in " ".join(holder.cmdline())
            for process in (agent, *(holder if held and holder else agent).children(recursive=True)):
                found[process.pid] = None
    return list(found)


class ThirdElsewhere:
    """A third party that an agent on another host runs."""

    def __init__(self, exchange: Exchange, message: Message) -> None:
        self._exchange = exchange
        self.url = str(message["url"])
        self.pid: int | None = message.get("pid")
        self._about = {name: message[name] for name in ("agent", "host", "round_trip_ms")}

    def begin(self) -> None:
        """Forget what was said before: who conducts the load has it say what it did, at the end of the span."""
        while self._exchange.message(0.0) is not None:
            pass

    def end(self) -> UpstreamFacts:
        """Return what happened over the span. Raises UpstreamError."""
        return replace(third_party.facts_of(self._said()), **self._about)

    def so_far(self) -> int:
        """Return how many requests it got since it was started. Raises UpstreamError."""
        self._exchange.say("third-facts")
        return int(self._said()["requests"])

    def _said(self) -> Mapping[str, Any]:
        message = self._exchange.message(THIRD_S)
        if message is None or message["is"] != "facts":
            why = "nobody said what it did" if message is None else str(message["why"])
            raise UpstreamError(f"agent {self._about['agent']}: {why}")
        facts: Mapping[str, Any] = message["facts"]
        return facts

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exchange.say("third-end")


def third_elsewhere(channel: Channel, third: ThirdParty, seed: int) -> ThirdElsewhere:
    """Have a third party started on another host. Raises UpstreamError."""
    plain = adapter(ThirdParty).dump_python(third, mode="json")
    exchange = channel.begin("third", third=plain, seed=seed)
    message = exchange.message(THIRD_S)
    if message is None or message["is"] != "there":
        raise UpstreamError("no agent started it in time" if message is None else str(message["why"]))
    return ThirdElsewhere(exchange, message)


# --- The agent that runs third parties.


@dataclass
class _Running:
    """Third parties of one race."""

    asked: float
    every: dict[int, Upstream] = field(default_factory=dict)


class Thirds:
    """The third parties that an agent runs, by race; all calls block, so that they are of a thread."""

    def __init__(self, cpus: Sequence[int]) -> None:
        self._cpus, self._races = tuple(cpus), dict[str, _Running]()

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self._races)

    def do(self, what: str, race: str, number: int, message: str, host: str) -> str:
        """Start one (`start`), keep those of a race (`keep`), say of all what they did since that was asked (`facts`),
        end one (`end`) or all (`over`).

        Returns JSON; `host` is the address to listen on.
        """
        try:
            return json.dumps(self._do(what, race, number, message, host))
        except VelodromeError as error:
            return json.dumps({"error": str(error)})

    def _do(self, what: str, race: str, number: int, message: str, host: str) -> dict[str, Any]:
        running = self._races.get(race)
        if running is not None:
            running.asked = time.monotonic()
        if what == "start":
            plain = json.loads(message)
            third = adapter(ThirdParty).validate_python(plain["third"])
            made = third_party.start_as(third, cpus=self._cpus, seed=plain["seed"], host=host)
            running = self._races.setdefault(race, _Running(time.monotonic()))
            running.every[number] = made
            return {"url": made.url, "pid": made.pid}
        if running is None:
            return {} if what in ("end", "over") else {"error": "it runs none for this race any more"}
        if what == "keep":
            return {}
        if what == "facts":
            return {str(own): dict(upstream.read_facts()) for own, upstream in running.every.items()}
        for own in [number] if what == "end" else [*running.every]:
            if (upstream := running.every.pop(own, None)) is not None:
                upstream.stop()
        if what == "over":
            del self._races[race]
        return {}

    def forget(self) -> None:
        """End those that nobody asks about any more."""
        for race, running in [*self._races.items()]:
            if time.monotonic() - running.asked > FORGOTTEN_S:
                self._do("over", race, 0, "", "")

    def close(self) -> None:
        """End all."""
        for race in [*self._races]:
            self._do("over", race, 0, "", "")

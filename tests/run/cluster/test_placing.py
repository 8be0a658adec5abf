"""Who serves, loads and has third parties: by roles and by names; and one load as the server's process lives it."""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.run.made import LOAD_DOCUMENT

from velodrome.model.errors import (
    AgentRefusedError,
    AgentsDifferError,
    LoadElsewhereError,
    NoAgentsError,
    PlacingError,
    UnfitLoadError,
)
from velodrome.model.load import Closed, Limits, Load
from velodrome.run import engine
from velodrome.run.cluster import apart, placing
from velodrome.run.cluster.agent import VERSION
from velodrome.run.cluster.apart import AgentsDriver, Around, Channel
from velodrome.run.cluster.conducting import Player
from velodrome.run.cluster.placing import Cast, choose_cast, refuse_unfit
from velodrome.run.drivers.driver import LoadEvent, Target
from velodrome.run.engine import LoadSpec
from velodrome.run.lab import OnHosts
from velodrome.run.machine import facts

COORDINATOR = "tls://10.0.0.1:8786"


class Line:
    """Stands for the connection to an agent."""

    def __init__(self, address: str) -> None:
        self.address = address


def player(name: str, roles: str = "load", number: int = 1, **more: Any) -> Player:
    known: dict[str, Any] = {
        "name": name,
        "host": f"{name}.example",
        "machine": f"boot-of-{name} net",
        "roles": roles.split(","),
        "busy": False,
        "version": VERSION,
        "engine": engine.VERSION,
        "transport": "epoll",
        "allow_target": ["10.0.0.1"],
        "cpus": [0, 1],
        "pid": 100 + number,
    }
    line: Any = Line(f"tls://10.0.0.{number}:40000")
    return Player(line, known | more)


SERVES, LOADS, MORE, THIRD = (
    player("serves", "server", 1),
    player("loads", "load", 2),
    player("more", "load", 3),
    player("third", "third-party", 4),
)
ALL = (LOADS, MORE, SERVES, THIRD)


def names(cast: Cast | None) -> tuple[str, list[str], str]:
    assert cast is not None
    return cast.server.name, [load.name for load in cast.loads], cast.third.name if cast.third else ""


def test_by_roles_one_serves_the_others_load_and_without_that_role_all_share_blocks() -> None:
    assert names(choose_cast(ALL, OnHosts(), COORDINATOR)) == ("serves", ["loads", "more"], "third")
    assert choose_cast((LOADS, MORE), OnHosts(), COORDINATOR) is None


@pytest.mark.parametrize("called", ["loads", "loads.example", "10.0.0.2", "tls://10.0.0.2:40000"])
def test_a_host_is_named_by_what_the_list_of_agents_calls_it(called: str) -> None:
    found = choose_cast((LOADS, MORE), OnHosts(called, ("more",), "more"), COORDINATOR)
    assert names(found) == ("loads", ["more"], "more")


@pytest.mark.parametrize(
    ("players", "wanted", "match"),
    [
        (ALL, OnHosts("nowhere"), r"--server-on nowhere.*serves \(10\.0\.0\.1\)"),
        (ALL, OnHosts(load=("third",)), "--load-from third.*third-party"),
        (ALL, OnHosts("third"), "--server-on third.*--roles server"),
        ((LOADS, MORE), OnHosts("loads", ("loads",)), "--load-from loads"),
        ((LOADS, MORE), OnHosts("loads", (), "loads"), "--third-party-on loads"),
        ((*ALL, player("too", "server", 5)), OnHosts(), "--server-on.*serves and too"),
        ((*ALL, player("too", "third-party", 5)), OnHosts(), "--third-party-on.*third and too"),
        ((SERVES, THIRD), OnHosts(), "role load"),
        ((LOADS, MORE), OnHosts(load=("loads",)), "role server"),
    ],
)
def test_what_cannot_be_is_refused_with_the_option_or_the_role(
    players: Sequence[Player], wanted: OnHosts, match: str
) -> None:
    with pytest.raises((PlacingError, NoAgentsError), match=match):
        choose_cast(players, wanted, COORDINATOR)


@pytest.mark.parametrize(
    ("load", "error", "match"),
    [
        (player("loads", number=2, version="9.9.9"), AgentsDifferError, r"9\.9\.9"),
        (player("loads", number=2, busy=True), AgentRefusedError, "loads"),
        (player("loads", number=2, allow_target=[]), AgentRefusedError, r"--allow-target 10\.0\.0\.1"),
        (player("loads", number=2, transport="poll"), AgentsDifferError, "transport"),
    ],
    ids=["version", "busy", "target", "transport"],
)
def test_an_agent_that_cannot_is_refused_by_its_name(
    load: Player, error: type[Exception], match: str
) -> None:
    refuse_unfit(Cast(SERVES, (LOADS, MORE), THIRD))
    with pytest.raises(error, match=match):
        refuse_unfit(Cast(SERVES, (load, MORE), THIRD))


def test_loading_from_the_servers_machine_is_warned_of_where_they_share_cpus() -> None:
    near = player("near", number=2, machine="boot-of-serves other", cpus=[1])
    apart_from_it = player("beside", number=3, machine="boot-of-serves third", cpus=[2])
    cast = Cast(SERVES, (near, apart_from_it), None)
    assert [member.name for member in cast.near] == ["near"]
    assert any("near" in sentence for sentence in cast.warnings)
    assert cast.around == Around("10.0.0.1", (0, 1), (1,), (102, 103))
    placed = facts.place_apart(cast.around.cpus, Limits(), cast.around.load_cpus)
    assert (placed.server_cpus, placed.shared, placed.apart) == ((0, 1), True, True)
    alone = facts.place_apart((0, 1), Limits(cpus=1))
    assert (alone.server_cpus, alone.upstream_cpus, alone.load_cpus, alone.shared) == ((0,), (1,), (), False)


def test_a_load_is_the_same_once_it_was_sent() -> None:
    spec = LoadSpec(
        url="http://10.0.0.1:1/", rate=5.0, duration_s=1.0, body=b"\xff", expect_body=b"", threads=2
    )
    sent = apart.read_spec(json.loads(json.dumps(apart.plain_spec(spec))))
    assert (sent.json(), sent.body, sent.expect_body) == (spec.json(), spec.body, spec.expect_body)


# --- One load, as the process that serves lives it; who conducts it is made up.


class Conducting:
    """Answers «load this» with messages, from a thread of its own."""

    def __init__(self, *messages: Mapping[str, Any], begin_in_s: float = 0.05) -> None:
        self.events: list[Mapping[str, Any]] = []
        self.channel = Channel(self._take)
        self._messages, self._begin_in_s = messages, begin_in_s

    def _take(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)
        if event["event"] == "load":
            threading.Thread(target=self._conduct, args=(event["number"],), daemon=True).start()

    def _conduct(self, number: int) -> None:
        for message in self._messages:
            at = (
                {"at_ns": time.monotonic_ns() + round(self._begin_in_s * 1e9)}
                if message["is"] == "began"
                else {}
            )
            self.channel.receive({"about": number, **message, **at})


LOAD = Load(Closed(2), 0.1, 0.05)
TARGET = Target("http://10.0.0.1:1/", allow=("10.0.0.1",))
ROW = {
    "name": "eu-1",
    "host": "eu",
    "server_round_trip_ms": 0.3,
    "requests": 5,
    "ok": 5,
    "cpu_share": 0.97,
    "lag_p99_ms": 0.1,
    "steal_share": None,
    "lost": None,
}


def run(conducting: Conducting, load: Load = LOAD, go_on: bool = True) -> tuple[list[LoadEvent], Any]:
    seen: list[LoadEvent] = []

    def on(event: LoadEvent) -> bool:
        seen.append(event)
        return go_on

    return seen, AgentsDriver(conducting.channel, Around("10.0.0.1", (0,)), 1).run(load, TARGET, on)


def ended() -> Mapping[str, Any]:
    return {"is": "ended", "document": {**LOAD_DOCUMENT, "agents": [ROW]}}


def test_the_span_begins_and_ends_by_the_servers_own_clock_and_the_busiest_agent_counts() -> None:
    class Late(Conducting):
        def _conduct(self, number: int) -> None:
            super()._conduct(number)
            time.sleep(0.4)  # the document comes after the span
            self.channel.receive({"about": number, **ended()})

    seen, found = run(Late({"is": "began"}))
    moments = {event.kind: event.facts["monotonic_ns"] for event in seen if event.kind != "tick"}
    assert list(moments) == ["measuring", "span_ended"]
    assert moments["span_ended"] - moments["measuring"] == 100_000_000
    assert found.loaders[0].round_trip_ms == 0.3
    assert found.generator_cpu_share == 0.97


def test_a_load_that_ends_before_its_span_does_ends_the_span() -> None:
    seen, _ = run(Conducting({"is": "began"}, ended(), begin_in_s=30.0))
    assert [event.kind for event in seen] == ["measuring", "span_ended"]


def test_where_nobody_wants_it_to_go_on_it_is_ended_elsewhere() -> None:
    conducting = Conducting({"is": "began"}, {"is": "tick", "facts": {"ok": 1}}, ended(), begin_in_s=30.0)
    run(conducting, go_on=False)
    assert [mapping["event"] for mapping in conducting.events] == ["load", "load-end"]


def test_what_cannot_be_carried_says_why() -> None:
    with pytest.raises(LoadElsewhereError, match="eu-1"):
        run(Conducting({"is": "refused", "why": "agent eu-1 does not take the load"}))
    with pytest.raises(UnfitLoadError):
        run(Conducting(), Load(Closed(2), 0.1, driver="wrk"))


def test_a_load_with_fewer_connections_than_agents_is_carried_by_as_many_as_it_has() -> None:
    async def nobody() -> Sequence[Player]:
        return ()

    conductor = placing.Conductor(
        Cast(SERVES, (LOADS, MORE), None), "1", {}, present=nobody, send=lambda _: None, lost=lambda _: None
    )
    load_spec = LoadSpec(url="http://10.0.0.1:1/", connections=1, duration_s=1.0)
    assert [found.name for found in conductor.loaders(load_spec)] == ["loads"]
    assert [found.name for found in conductor.loaders(load_spec.changed(connections=2))] == ["loads", "more"]

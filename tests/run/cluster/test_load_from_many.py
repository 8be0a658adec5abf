"""One load from many agents: each request arrives once, the merge is the whole, and what is lost is reported."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest
from tests.run.cluster.counting import Counted, counting
from tests.run.cluster.posing import SOON_S, list_agents
from tests.waiting import wait_until

from velodrome.judge.histograms import decode
from velodrome.model.errors import (
    AgentLostError,
    AgentRefusedError,
    AgentsDifferError,
    ClusterKeysError,
    CoordinatorError,
    KeysThereError,
    NoAgentsError,
    TooFewCpusError,
    UsageError,
)
from velodrome.run import engine
from velodrome.run.cluster import conducting, coordinator, keys, talking
from velodrome.run.engine import LoadSpec
from velodrome.usecases import cluster_load
from velodrome.usecases.load import Work

HOST = "127.0.0.1"
SCHEMA = Path(__file__).parents[3] / "docs/load.schema.json"
AGENT = """
import asyncio, sys
from velodrome.run.cluster import agent, talking
{change}
asyncio.run(agent.serve(sys.argv[1], agent.Policy("{name}"), talking.security("tcp"), host="127.0.0.1",
                        on_ready=lambda _: print("here", flush=True)))
"""
ODD_ONE = AGENT.format(name="odd-one", change="agent.VERSION = '9.9.9'")
HOUR_AHEAD = AGENT.format(name="hour-ahead", change="")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A coordinator with two agents, for all that leaves them alive."""
    with coordinator.coordinating(HOST, 0, 2) as address:
        yield address


@pytest.fixture
def server() -> Iterator[Counted]:
    with counting() as found:
        yield found


def go_on(_event: Mapping[str, Any]) -> bool:
    return True


def spec(server: Counted, **fields: Any) -> LoadSpec:
    return LoadSpec(url=f"{server.url}/{{{{n}}}}", template=True, connections=100, **fields)


def test_a_part_that_waits_for_the_others_measures_nothing_meanwhile(server: Counted) -> None:
    events: list[Mapping[str, Any]] = []

    def heard(event: Mapping[str, Any]) -> Any:
        events.append(event)
        waited = [each for each in events if each["event"] == "tick"]
        # A part is answered with the moment at which all begin; until then nobody knows it.
        at_last = event["event"] == "ready" and len(waited) >= 2
        return time.monotonic_ns() + 200_000_000 if at_last else True

    part = {"number": 1, "of": 2}
    document = engine.load(spec(server, rate=100.0, duration_s=0.3, part=part), heard)
    ready = next(at for at, event in enumerate(events) if event["event"] == "ready")
    begun = next(at for at, event in enumerate(events) if event["event"] == "connected")
    waiting = [event for event in events[ready:begun] if event["event"] == "tick"]
    assert {event["phase"] for event in waiting} == {"warmup"}
    assert document["requests"] == 15


@pytest.mark.parametrize(
    "pace",
    [
        {"rate": 300.0, "duration_s": 1.0},
        {"rate": 300.0, "requests": 300, "arrivals": "poisson", "warmup_s": 0.2},
        {"schedule": [{"rate": 100, "duration_s": 0.5}, {"rate": 100, "to_rate": 600, "duration_s": 0.5}]},
    ],
    ids=["constant", "poisson", "steps"],
)
def test_each_request_of_the_schedule_arrives_once(
    cluster: str, server: Counted, pace: Any, record_property: Callable[[str, object], None]
) -> None:
    wanted = spec(server, **pace)
    ticks: list[Mapping[str, Any]] = []

    def note(event: Mapping[str, Any]) -> bool:
        ticks.append(event)
        return True

    document = cluster_load.load(Work(wanted, agents=cluster), note)
    many = len(server.came)
    assert sorted(server.paths, key=lambda path: int(path[1:])) == [f"/{n}" for n in range(many)]
    dues = engine.schedule(wanted, many)
    off = [at - dues[int(path[1:])] for path, at in server.came]
    spread = [(moment - min(off)) / 1e6 for moment in off]
    record_property("deviation_ms", {"median": sorted(spread)[many // 2], "max": max(spread)})
    # What follows is of the document alone.
    assert document["requests"] == document["ok"] == sum(row["requests"] for row in document["agents"])
    in_span = round(document["throughput_rps"] * document["duration_s"])
    assert in_span == sum(second["ok"] for second in document["series"])
    assert decode(document["hdr"]["due"]).counts.sum() == document["requests"]
    assert [row["name"] for row in document["agents"]] == ["local-0", "local-1"]
    assert {"agent-lost", "clocks-apart"}.isdisjoint(document["flags"])
    assert document["load"]["connections"] == 100
    assert ticks[-1]["event"] == "tick"
    if "requests" in pace:
        assert document["requests"] == pace["requests"]
    if "schedule" in pace:
        assert [step["requests"] for step in document["steps"]] == [50, 175]


def test_a_closed_loop_is_shared_too(cluster: str, server: Counted) -> None:
    document = cluster_load.load(Work(spec(server, requests=400), agents=cluster), go_on)
    assert document["requests"] == len(set(server.paths)) == 400
    fairness = document["fairness"]
    assert (fairness["connections"], fairness["answers"]) == (100, 400)
    assert fairness["jain_short_term"] is None, "nobody saw all connections at once"


def test_agents_are_listed_with_their_clocks(cluster: str) -> None:
    found = list_agents(cluster)
    assert [(row["name"], row["roles"], row["allow_target"]) for row in found] == [
        ("local-0", ["load"], []),
        ("local-1", ["load"], []),
    ]
    for row in found:  # of one machine, whose clock is this one
        assert abs(row["offset_ms"]) <= row["uncertainty_ms"]
        assert row["uncertainty_ms"] == pytest.approx(row["round_trip_ms"] / 2, rel=1e-3)


def test_an_agent_loads_only_what_it_was_started_for(cluster: str) -> None:
    wanted = LoadSpec(url="http://192.0.2.1/", requests=1, connections=2, allow_target=("192.0.2.1",))
    with pytest.raises(AgentRefusedError, match=r"local-0 .*192\.0\.2\.1"):
        cluster_load.load(Work(wanted, agents=cluster), go_on)


def test_it_ends_when_that_is_wanted(cluster: str, server: Counted) -> None:
    events = iter(range(100))
    document = cluster_load.load(
        Work(spec(server, rate=200.0, duration_s=60.0), agents=cluster), lambda _: next(events) < 5
    )
    assert 0 < document["requests"] == document["ok"] < 2000
    assert "agent-lost" not in document["flags"]
    assert not any(row["busy"] for row in list_agents(cluster))


def test_what_cannot_be_one_load_is_refused_before_anything_is_sent(cluster: str, server: Counted) -> None:
    few = spec(server, requests=1).changed(connections=1)
    with pytest.raises(UsageError, match="connections"):
        cluster_load.load(Work(few, agents=cluster), go_on)
    odd = subprocess.Popen(
        [sys.executable, "-c", ODD_ONE, cluster], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert odd.stdout is not None
        assert odd.stdout.readline() == b"here\n"
        with pytest.raises(AgentsDifferError, match=r"odd-one has 9\.9\.9"):
            cluster_load.load(Work(spec(server, rate=100.0, duration_s=1.0), agents=cluster), go_on)
    finally:
        odd.kill()
        odd.communicate()
    wait_until(lambda: names(cluster) == ["local-0", "local-1"], SOON_S)
    assert server.came == []


def test_whoever_conducts_dies_and_the_agents_end_their_loads(cluster: str, server: Counted) -> None:
    command = [sys.executable, "-m", "velodrome", "load", server.url, "-R", "100", "-z", "60s"]
    conductor = subprocess.Popen(
        [*command, "--agents", cluster], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: len(server.came) > 20, SOON_S)
    conductor.kill()
    conductor.wait()
    wait_until(lambda: not any(row["busy"] for row in list_agents(cluster)), SOON_S)
    came = len(server.came)
    assert came < 60 * 100
    assert len(server.came) == came


def test_ctrl_c_ends_it_and_what_was_measured_is_shown(cluster: str, server: Counted) -> None:
    command = [sys.executable, "-m", "velodrome", "load", server.url, "-R", "100", "-z", "60s", "--json"]
    conductor = subprocess.Popen(
        [*command, "--agents", cluster], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: len(server.came) > 50, SOON_S)
    conductor.send_signal(signal.SIGINT)
    out, error = conductor.communicate(timeout=30)
    assert conductor.returncode == 130, error
    document = json.loads(out)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert 0 < document["ok"] <= len(server.came)
    assert not any(row["busy"] for row in list_agents(cluster))


def test_an_agent_that_is_killed_makes_the_load_invalid_and_leaves_nothing(server: Counted) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with coordinator.coordinating(HOST, 0, 2) as address:
        victim = next(row["pid"] for row in list_agents(address) if row["name"] == "local-1")

        def kill() -> None:
            wait_until(lambda: len(server.came) > 50, SOON_S)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        document = cluster_load.load(Work(spec(server, rate=200.0, duration_s=60.0), agents=address), go_on)
        killer.join()
    rows = {row["name"]: row for row in document["agents"]}
    assert "agent-lost" in document["flags"]
    assert rows["local-1"]["lost"]
    assert rows["local-0"]["lost"] is None
    assert document["requests"] == rows["local-0"]["requests"] < 6000
    wait_until(lambda: {child.pid for child in psutil.Process().children(recursive=True)} <= before, SOON_S)


@pytest.mark.exhaustive
def test_a_coordinator_that_is_killed_takes_the_load_with_it(server: Counted) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with coordinator.coordinating(HOST, 0, 2) as address:
        scheduler = next(
            child
            for child in psutil.Process().children()
            if child.pid not in before and "scheduler" in child.cmdline()
        )

        def kill() -> None:
            wait_until(lambda: len(server.came) > 50, SOON_S)
            scheduler.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(AgentLostError):
            cluster_load.load(Work(spec(server, rate=200.0, duration_s=60.0), agents=address), go_on)
        killer.join()
        wait_until(
            lambda: len(psutil.Process().children(recursive=True)) <= len(before) + 3, SOON_S
        )  # no engine any more
    assert len(server.came) < 60 * 200
    wait_until(lambda: {child.pid for child in psutil.Process().children(recursive=True)} <= before, SOON_S)


def test_an_agent_whose_clock_is_an_hour_ahead_begins_with_the_others(cluster: str, server: Counted) -> None:
    """A time namespace: its monotonic clock is the kernel's, and exactly so far from this one."""
    ahead = ["unshare", "--time", "--monotonic", "3600"]
    if os.geteuid() != 0 or subprocess.run([*ahead, "true"], check=False, capture_output=True).returncode:
        pytest.skip(
            "needs root and a kernel with time namespaces: run the tests as root on Linux 5.6 or newer"
        )
    odd = subprocess.Popen(
        [*ahead, sys.executable, "-c", HOUR_AHEAD, cluster], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert odd.stdout is not None
        assert odd.stdout.readline() == b"here\n"
        wanted = spec(server, rate=300.0, duration_s=1.0)
        document = cluster_load.load(Work(wanted, agents=cluster), go_on)
    finally:
        odd.kill()
        odd.communicate()
    rows = {row["name"]: row for row in document["agents"]}
    assert abs(rows["hour-ahead"]["offset_ms"] - 3_600_000) <= rows["hour-ahead"]["uncertainty_ms"]
    assert abs(rows["local-0"]["offset_ms"]) <= rows["local-0"]["uncertainty_ms"]
    assert {path for path, _ in server.came} == {f"/{n}" for n in range(300)}
    assert len(server.came) == 300
    wait_until(lambda: names(cluster) == ["local-0", "local-1"], SOON_S)


def test_commands_without_agents_do_not_import_dask() -> None:
    code = """
import sys
import velodrome.cli.load, velodrome.usecases.load, velodrome.usecases.load_blocks, velodrome.api.loads
print({"dask", "distributed", "tornado", "cryptography"} & set(sys.modules))
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "set()"


def test_a_load_over_tls_by_agents_of_its_own(server: Counted) -> None:
    document = cluster_load.load(Work(spec(server, requests=20), agents="2"), go_on)
    assert document["ok"] == len(set(server.paths)) == 20
    assert all(row["address"].startswith("tls://") for row in document["agents"])


@pytest.mark.exhaustive
def test_as_many_agents_as_the_rate_takes_by_a_short_look(server: Counted) -> None:
    work = Work(spec(server, rate=200.0, duration_s=1.0), agents="auto")
    document = cluster_load.load(work, go_on)
    assert [row["name"] for row in document["agents"]] == ["local-0"]
    assert document["requests"] == 200
    assert len(server.came) == 400, "the look sends what the load sends, before it"
    assert "200/s" in work.notes[0]
    with pytest.raises(TooFewCpusError):
        cluster_load.load(Work(spec(server, rate=10_000_000.0, duration_s=1.0), agents="auto"), go_on)
    with pytest.raises(UsageError, match="closed loop"):
        cluster_load.load(Work(spec(server, requests=1), agents="auto"), go_on)


def test_agents_are_counted_by_the_busiest_moment_and_what_a_request_takes() -> None:
    steps = ({"rate": 100.0, "duration_s": 1.0}, {"rate": 500.0, "to_rate": 90_000.0, "duration_s": 1.0})
    assert cluster_load.highest(LoadSpec(url="http://127.0.0.1:9/", schedule=steps)) == 90_000
    assert cluster_load.highest(LoadSpec(url="http://127.0.0.1:9/", rate=7.0)) == 7
    assert cluster_load.highest(LoadSpec(url="http://127.0.0.1:9/")) is None
    # 90,000/s of 10 µs are 0.9 of a CPU: two agents of one thread at 45 %, one of two.
    assert cluster_load.Need(90_000, 10e-6, 1).agents == 2
    assert cluster_load.Need(90_000, 10e-6, 2).agents == 1
    assert cluster_load.Need(10, 10e-6, 1).agents == 1


def test_no_agents_and_no_keys_are_reported(
    tmp_path_factory: pytest.TempPathFactory, server: Counted
) -> None:
    with coordinator.coordinating(HOST, 0, 0) as address, pytest.raises(NoAgentsError):
        cluster_load.load(Work(spec(server, requests=1), agents=address), go_on)
    folder = tmp_path_factory.mktemp("keys")
    with pytest.raises(ClusterKeysError, match="missing"):
        talking.security("tls", folder)
    keys.make(folder, days=0)
    with pytest.raises(ClusterKeysError, match="expired"):
        talking.security("tls", folder)
    with pytest.raises(KeysThereError, match=r"ca\.key"):
        keys.make(folder)


@pytest.mark.exhaustive
def test_a_coordinator_wants_a_certificate_of_its_own_authority(
    tmp_path_factory: pytest.TempPathFactory, server: Counted
) -> None:
    no_scheduler = server.url.replace("http", "tcp")
    with pytest.raises(CoordinatorError):
        cluster_load.load(Work(spec(server, requests=1), agents=no_scheduler), go_on)
    ours, theirs = (keys.make(tmp_path_factory.mktemp("keys")).folder for _ in range(2))
    with coordinator.coordinating(HOST, 0, 1, scheme="tls", folder=ours) as address:
        assert [row["name"] for row in list_agents(address, ours)] == ["local-0"]
        with pytest.raises(CoordinatorError):
            list_agents(address, theirs)
        with pytest.raises(CoordinatorError):
            asyncio.run(
                conducting.present(
                    talking.Address.read(address.replace("tls", "tcp")), talking.security("tcp")
                )
            )


def names(cluster: str) -> list[str]:
    """Return which agents are there; none while one that is gone is known still."""
    try:
        return [row["name"] for row in list_agents(cluster)]
    except AgentLostError:
        return []

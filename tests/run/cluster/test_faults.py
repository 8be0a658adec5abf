"""Whatever dies, is cut off or goes wrong: the result is right, or refused or invalid with a name and a reason.

And nothing is left running on any host, and nobody sends for longer than three seconds.
"""

import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.run.cluster import hosts
from tests.run.cluster.hosts import PATIENCE_S, Cluster, Network, Target, deviations_us, result
from tests.waiting import wait_until

from velodrome.run.cluster import talking
from velodrome.run.engine import LoadSpec
from velodrome.run.link import enter

pytestmark = hosts.needed

TARGET, AGENTS = 4, (1, 2, 3)
RATE, SECONDS = 300, 3
LIMIT_S = 3.0
"""Within which an agent whose command or coordinator has gone stops sending."""
SLOW = pytest.mark.exhaustive
SECRET = "Xq7-much-hidden-token-91"


network, target, standing = hosts.fixtures(5, TARGET, AGENTS)


@pytest.fixture
def cluster(standing: Cluster, target: Target, tmp_path: Path) -> Iterator[Cluster]:
    """All of it alive before a test, and nothing but it afterwards."""
    standing.mend()
    target.taken(tmp_path)
    yield standing
    wait_until(lambda: not standing.strange(target.process), 10.0)


def begun(cluster: Cluster, target: Target, *more: str, seconds: int = SECONDS) -> "subprocess.Popen[str]":
    how = ("-R", str(RATE), "-z", f"{seconds}s", "-c", "60", "--template", *more)
    return cluster.command(target.own_url(), *how)


def judged(
    process: "subprocess.Popen[str]", target: Target, tmp_path: Path, seconds: int = SECONDS
) -> tuple[str, Mapping[str, Any], list[int]]:
    """Return `complete`, `invalid` or `refused`, the document, and when requests came; each must hold what it says."""
    code, document, error = result(process)
    wait_until(lambda: not engines(), 5.0)
    numbers, moments = target.own(tmp_path)
    twice = {n: [at for m, at in zip(numbers, moments, strict=True) if m == n] for n in set(numbers)}
    twice = {n: at for n, at in twice.items() if len(at) > 1}
    # Once each, or as often again as the engine says (on a connection that was closed under a request).
    assert len(twice) <= document.get("resent", 0), (twice, document.get("resent"), document.get("examples"))
    if not document:
        assert code not in (0, 1, -signal.SIGSEGV), error
        assert "Traceback" not in error
        assert "agent host-" in error or "no coordinator at tls://" in error, error
        return "refused", {"error": error}, moments
    rows = {row["name"]: row for row in document["agents"]}
    assert document["requests"] == sum(row["requests"] for row in rows.values() if not row["lost"])
    if "agent-lost" not in document["flags"]:
        assert not any(row["lost"] for row in rows.values())
        assert sorted(set(numbers)) == list(range(RATE * seconds))
        assert document["requests"] == document["ok"] == RATE * seconds
        return "complete", document, moments
    assert code == 3
    assert any(row["lost"] for row in rows.values())
    return "invalid", document, moments


def engines() -> list[psutil.Process]:
    found = []
    for process in hosts.marked():
        with suppress(psutil.Error):
            if "velodrome.run.drivers.engine_process" in process.cmdline():
                found.append(process)
    return found


def lost(document: Mapping[str, Any]) -> dict[str, str]:
    return {row["name"]: row["lost"] for row in document.get("agents", ()) if row["lost"]}


KILLS = 60
DAILY = 7
"""Of which this one is tried daily: an agent, in the middle."""


@pytest.mark.parametrize("number", [pytest.param(n, marks=() if n == DAILY else SLOW) for n in range(KILLS)])
def test_a_kill_at_any_moment(
    cluster: Cluster,
    target: Target,
    tmp_path: Path,
    number: int,
    record_property: Callable[[str, object], None],
) -> None:
    draw = random.Random(number)
    whom = ("coordinator", "agent", "command")[number % 3]
    after_s = 2.5 if number == DAILY else draw.uniform(0.0, SECONDS + 2.5)
    command = begun(cluster, target)
    time.sleep(after_s)
    name = f"host-{draw.choice(AGENTS)}"
    if whom == "coordinator":
        assert cluster.scheduler is not None
        victim = cluster.scheduler.pid
    else:
        victim = (cluster.agents[name] if whom == "agent" else command).pid
    killed_ns = time.time_ns()
    os.kill(victim, signal.SIGKILL)
    if whom == "command":
        out, _ = command.communicate(timeout=10)
        found, document = "nothing", json.loads(out) if out else {}
        wait_until(lambda: not engines(), 10.0)
        _, moments = target.own(tmp_path)
    else:
        found, document, moments = judged(command, target, tmp_path)
        if found == "invalid":
            assert set(lost(document)) == {name} if whom == "agent" else lost(document)
    over_s = max([(max(moments) - killed_ns) / 1e9] if moments else [0.0])
    if whom != "agent" and found != "complete":
        assert over_s <= LIMIT_S
    message = lost(document) or document.get("error", "")
    record_property(
        "kill", [number, whom, name, round(after_s, 2), found, round(over_s, 2), str(message)[:200]]
    )


@pytest.mark.parametrize(
    ("seconds", "whom"),
    [
        pytest.param(1, 2, id="agent-1s"),
        pytest.param(5, 2, id="agent-5s", marks=SLOW),
        pytest.param(30, 2, id="agent-30s", marks=SLOW),
        pytest.param(5, 0, id="command-5s", marks=SLOW),
    ],
)
def test_a_cable_that_is_pulled(
    cluster: Cluster,
    target: Target,
    tmp_path: Path,
    network: Network,
    seconds: int,
    whom: int,
    record_property: Callable[[str, object], None],
) -> None:
    span = SECONDS if seconds == 1 else 6
    command = begun(cluster, target, seconds=span)
    wait_until(lambda: target.many > RATE // 2, PATIENCE_S)
    network.hosts[whom].pull()
    pulled, pulled_ns = time.monotonic(), time.time_ns()
    try:
        ended_s = None
        while time.monotonic() < pulled + seconds:
            if ended_s is None and seconds > 1 and whom and len(engines()) < len(AGENTS):
                ended_s = time.monotonic() - pulled
            time.sleep(0.02)
    finally:
        network.hosts[whom].plug()
    found, document, moments = judged(command, target, tmp_path, span)
    if whom:
        if seconds == 1:
            assert found == "complete"
            assert document["latency_ms"]["due"]["max"] > 900, "who was due meanwhile has waited for it"
        else:
            assert found == "invalid"
            assert set(lost(document)) == {f"host-{whom}"}
    else:
        assert found == "refused"
        assert (max(moments) - pulled_ns) / 1e9 <= LIMIT_S
    record_property(
        "cut",
        [
            seconds,
            whom,
            found,
            ended_s,
            (max(moments) - pulled_ns) / 1e9,
            lost(document),
            document.get("error"),
        ],
    )
    wait_until(lambda: not engines(), 10.0)


ODD_CLOCK = """
import asyncio, sys, time
from pathlib import Path
from velodrome.run.cluster import agent, clocks, talking

class Odd(clocks.Clock):
    ahead, drift, born = {ahead}, {drift}, time.monotonic_ns()

    def now(self):
        real = time.monotonic_ns()
        return real + self.ahead + round((real - self.born) * self.drift)

    def for_engine(self, at):
        return self.born + round((at - self.ahead - self.born) / (1 + self.drift))

address, name, host, folder, allow = sys.argv[1:]
policy = agent.Policy(name, allow_target=(allow,))
clock = Odd()
asyncio.run(agent.serve(address, policy, talking.security("tls", Path(folder)), host=host, clock=clock,
                        on_ready=lambda _: print(clock.born, flush=True)))
"""


SENDER = """
import socket, sys
address, port, path = sys.argv[1:]
request = f"GET {path} HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n".encode()
connection = socket.create_connection((address, int(port)))
connection.sendall(request)
connection.recv(100)
print("answered", flush=True)
sys.stdin.readline()
connection.sendall(request)
"""


def test_what_a_process_sent_arrives_after_its_end_and_is_not_taken_for_a_later_load(
    network: Network, target: Target, tmp_path: Path
) -> None:
    """As the kernel sends again what was not acknowledged, for minutes: the network was cut meanwhile."""
    host = network.hosts[AGENTS[0]]
    address, port = target.url.removeprefix("http://").split(":")
    first = target.own_url().removeprefix(target.url).replace("{{n}}", "7")
    sender = host.start(sys.executable, "-c", SENDER, address, port, first)
    try:
        assert hosts.first_line(sender) == "answered"
        host.pull()
        assert sender.stdin is not None
        sender.stdin.write("\n")
        sender.stdin.flush()
        sender.wait(10)
        assert target.own(tmp_path)[0] == [7]
        target.own_url()
    finally:
        host.plug()
        hosts.ended(sender)
    wait_until(lambda: target.many > 0, PATIENCE_S)
    assert target.own(tmp_path) == ([], [])


def test_a_clock_an_hour_ahead_that_drifts(
    cluster: Cluster, target: Target, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    hour, drift = 3_600_000_000_000, 200e-6
    hosts.ended(cluster.agents.pop("host-2"))
    odd = cluster.agent(2, code=ODD_CLOCK.format(ahead=hour, drift=drift))
    try:
        born = int(hosts.first_line(odd))
        wait_until(lambda: cluster.names() == ["host-1", "host-2", "host-3"], PATIENCE_S)
        # On a busy machine three seconds can be too short for readings to tell 200 ppm from none.
        for seconds in (SECONDS, 2 * SECONDS, 4 * SECONDS):
            code, document, error = result(begun(cluster, target, seconds=seconds))
            assert code in (0, 3), error
            numbers, moments = target.own(tmp_path)
            assert sorted(numbers) == list(range(RATE * seconds))
            assert "agent-lost" not in document["flags"]
            row = next(row for row in document["agents"] if row["name"] == "host-2")
            begun_ns = min(moments) - time.time_ns() + time.monotonic_ns()
            true_ms = (hour + (begun_ns - born) * drift) / 1e6
            assert abs(row["offset_ms"] - true_ms) <= row["uncertainty_ms"]
            if row["drift_ppm"] is not None:
                break
            assert drift * 1e6 <= 2 * row["drift_uncertainty_ppm"]
    finally:
        hosts.ended(odd)
    assert row["drift_ppm"] is not None
    assert abs(row["drift_ppm"] - drift * 1e6) <= row["drift_uncertainty_ppm"]
    spec = LoadSpec(url=target.url, rate=float(RATE), duration_s=float(seconds))
    origin = min(moments)
    off = {
        part: statistics.median(
            at - origin - n * 1e9 / RATE for n, at in zip(numbers, moments, strict=True) if n % 3 == part
        )
        for part in range(3)
    }
    apart_ms = abs(off[1] - (off[0] + off[2]) / 2) / 1e6
    assert apart_ms <= row["uncertainty_ms"]
    record_property(
        "clock",
        [
            f"{name}: {row[name]}"
            for name in ("offset_ms", "uncertainty_ms", "drift_ppm", "drift_uncertainty_ppm")
        ]
        + [
            f"true {true_ms}, began apart by {apart_ms} ms, deviation {deviations_us(spec, numbers, moments)[-1]}"
        ],
    )


@contextmanager
def slowed(process: psutil.Process, share: float) -> Iterator[None]:
    """Let a process and its children run for a share of the time only: stopped and continued, ten times a second."""
    over = threading.Event()

    def all_of_it(number: int) -> None:
        for member in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                member.send_signal(number)

    def work() -> None:
        while not over.is_set():
            all_of_it(signal.SIGSTOP)
            over.wait(0.1 * (1 - share))
            all_of_it(signal.SIGCONT)
            over.wait(0.1 * share)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        all_of_it(signal.SIGCONT)


@SLOW
def test_an_agent_at_a_tenth_of_the_speed(
    cluster: Cluster, target: Target, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with slowed(psutil.Process(cluster.agents["host-2"].pid), 0.1):
        found, document, _ = judged(begun(cluster, target), target, tmp_path)
    rows = {row["name"]: row for row in document.get("agents", ())}
    record_property(
        "slow",
        [
            found,
            document.get("flags"),
            document.get("error"),
            {name: (row["lag_p99_ms"], row["flags"], row["lost"]) for name, row in rows.items()},
        ],
    )
    if found == "complete":
        assert set(rows["host-2"]["flags"]) & set(document["flags"]), "one that is late flags the whole"
        assert rows["host-2"]["lag_p99_ms"] > 10 * rows["host-1"]["lag_p99_ms"]
    elif found == "invalid":
        assert set(lost(document)) == {"host-2"}
    else:
        assert "host-2" in document["error"]


@contextmanager
def small_disk(folder: Path, room: str = "size=256k") -> Iterator[Path]:
    """Mount a file system with hardly any room."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"{room},mode=1777", "none", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> None:
    with suppress(OSError), open(folder / "full", "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@SLOW
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_disk_that_is_full(
    cluster: Cluster,
    target: Target,
    tmp_path: Path,
    when: str,
    record_property: Callable[[str, object], None],
) -> None:
    hosts.ended(cluster.agents.pop("host-2"))
    with small_disk(tmp_path / "small") as folder:
        if when == "before":
            fill(folder)
        agent = cluster.agent(2, env={"TMPDIR": str(folder)})
        try:
            if when == "before":
                line = agent.stdout.readline() if agent.stdout else ""
                if not line:
                    assert agent.stderr is not None
                    error = agent.stderr.read()
                    assert "Traceback" not in error
                    assert str(folder) in error or "space" in error, error
                    record_property("disk", [when, "the agent does not start", error])
                    return
            else:
                hosts.first_line(agent)
                fill(folder)
            wait_until(lambda: cluster.names() == ["host-1", "host-2", "host-3"], PATIENCE_S)
            found, document, _ = judged(begun(cluster, target), target, tmp_path)
            record_property("disk", [when, found, document.get("error"), lost(document)])
            if found == "refused":
                assert "host-2" in document["error"]
        finally:
            hosts.ended(agent)
            del cluster.agents["host-2"]


async def _everything(address: str, way: Any) -> list[str]:
    """Return what Dask reports of itself where that takes no arguments: state, logs, events, profiles."""
    operations = (
        "identity",
        "get_logs",
        "get_events",
        "get_cluster_state",
        "dump_state",
        "get_profile",
        "metrics",
    )
    found = []
    at = talking.Address.read(address)
    agents = await talking.workers(at, way)
    for where in (address, *agents):
        for operation in operations:
            line = talking.Line(where, "one", way)
            with suppress(Exception):
                found.append(f"{operation} {await line.call(operation)}")
            await line.close()
    return found


@SLOW
def test_no_secret_is_in_what_dask_says(cluster: Cluster, target: Target, tmp_path: Path) -> None:
    """Of a load with one, of a broken request with one, and of an agent that dies."""
    address, way = cluster.address, talking.security("tls", cluster.keys)
    command = begun(cluster, target, "-H", f"Authorization: Bearer {SECRET}")
    wait_until(lambda: target.many > RATE // 2, PATIENCE_S)

    async def broken() -> str:
        (where, *_) = await talking.workers(talking.Address.read(address), way)
        line = talking.Line(where, "one", way)
        try:
            await line.call("velodrome_prepare", load="odd", spec=f"{{{SECRET}", body=b"", expected=None)
        except Exception as error:
            return str(error)
        finally:
            await line.close()
        return ""

    with enter(cluster.network.hosts[0].namespace):
        asyncio.run(broken())
        found = asyncio.run(_everything(address, way))
    assert len(found) > 8, "some of it is answered"
    assert any(text.startswith(("get_cluster_state", "dump_state")) for text in found)
    assert not [text[:200] for text in found if SECRET in text]
    os.kill(cluster.agents["host-3"].pid, signal.SIGKILL)
    code, document, error = result(command)
    assert code == 3
    assert SECRET not in json.dumps(document) + error
    target.taken(tmp_path)
    processes = [*cluster.agents.values(), cluster.coordinator]
    for process in processes:
        process.send_signal(signal.SIGINT)
    for process in processes:
        assert SECRET not in "".join(process.communicate(timeout=20))
    cluster.agents.clear()

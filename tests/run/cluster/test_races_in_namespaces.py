"""A race over machines, in network namespaces as hosts: one serves, two load it, and one has the third party."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from subprocess import Popen
from typing import Any

import psutil
import pytest
from tests.run.cluster import hosts
from tests.run.cluster.hosts import Host, Network
from tests.waiting import wait_until

from velodrome.model.measurement import FlagKind, Measurement
from velodrome.run.cluster import keys
from velodrome.run.link import enter
from velodrome.run.racing import store

pytestmark = hosts.needed

COMMAND, SERVER, LOADS, THIRD = 0, 1, (2, 3), 4
AGENT = """
import asyncio, sys
from pathlib import Path
from velodrome.run.cluster import agent, talking
address, name, host, folder, allow, roles, cpu = sys.argv[1:]
policy = agent.Policy(name, (roles,), (int(cpu),), tuple(filter(None, (allow,))))
asyncio.run(agent.serve(address, policy, talking.security("tls", Path(folder)), host=host,
                        on_ready=lambda _: print("here", flush=True)))
"""
"""An agent of its own: one that root starts would serve as another user."""
STUDY = """
title = "A race over machines"
blocks = {blocks}
contestants = ["socketserver-single", "asyncio-streams"]
[[questions]]
name = "calling"
loads = [{{rate = 100, connections = 40, duration = "{seconds}s", warmup = "0.3s"}}]
[questions.recipe]
about = "calls a third party"
steps = [{{do = "call", latency_ms = 5}}, {{do = "body", size = 64}}]
"""


class Placed:
    """Agents with the roles of such a race, on their hosts."""

    def __init__(self, network: Network, address: str, folder: Path) -> None:
        self.network, self.address, self.folder = network, address, folder
        self.agents: dict[str, Popen[str]] = {}

    def start(self, number: int, role: str, cpu: int, allow: str = "") -> None:
        """Start an agent on a host."""
        host, name = self.network.hosts[number], f"host-{number}"
        words = (self.address, name, host.address, str(self.folder), allow, role, str(cpu))
        self.agents[name] = host.start(hosts.VELODROME[0], "-c", AGENT, *words)
        hosts.first_line(self.agents[name])

    def command(self, *words: str, lock: Path) -> "Popen[str]":
        """Start a command of velodrome on the first host."""
        return self.network.hosts[COMMAND].start(
            *hosts.VELODROME,
            *words,
            *("--agents", self.address, "--keys", str(self.folder)),
            env={"VELODROME_LOCK": str(lock)},
        )


@contextmanager
def placed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, allowed: bool = True, by_roles: bool = True
) -> Iterator[Placed]:
    """Have hosts, a coordinator on the first, and agents on the others; not by roles, each may do everything."""
    monkeypatch.setenv("VELODROME_LOCK", str(tmp_path / "measuring.lock"))
    first, last = 0, max(os.sched_getaffinity(0))
    folder = keys.make(tmp_path / "keys").folder
    with ExitStack() as stack:
        network = stack.enter_context(hosts.network(5))
        cluster = stack.enter_context(network.cluster(folder, (), ""))
        found = Placed(network, cluster.address, folder)
        try:
            found.start(SERVER, "server" if by_roles else "load", first)
            for number in LOADS:
                found.start(number, "load", last, network.hosts[SERVER].address if allowed else "")
            found.start(THIRD, "third-party" if by_roles else "load", last)
            yield found
        finally:
            for process in found.agents.values():
                hosts.ended(process)


class Watched:
    """Sees, while it runs, who serves on a host and from where connections come."""

    def __init__(self, host: Host) -> None:
        self.host, self.over = host, threading.Event()
        self.servers: set[str] = set()
        self.origins: set[str] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Watched":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._thread.join()

    def _run(self) -> None:
        with enter(self.host.namespace):
            own, known = os.readlink("/proc/thread-self/ns/net"), self._listening(_rows())
            while not self.over.wait(0.1):
                for pid in psutil.pids():
                    with suppress(OSError, psutil.Error):
                        if os.readlink(f"/proc/{pid}/ns/net") == own:
                            line = " ".join(psutil.Process(pid).cmdline())
                            self.servers |= {line} if "velodrome.guest" in line else set()
                rows = _rows()
                ports = self._listening(rows) - known
                self.origins |= {
                    _ip(row[2].split(":")[0])
                    for row in rows
                    if row[3] == ESTABLISHED and row[1].split(":")[1] in ports
                }

    def _listening(self, rows: Sequence[Sequence[str]]) -> set[str]:
        """Return ports that are listened on at the host's address."""
        places = [row[1].split(":") for row in rows if row[3] == LISTENING]
        return {port for address, port in places if _ip(address) == self.host.address}


ESTABLISHED, LISTENING = "01", "0A"


def _rows() -> list[list[str]]:
    """Return the sockets of the network that this thread is in."""
    return [line.split() for line in Path("/proc/thread-self/net/tcp").read_text().splitlines()[1:]]


def _ip(text: str) -> str:
    return ".".join(str(byte) for byte in reversed(bytes.fromhex(text)))


def study(tmp_path: Path, seconds: float = 1.0, blocks: int = 2) -> str:
    file = tmp_path / "machines.toml"
    file.write_text(STUDY.format(seconds=seconds, blocks=blocks))
    return str(file)


def over(process: "Popen[str]", limit_s: float = 90.0) -> tuple[int, str, str]:
    out, error = process.communicate(timeout=limit_s)
    return process.returncode, out, error


def measured(out: Path) -> Sequence[Measurement]:
    trials = store.read(out).trials
    assert all(isinstance(trial, Measurement) for trial in trials), trials
    return [trial for trial in trials if isinstance(trial, Measurement)]


@pytest.mark.exhaustive
def test_a_server_on_one_host_is_raced_from_two_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with placed(tmp_path, monkeypatch) as cluster:
        before = {process.pid for process in hosts.marked()}
        with Watched(cluster.network.hosts[SERVER]) as watched:
            code, sentence, error = over(
                cluster.command("run", study(tmp_path), "--out", str(out), lock=tmp_path / "measuring.lock")
            )
        assert code in (0, 4), (sentence, error)
        wait_until(lambda: {process.pid for process in hosts.marked()} <= before, hosts.PATIENCE_S)
        trials = measured(out)
        assert len(trials) == 4
        for trial in trials:
            loaders: Mapping[str, Any] = {loader.name: loader for loader in trial.load.loaders}
            assert sorted(loaders) == ["host-2", "host-3"]
            for loader in loaders.values():
                assert loader.round_trip_ms > 0
                assert loader.requests == trial.load.requests / 2 == 50
            assert trial.load.ok == trial.load.requests
            assert trial.placement.apart
            assert trial.placement.server_cpus == (0,)
            assert f"{cluster.network.hosts[SERVER].address}" in " ".join(trial.command)
            assert trial.upstream is not None
            assert (trial.upstream.agent, trial.upstream.requests > 50) == ("host-4", True)
        assert watched.servers
        assert watched.origins >= {cluster.network.hosts[number].address for number in LOADS}
        assert watched.origins <= {cluster.network.hosts[number].address for number in (SERVER, *LOADS)}
        assert "host-2" in sentence
        assert "host-4" in sentence


@pytest.mark.exhaustive
def test_a_loading_host_that_dies_spoils_its_trial_and_resume_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, lock = tmp_path / "run", tmp_path / "measuring.lock"
    with placed(tmp_path, monkeypatch) as cluster:
        before = {process.pid for process in hosts.marked()}
        command = in_a_load(cluster, tmp_path, out)
        cluster.agents["host-3"].kill()
        code, sentence, error = over(command)
        assert code == 3, (sentence, error)
        assert "host-3" in error
        assert "--resume" in error
        spoilt = [measurement for measurement in measured(out) if FlagKind.AGENT_LOST in measurement.doubts]
        assert [
            loader.name for measurement in spoilt for loader in measurement.load.loaders if loader.lost
        ] == ["host-3"]
        wait_until(lambda: {process.pid for process in hosts.marked()} <= before, hosts.PATIENCE_S)
        cluster.start(3, "load", max(os.sched_getaffinity(0)), cluster.network.hosts[SERVER].address)
        again = cluster.command("run", study(tmp_path, 3.0), "--out", str(out), "--redo", lock=lock)
        code, sentence, error = over(again)
        assert code in (0, 4), (sentence, error)
        whole = measured(out)
        assert len(whole) == 4
        for measurement in whole:  # what else runs on this machine may spoil it still
            assert FlagKind.AGENT_LOST not in measurement.doubts, measurement.flags
            assert [(loader.name, loader.lost) for loader in measurement.load.loaders] == [
                ("host-2", ""),
                ("host-3", ""),
            ]
            assert measurement.load.requests == 300


def _line(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return []


@pytest.mark.exhaustive
def test_a_load_that_an_agent_does_not_allow_is_refused_with_the_address_before_anything_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with placed(tmp_path, monkeypatch, allowed=False) as cluster:
        command = cluster.command(
            "run", study(tmp_path), "--out", str(tmp_path / "run"), lock=tmp_path / "lock"
        )
        code, _, error = over(command)
        assert code == 2
        assert "host-2" in error
        assert f"--allow-target {cluster.network.hosts[SERVER].address}" in error
        assert not (tmp_path / "run").exists()


@pytest.mark.exhaustive
def test_hosts_that_the_command_line_names_do_what_it_says_whatever_else_they_may_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with placed(tmp_path, monkeypatch, by_roles=False) as cluster:
        third = cluster.network.hosts[THIRD].address
        command = cluster.command(
            *("run", study(tmp_path, blocks=1), "--out", str(out), "--server-on", "host-1"),
            *("--load-from", "host-2,host-3", "--third-party-on", third),
            lock=tmp_path / "measuring.lock",
        )
        code, sentence, error = over(command)
    assert code in (0, 4), (sentence, error)
    for measurement in measured(out):
        assert [loader.name for loader in measurement.load.loaders] == ["host-2", "host-3"]
        assert measurement.upstream is not None
        assert measurement.upstream.agent == "host-4"
        assert measurement.machine is not None
        assert measurement.load.ok == measurement.load.requests == 100


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [SERVER, LOADS[1]])
def test_a_cable_that_is_pulled_for_long_spoils_the_trial_and_the_command_says_whose(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with placed(tmp_path, monkeypatch) as cluster:
        before = {process.pid for process in hosts.marked()}
        command = in_a_load(cluster, tmp_path, out)
        cluster.network.hosts[number].pull()
        code, sentence, error = over(command)
        assert code == 3, (sentence, error)
        assert f"host-{number}" in error
        assert "--resume" in error
        # What the trial before the cut gave is kept, and nothing of a cut load counts.
        assert all(measurement.load.requests == 300 for measurement in measured(out) if measurement.valid)
        wait_until(lambda: {process.pid for process in hosts.marked()} <= before, hosts.PATIENCE_S)


@pytest.mark.exhaustive
def test_ctrl_c_ends_what_runs_on_every_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"
    with placed(tmp_path, monkeypatch) as cluster:
        before = {process.pid for process in hosts.marked()}
        command = in_a_load(cluster, tmp_path, out)
        command.send_signal(signal.SIGINT)
        code, sentence, error = over(command, 20.0)
        assert code == 130, (sentence, error)
        assert "--resume" in error
        wait_until(lambda: {process.pid for process in hosts.marked()} <= before, hosts.PATIENCE_S)


def in_a_load(cluster: Placed, tmp_path: Path, out: Path) -> "Popen[str]":
    """Start a race, and return its command once the second trial is loaded."""
    lock = tmp_path / "measuring.lock"
    command = cluster.command("run", study(tmp_path, 3.0), "--out", str(out), lock=lock)
    file = out / store.NAME
    wait_until(lambda: file.exists() and len(file.read_bytes().splitlines()) == 2, hosts.PATIENCE_S)
    loading = psutil.Process(cluster.agents["host-3"].pid)
    wait_until(
        lambda: any("engine_process" in " ".join(_line(process)) for process in loading.children()),
        hosts.PATIENCE_S,
    )
    time.sleep(1.5)  # into the load: it has a second of getting ready, and three of measuring
    return command

"""Agents by SSH: started on each host, ended with the connection, and let in by keys and known hosts alone."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
from tests.run.cluster import hosts
from tests.run.cluster.counting import counting
from tests.run.cluster.posing import SOON_S, list_agents
from tests.run.cluster.sshing import Sshd, key, needs_sshd, sshd
from tests.waiting import wait_until

from velodrome.model.errors import AgentLostError, UsageError
from velodrome.run.cluster import ssh
from velodrome.run.engine import LoadSpec
from velodrome.run.link import enter
from velodrome.usecases import cluster_load
from velodrome.usecases.load import Work

HOST = "127.0.0.1"
COMMAND = [sys.executable, "-m", "velodrome", "cluster", "start"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    needs_sshd()
    with sshd(tmp_path_factory.mktemp("ssh") / "sshd") as found:
        yield found


@contextmanager
def started(server: Sshd, keys: Path, *more: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Start two agents on the host of the server, and end what is left of them."""
    words = [
        *COMMAND,
        "--hosts",
        f"{HOST},{HOST}",
        "--port",
        "0",
        "--keys",
        str(keys),
        *server.options,
        *more,
    ]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("tls://"), process.communicate()[1]
        yield process, address
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_agents_are_started_on_hosts_and_ctrl_c_ends_all(server: Sshd, tmp_path: Path) -> None:
    """With certificates that are made where there are none, and that lie on no command line."""
    keys = tmp_path / "keys"
    with counting() as counted, started(server, keys, "--allow-target", "192.0.2.7") as (process, address):
        rows = list_agents(address, keys)
        assert [(row["name"], row["allow_target"]) for row in rows] == [
            (HOST, ["192.0.2.7"]),
            (f"{HOST}-2", ["192.0.2.7"]),
        ]
        assert all(row["address"].startswith("tls://") for row in rows)
        spec = LoadSpec(url=counted.url, requests=40, connections=4)
        document = cluster_load.load(Work(spec, agents=address, keys=str(keys)), lambda _: True)
        assert document["ok"] == len(counted.paths) == 40
        begun = [psutil.Process(row["pid"]) for row in rows]
        assert not any("PRIVATE KEY" in " ".join(agent.cmdline()) for agent in begun)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
        assert process.returncode == 0, error
        wait_until(lambda: not any(agent.is_running() for agent in begun), SOON_S)
    assert {file.stat().st_mode & 0o777 for file in keys.iterdir()} == {0o600}


@pytest.mark.exhaustive
def test_agents_end_when_whoever_started_them_is_killed(server: Sshd, tmp_path: Path) -> None:
    with started(server, tmp_path / "keys") as (process, address):
        begun = [psutil.Process(row["pid"]) for row in list_agents(address, tmp_path / "keys")]
        process.kill()
        wait_until(lambda: not any(agent.is_running() for agent in begun), SOON_S)


@pytest.mark.exhaustive
def test_an_agent_that_ends_is_reported_and_the_others_stay(server: Sshd, tmp_path: Path) -> None:
    with started(server, tmp_path / "keys") as (process, address):
        rows = list_agents(address, tmp_path / "keys")
        os.kill(rows[0]["pid"], signal.SIGKILL)
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert next(line for line in lines if "ended" in line).startswith(f"the agent on {HOST}")
        assert [row["name"] for row in list_agents(address, tmp_path / "keys")] == [f"{HOST}-2"]


@pytest.mark.exhaustive
def test_a_coordinator_that_ends_takes_its_agents_with_it_and_is_reported(
    server: Sshd, tmp_path: Path
) -> None:
    with started(server, tmp_path / "keys") as (process, address):
        begun = [psutil.Process(row["pid"]) for row in list_agents(address, tmp_path / "keys")]
        port = int(address.rpartition(":")[2])
        (scheduler,) = {
            connection.pid
            for connection in psutil.net_connections("tcp")
            if connection.status == "LISTEN" and getattr(connection.laddr, "port", 0) == port
        }
        assert scheduler is not None
        os.kill(scheduler, signal.SIGKILL)
        _, error = process.communicate(timeout=30)
        assert process.returncode == 3
        assert address in error
        assert "velodrome cluster start" in error
        wait_until(lambda: not any(agent.is_running() for agent in begun), SOON_S)


@pytest.mark.exhaustive
@hosts.needed
def test_three_hosts_and_one_whose_network_is_cut(tmp_path: Path) -> None:
    """Each in a network namespace of its own, as whoever types the command; the load goes to another."""
    needs_sshd()
    with ExitStack() as stack:
        here, *three, target = stack.enter_context(hosts.network(5)).hosts
        servers = [stack.enter_context(sshd(tmp_path / host.address, host)) for host in three]
        for server in servers[1:]:  # one key opens all
            (server.folder / "id.pub").write_text((servers[0].folder / "id.pub").read_text())
        known = tmp_path / "known"
        known.write_text("".join((server.folder / "known").read_text() for server in servers))
        words = ["--ssh-key", str(servers[0].folder / "id"), "--ssh-option", f"UserKnownHostsFile={known}"]
        named = ",".join(f"{host.address}:{server.port}" for host, server in zip(three, servers, strict=True))
        keys = tmp_path / "keys"
        process = here.start(
            *COMMAND, "--hosts", named, *words, "--keys", str(keys), "--allow-target", target.address
        )
        stack.callback(hosts.ended, process)
        address = hosts.first_line(process)
        assert address == f"tls://{three[0].address}:8786"
        with enter(here.namespace):
            found = cluster_load.overview(address, keys)
        names = [host.address for host in three]
        assert [row["name"] for row in found["agents"]] == names
        assert {row["policy_by"] for row in found["agents"]} == {"root"}
        assert len({row["machine"] for row in found["agents"]}) == 3
        assert len(found["between"]) == 6
        assert all(pair["round_trip_ms"] for pair in found["between"])
        spec = LoadSpec(
            url="", rate=100.0, duration_s=2.0, connections=12, allow_target=(target.address,), template=True
        )
        with hosts.Network([target]).target(0) as noting, enter(here.namespace):
            work = Work(spec.changed(url=f"{noting.url}/{{{{n}}}}"), agents=address, keys=str(keys))
            document = cluster_load.load(work, lambda _: True)
        assert document["requests"] == document["ok"] == 200
        assert sorted(row["requests"] for row in document["agents"]) == [66, 67, 67]
        lost = [psutil.Process(row["pid"]) for row in found["agents"] if row["name"] == names[2]]
        lost += lost[0].parents()[:1]
        three[2].pull()
        wait_until(lambda: not any(agent.is_running() for agent in lost), SOON_S)
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert names[2] in next(line for line in lines if "has ended" in line)
        with enter(here.namespace):
            wait_until(lambda: left(address, keys) == names[:2], SOON_S)


def left(address: str, keys: Path) -> list[str]:
    """Return which agents are there; none while one that is gone is known still."""
    try:
        return [row["name"] for row in list_agents(address, keys)]
    except AgentLostError:
        return []


Change = Callable[[Sshd, Path], list[str]]


def strange_host_key(server: Sshd, folder: Path) -> list[str]:
    other = key(folder, "other")
    (folder / "known").write_text(f"[{HOST}]:{server.port} {other}\n")
    return [*server.options[:-2], "--ssh-option", f"UserKnownHostsFile={folder / 'known'}"]


def unknown_host(server: Sshd, folder: Path) -> list[str]:
    (folder / "known").write_text("")
    return [*server.options[:-2], "--ssh-option", f"UserKnownHostsFile={folder / 'known'}"]


def no_check_of_hosts(server: Sshd, folder: Path) -> list[str]:
    return [*server.options[:-2], "--ssh-option", "UserKnownHostsFile=none"]


def strange_user_key(server: Sshd, folder: Path) -> list[str]:
    key(folder, "mine")
    return ["--ssh-key", str(folder / "mine"), *server.options[2:]]


def no_server(server: Sshd, folder: Path) -> list[str]:
    return [*server.options[:3], "Port=1", *server.options[4:]]


def no_velodrome(server: Sshd, folder: Path) -> list[str]:
    return [*server.options, "--remote-python", "/usr/bin/false"]


def port_in_use(server: Sshd, folder: Path) -> list[str]:
    return [*server.options, "--port", str(server.port)]


def too_few_cpus(server: Sshd, folder: Path) -> list[str]:
    return [*server.options, "--cpus", "4000"]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (strange_host_key, ["known hosts", "ssh-keygen -R"]),
        (unknown_host, ["known hosts", f"ssh {HOST}"]),
        (no_check_of_hosts, ["UserKnownHostsFile"]),
        (strange_user_key, ["--ssh-key"]),
        (no_server, ["nothing answers", f"ssh {HOST}"]),
        (no_velodrome, ["exit 1", "--remote-python"]),
        (port_in_use, ["ddress already in use", "--port"]),
        (too_few_cpus, ["CPU 4000"]),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_cure(
    server: Sshd, tmp_path: Path, change: Change, words: list[str]
) -> None:
    options = ["--hosts", HOST, "--port", "0", "--keys", str(tmp_path / "keys"), *change(server, tmp_path)]
    done = subprocess.run(
        [*COMMAND, *options], capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path
    )
    assert done.returncode in (2, 3), done.stderr
    assert done.stdout == ""
    assert HOST in done.stderr
    assert all(word in done.stderr for word in words), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.unit
def test_hosts_are_read_as_ssh_names_them() -> None:
    assert ssh.Host.read("bench@10.0.0.1:2222") == ssh.Host("10.0.0.1", "bench", 2222)
    assert ssh.Host.read("[2001:db8::1]:22") == ssh.Host("2001:db8::1", "", 22)
    assert ssh.Host.read("a.example") == ssh.Host("a.example")
    for text in ("", "-oProxyCommand=x", "a:b", "a/b", "user@"):
        with pytest.raises(UsageError):
            ssh.Host.read(text)


@pytest.mark.unit
@pytest.mark.parametrize("option", ["Port", "StrictHostKeyChecking=no", "Port=1\nProxyCommand=x"])
def test_options_that_would_not_count_are_refused(option: str) -> None:
    with pytest.raises(UsageError, match="--ssh-option"):
        ssh.Reach(options=(option,))

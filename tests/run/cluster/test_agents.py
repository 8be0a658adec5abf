"""What agents are and may: listed with what lies between them, and held to it against code that is sent to them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import cloudpickle
import jsonschema
import psutil
import pytest
from distributed import Client
from tests.run.cluster.counting import counting
from tests.run.cluster.posing import SOON_S, list_agents
from tests.waiting import wait_until

from velodrome.model.errors import (
    AgentRefusedError,
    AgentStartError,
    ClusterKeysError,
    NoAgentsError,
    UsageError,
)
from velodrome.model.measurement import Measurement
from velodrome.report import listing
from velodrome.run import account
from velodrome.run.cluster import coordinator, holding, keys
from velodrome.run.cluster.holding import Policy
from velodrome.run.engine import LoadSpec
from velodrome.run.racing import store
from velodrome.usecases import cluster_load
from velodrome.usecases.load import Work

HOST = "127.0.0.1"
ELSEWHERE = "192.0.2.1"
SCHEMA = Path(__file__).parents[3] / "docs/agents.schema.json"
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: run the tests with sudo")


def go_on(_event: object) -> bool:
    return True


@contextmanager
def agent(address: str, *options: str, uid: int | None = None) -> Iterator["subprocess.Popen[str]"]:
    """Start an agent as its user does, who is root where these tests are, or another."""
    words = [sys.executable, "-m", "velodrome", "agent", "--coordinator", address, *options]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, user=uid)
    try:
        assert process.stdout is not None
        assert process.stdout.readline(), process.communicate()[1]
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_agents_are_listed_with_what_lies_between_them() -> None:
    with coordinator.coordinating(HOST, 0, 2) as address:
        found = cluster_load.overview(address, transfers=True)
    jsonschema.validate(json.loads(listing.agents_document(found)), json.loads(SCHEMA.read_text()))
    pairs = {(pair["origin"], pair["target"]): pair for pair in found["between"]}
    assert set(pairs) == {("local-0", "local-1"), ("local-1", "local-0")}
    for pair in pairs.values():
        assert pair["error"] == ""
        assert 0 < pair["round_trip_ms"] < 1000
        assert pair["mbit_s"] > 1
    assert found["left_out"] == 0
    text = "\n".join(listing.agents_lines(found))
    assert all(f"{pair['round_trip_ms']:.3f}" in text for pair in pairs.values())


def test_a_load_takes_agents_with_that_role_alone() -> None:
    with (
        counting() as counted,
        coordinator.coordinating(HOST, 0, 1, policy={"roles": ["server", "third-party"]}) as address,
    ):
        work = Work(LoadSpec(url=counted.url, requests=4, connections=2), agents=address)
        with pytest.raises(NoAgentsError, match="local-0 with server,third-party"):
            cluster_load.load(work, go_on)
        with agent(address, "--name", "loads", "--roles", "load,server"):
            document = cluster_load.load(work, go_on)
    assert [row["name"] for row in document["agents"]] == ["loads"]
    assert len(counted.paths) == 4


def attack(what: str, holder: int, dask_worker: Any = None) -> str:
    """Return what came of it; runs on the agent, as code that somebody has sent there."""
    folder = f"/proc/{holder}"
    try:
        match what:
            case "signal":
                os.kill(holder, signal.SIGTERM)
            case "priority":
                os.sched_setaffinity(holder, {0})
            case "environment":
                Path(f"{folder}/environ").read_bytes()
            case "memory":
                Path(f"{folder}/mem").open("r+b").close()
            case "files":
                os.listdir(f"{folder}/fd")
            case "root":
                os.setuid(0)
            case "set-user-id programs":
                status = Path("/proc/self/status").read_text()
                return next(line for line in status.splitlines() if line.startswith("NoNewPrivs"))
            case "policy":
                from velodrome.run.cluster.holding import Policy as Wider  # noqa: PLC0415 - there

                dask_worker.policy = Wider("wider", allow_target=("192.0.2.1",))
                return str(dask_worker.policy.allow_target[0])
            case "engine":
                fields = json.loads(
                    LoadSpec(url="http://192.0.2.1/", requests=1, allow_target=("192.0.2.1",)).json()
                )
                with dask_worker.starter.start(fields, b"", None) as engine:
                    return str(engine.output.read().decode() or engine.last_lines())
            case "race":
                with suppress(AttributeError):
                    dask_worker.policy = holding.Policy(roles=("server",))
                with dask_worker.starter.race("blocks") as race:
                    return str(race.last_lines())
        return "done"
    except OSError as error:
        return type(error).__name__
    except AgentStartError as error:
        return str(error)


@NEEDS_ROOT
def test_code_that_is_sent_to_an_agent_of_root_cannot_widen_what_engines_load() -> None:
    with (
        counting() as counted,
        coordinator.coordinating(HOST, 0, 0) as address,
        agent(address, "--name", "held") as held,
    ):
        row = list_agents(address)[0]
        assert row["policy_by"] == "root"
        worker = psutil.Process(row["pid"])
        assert worker.uids().real >= account.UNUSED[0]
        assert psutil.Process(held.pid).uids().real == 0
        cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the worker does not see the tests
        with Client(address, set_as_default=False) as client:

            def attacked(what: str) -> str:
                return str(client.run(attack, what, held.pid)[row["address"]])

            refused = ("signal", "priority", "environment", "memory", "files", "root")
            assert {what: attacked(what) for what in refused} == dict.fromkeys(refused, "PermissionError")
            scheduler = client.run_on_scheduler(os.getuid)
            assert scheduler >= account.UNUSED[0], "code can be run there, too"
            assert attacked("set-user-id programs").split()[1] == "1"
            sentence = attacked("engine")
            assert sentence.startswith("error PermissionError"), sentence
            assert ELSEWHERE in sentence
            assert attacked("policy") == ELSEWHERE
        wanted = LoadSpec(url=f"http://{ELSEWHERE}/", requests=1, connections=1, allow_target=(ELSEWHERE,))
        with pytest.raises(AgentRefusedError, match=ELSEWHERE):  # by the engine: the agent itself says it may
            cluster_load.load(Work(wanted, agents=address), go_on)
        wait_until(lambda: not list_agents(address)[0]["busy"], SOON_S)
        allowed = LoadSpec(url=counted.url, requests=10, connections=2)
        assert cluster_load.load(Work(allowed, agents=address), go_on)["ok"] == 10
        assert held.poll() is None


RACE = """
title = "On an agent of root"
blocks = 1
contestants = ["socketserver-single", "uvicorn"]
[[questions]]
name = "users"
loads = [{connections = 2, duration = "0.4s", warmup = "0.1s"}]
[questions.recipe]
about = "answers at once"
steps = [{do = "body", size = 64}]
"""


@NEEDS_ROOT
def test_an_agent_of_root_runs_races_as_a_user_that_is_neither_root_nor_its_worker_nor_its_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if closed := account.unused_account().first_closed(os.path.realpath(sys.executable)):
        pytest.skip(f"needs a Python that every user may run, and {closed} is closed")
    monkeypatch.setenv("VELODROME_LOCK", str(tmp_path / "measuring.lock"))
    monkeypatch.setenv(account.SUDO, "65533")  # who called sudo is no user for code that is sent
    (tmp_path / "race.toml").write_text(RACE)
    words = ["run", str(tmp_path / "race.toml"), "--out", str(tmp_path / "out"), "--trust"]
    users: dict[int, set[str]] = {}
    with coordinator.coordinating(HOST, 0, 0) as address, agent(address, "--name", "held") as held:
        row = list_agents(address)[0]
        race = subprocess.Popen(
            [sys.executable, "-m", "velodrome", *words, "--agents", address],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        while race.poll() is None:
            for process in psutil.Process(held.pid).children(recursive=True):
                with suppress(psutil.Error):
                    users.setdefault(process.uids().real, set()).add(" ".join(process.cmdline()))
            time.sleep(0.02)
        shown = race.communicate()[0]
        wait_until(lambda: len(psutil.Process(held.pid).children(recursive=True)) == 1, SOON_S)  # its worker
        worker = psutil.Process(row["pid"]).uids().real
    assert 0 not in {uid for uid, lines in users.items() if any("uvicorn" in line for line in lines)}
    (races,) = {uid for uid, lines in users.items() if any("uvicorn --host" in line for line in lines)}
    assert races in account.UNUSED
    assert races != worker
    measured = [trial for trial in store.read(tmp_path / "out").trials if isinstance(trial, Measurement)]
    assert len(measured) == 2, shown


@NEEDS_ROOT
def test_code_that_is_sent_to_an_agent_of_root_cannot_have_it_run_what_its_roles_forbid() -> None:
    with coordinator.coordinating(HOST, 0, 0) as address, agent(address, "--roles", "third-party"):
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        with Client(address, set_as_default=False) as client:
            (message,) = client.run(attack, "race", 0).values()
    assert "--roles server" in message


def test_an_agent_of_an_ordinary_user_decides_for_itself() -> None:
    uid = None
    if os.geteuid() == 0:
        nobody = account.unused_account()
        if closed := nobody.first_closed(os.path.realpath(sys.executable)):
            pytest.skip(
                f"needs a Python that every user may run, and {closed} is closed: run the tests without sudo"
            )
        uid = nobody.uid
    with coordinator.coordinating(HOST, 0, 0) as address, agent(address, "--name", "plain", uid=uid):
        assert [row["policy_by"] for row in list_agents(address)] == ["itself"]
        wanted = LoadSpec(url=f"http://{ELSEWHERE}/", requests=1, connections=1, allow_target=(ELSEWHERE,))
        with pytest.raises(AgentRefusedError, match=ELSEWHERE):
            cluster_load.load(Work(wanted, agents=address), go_on)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--coordinator", "127.0.0.1:1"], ["127.0.0.1:1", "velodrome cluster start"]),
        (["--coordinator", "tcp://192.0.2.1"], ["192.0.2.1:8786", "--plain-tcp"]),
        (["--coordinator", "127.0.0.1", "--roles", "cook"], ["cook", "third-party"]),
        (["--coordinator", "127.0.0.1", "--cpus", "4000"], ["4000", "--cpus"]),
        (["--coordinator", "127.0.0.1", "--user", "no-such-user"], ["no-such-user"]),
        (["--coordinator", "tls://127.0.0.1", "--keys", "/nonexistent"], ["/nonexistent", "cluster keys"]),
    ],
)
def test_what_an_agent_cannot_be_started_with_is_one_sentence(options: list[str], words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "velodrome", "agent", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode in (2, 3)
    assert done.stdout == ""
    assert all(word in done.stderr for word in words), done.stderr
    assert "Traceback" not in done.stderr


@NEEDS_ROOT
@pytest.mark.exhaustive
def test_nothing_of_an_agent_of_root_outlives_any_of_its_processes() -> None:
    with counting() as counted, coordinator.coordinating(HOST, 0, 0) as address:
        for victim in ("root", "worker"):
            before = set(psutil.pids())
            with agent(address, "--name", victim) as held:
                worker = list_agents(address)[0]["pid"]
                load = [sys.executable, "-m", "velodrome", "load", counted.url, "-R", "50", "-z", "60s"]
                conductor = subprocess.Popen(
                    [*load, "--agents", address], stdout=subprocess.PIPE, stderr=subprocess.PIPE
                )
                came = len(counted.came)
                wait_until(lambda came=came: len(counted.came) > came + 20, SOON_S)  # type: ignore[misc]
                every = psutil.Process(held.pid).children(recursive=True)
                assert len(every) == 2, "a worker and an engine"
                os.kill(held.pid if victim == "root" else worker, signal.SIGKILL)
                conductor.communicate(timeout=60)
                wait_until(lambda every=every: not any(process.is_running() for process in every), SOON_S)  # type: ignore[misc]
                held.wait(timeout=30)
            assert conductor.returncode == 3
            wait_until(lambda address=address: not still(address), SOON_S)  # type: ignore[misc]
            assert before


def still(address: str) -> bool:
    """Whether an agent is known still."""
    try:
        return bool(list_agents(address))
    except Exception:  # it is known, and does not answer
        return True


def test_more_threads_than_cpus_are_refused_before_anything_is_sent() -> None:
    with counting() as counted, coordinator.coordinating(HOST, 0, 1) as address:
        many = LoadSpec(url=counted.url, requests=4000, connections=4000, threads=4000)
        with pytest.raises(AgentRefusedError, match="4000 threads"):
            cluster_load.load(Work(many, agents=address), go_on)
    assert counted.paths == []


def test_a_cluster_that_is_ended_while_it_starts_leaves_nothing_and_waits_for_nobody() -> None:
    command = [sys.executable, "-m", "velodrome", "cluster", "start", "--local", "2", "--port", "0"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(
            lambda: any("scheduler" in child.cmdline() for child in psutil.Process(started.pid).children()),
            SOON_S,
        )
        children = psutil.Process(started.pid).children()
        started.send_signal(signal.SIGTERM)
        address, error = started.communicate(timeout=10)
    finally:
        started.kill()
        started.wait()
    assert (started.returncode, address) == (130, "")
    assert "Traceback" not in error
    wait_until(lambda: not any(process.is_running() for process in children), SOON_S)


@pytest.mark.parametrize("victim", ["scheduler", pytest.param("agent", marks=pytest.mark.exhaustive)])
def test_what_dies_of_a_local_cluster_is_reported_and_nothing_outlives_its_coordinator(victim: str) -> None:
    command = [sys.executable, "-m", "velodrome", "cluster", "start", "--local", "2", "--port", "0"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert started.stdout is not None
        assert started.stderr is not None
        address = started.stdout.readline().strip()
        children = psutil.Process(started.pid).children()
        (first, *_) = [process for process in children if victim in process.cmdline()]
        first.kill()
        if victim == "agent":
            assert "local-" in started.stderr.readline()
            wait_until(
                lambda: [row["name"] for row in list_agents(address)] in (["local-0"], ["local-1"]),
                SOON_S,
            )
            psutil.Process(started.pid).send_signal(signal.SIGINT)
        _, error = started.communicate(timeout=30)
    finally:
        started.kill()
        started.wait()
    assert started.returncode == (3 if victim == "scheduler" else 0)
    if victim == "scheduler":
        assert address in error
        assert "velodrome cluster start" in error
        assert "Traceback" not in error
    wait_until(lambda: not any(process.is_running() for process in children), SOON_S)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("name", "words"), [("host.pem", "authority"), ("host.key", "key of"), ("ca.pem", "authority")]
)
def test_certificates_that_do_not_belong_together_are_refused(tmp_path: Path, name: str, words: str) -> None:
    ours, others = keys.make(tmp_path / "ours"), keys.make(tmp_path / "others")
    assert keys.find_keys(ours.folder) == ours
    (ours.folder / name).write_bytes((others.folder / name).read_bytes())
    with pytest.raises(ClusterKeysError, match=words):
        keys.find_keys(ours.folder)


@pytest.mark.unit
def test_a_policy_permits_no_more_than_it_states_and_no_cpus_that_are_not_there() -> None:
    policy = Policy(allow_target=("a", "b"))
    assert policy.permit({"allow_target": ["b", "c"]})["allow_target"] == ["b"]
    assert policy.permit({})["allow_target"] == []
    with pytest.raises(UsageError, match="4000"):
        Policy(cpus=(4000,)).check()
    assert holding.Policy.read({"roles": ["load"], "cpus": [1]}) == Policy(cpus=(1,))

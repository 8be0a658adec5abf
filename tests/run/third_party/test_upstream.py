"""The third party of the engine, started as a trial starts it."""

import http.client
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest
from tests.waiting import wait_until

from velodrome.model.errors import UpstreamError
from velodrome.run import third_party
from velodrome.run.supervision import python
from velodrome.run.third_party import Upstream


def get(third: Upstream, path: str = "/") -> tuple[int, bytes, float]:
    """Return status, body and seconds of one request."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", third.port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body, time.monotonic() - began


def test_it_answers_after_the_latency_it_was_given_and_not_before() -> None:
    with third_party.start(latency="30ms", body=100) as third:
        status, body, took_s = get(third)
        assert (status, len(body)) == (200, 100)
        assert 0.030 <= took_s < 5
        assert 0.060 <= get(third, "/?velodrome-latency=60ms")[2] < 5
        assert third.url == f"http://127.0.0.1:{third.port}"


def test_facts_are_those_of_the_span_alone() -> None:
    with third_party.start() as third:
        get(third)
        third.begin()
        for _ in range(3):
            get(third)
        facts = third.end()
        assert facts.requests == 3
        assert facts.cpu_s >= 0
        assert facts.late_p50_ms is not None
        assert facts.late_p99_ms is not None
        assert facts.late_p50_ms <= facts.late_p99_ms
        third.begin()
        assert third.end().requests == 0


def test_a_share_of_its_answers_may_be_errors() -> None:
    with third_party.start(errors=1.0) as third:
        assert get(third)[0] == 500


@pytest.mark.skipif(sys.platform != "linux", reason="no affinity on this system")
def test_it_runs_on_the_cpus_it_was_given() -> None:
    cpu = max(os.sched_getaffinity(0))
    with third_party.start(cpus=(cpu,)) as third:
        threads = Path(f"/proc/{third.pid}/task").iterdir()
        assert {frozenset(os.sched_getaffinity(int(thread.name))) for thread in threads} == {frozenset({cpu})}


def test_a_latency_that_makes_no_sense_is_reported_and_leaves_nothing_running() -> None:
    before = {child.pid for child in psutil.Process().children()}
    with pytest.raises(UpstreamError, match="soon"):
        third_party.start(latency="soon")
    assert {child.pid for child in psutil.Process().children()} <= before


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[python.Child]:
    """What is started in place of a third party: a process that closes its ears and lives on."""
    (tmp_path / "deaf.py").write_text(
        "import os, pathlib, time\nos.close(0)\npathlib.Path(__file__).with_name('closed').touch()\n"
        "time.sleep(1000)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    started: list[python.Child] = []

    def start(_module: str, *, cpus: Sequence[int]) -> python.Child:
        child = real(module="deaf", cpus=cpus)
        started.append(child)
        wait_until((tmp_path / "closed").exists, 20.0)
        return child

    real = python.start_own
    monkeypatch.setattr(python, "start_own", start)
    monkeypatch.setattr(python, "GRACE_S", 0.2)
    return started


def test_a_process_that_does_not_hear_what_to_do_is_reported_and_ended(children: list[python.Child]) -> None:
    with pytest.raises(UpstreamError, match="its process ended at once"):
        third_party.start()
    assert [child.process.poll() for child in children] == [-signal.SIGKILL]


def test_an_interruption_while_it_starts_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(child: python.Child, _patience_s: float) -> bytes:
        pids.append(child.pid)
        raise KeyboardInterrupt

    pids: list[int] = []
    monkeypatch.setattr(python.Child, "answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        third_party.start()
    assert [psutil.pid_exists(pid) for pid in pids] == [False]


def test_leaving_the_block_ends_its_process() -> None:
    with third_party.start() as third:
        pid = third.pid
        assert psutil.pid_exists(pid)
    assert not psutil.pid_exists(pid)


def test_a_third_party_that_died_is_an_error_and_no_silence() -> None:
    with third_party.start() as third:
        process = psutil.Process(third.pid)
        process.kill()
        psutil.wait_procs([process], timeout=5)
        with pytest.raises(UpstreamError, match="its process has ended"):
            third.begin()

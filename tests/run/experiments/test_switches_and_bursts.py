"""What switches cost, and what a burst meets, found on this machine."""

import socket
import sys
import threading

import pytest

from velodrome.guest import catalog
from velodrome.model.claim import Experiment, Finding, Setting
from velodrome.run.environments import guest_tree
from velodrome.run.experiments.backlog import burst
from velodrome.run.experiments.running import run_experiment
from velodrome.run.lab import Lab


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab(catalog.stacks(), guest_tree.export([]))


def found(lab: Lab, kind: str, **settings: Setting) -> Finding:
    finding = run_experiment(Experiment("one", kind, settings), lab)
    assert finding.failed == "", (finding.failed, finding.last_lines)
    assert finding.sentence
    return finding


def number(finding: Finding, fact: str) -> float:
    value = finding.facts[fact]
    assert isinstance(value, (int, float)), (fact, finding.facts)
    return value


def test_a_generator_is_cheaper_than_a_greenlet_and_that_than_a_thread(lab: Lab) -> None:
    finding = found(lab, "switch-cost", repeats=3)
    ns = {
        kind: number(finding, f"ns.{kind}")
        for kind in ("generator", "greenlet", "task-sleep", "task-crowd", "task-future", "thread-lock",
                     "thread-condition", "process-pipe")
    }  # fmt: skip
    assert 1 < ns["generator"] < ns["greenlet"] < ns["thread-lock"]
    assert ns["task-crowd"] < ns["task-sleep"]
    assert ns["process-pipe"] > 2 * ns["greenlet"]
    for kind, value in ns.items():
        assert number(finding, f"low_ns.{kind}") <= value <= number(finding, f"high_ns.{kind}")
        assert number(finding, f"times.{kind}") == pytest.approx(value / ns["generator"])
    assert finding.facts["interrupted.thread"] is True
    assert finding.facts["interrupted.task"] is False
    assert finding.facts["interrupted.generator"] is False


def test_what_an_environment_does_not_have_is_reported_as_missing(lab: Lab) -> None:
    finding = found(lab, "switch-cost", repeats=1, stack="io-generators")
    assert finding.facts["ns.greenlet"] is None
    assert finding.facts["times.greenlet"] is None


def test_a_burst_of_requests_that_are_larger_than_a_send_buffer_is_answered() -> None:
    size, count = 4_000_000, 4

    def serve(listener: socket.socket) -> None:
        for _ in range(count):
            with listener.accept()[0] as connection:
                left = size
                while left:
                    left -= len(connection.recv(min(left, 65_536)))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve, args=(listener,))
        serving.start()
        knocks = burst(listener.getsockname(), count, b"x" * size, 10.0)
        serving.join()
    assert [knock.outcome for knock in knocks] == ["answered"] * count


@pytest.mark.skipif(sys.platform != "linux", reason="the counters are Linux'")
def test_a_burst_overflows_a_short_queue_and_not_a_long_one(lab: Lab) -> None:
    finding = found(lab, "backlog", burst=80, bursts=1, patience_s=1.5)
    assert number(finding, "queue_limit.5") == 5
    assert number(finding, "overflows.5") > 0
    assert number(finding, "late.5") > 0
    assert number(finding, "queue_limit.1000") == 1000
    assert number(finding, "answered.1000") == 80
    assert number(finding, "reset.1000") + number(finding, "refused.1000") == 0
    assert number(finding, "late.1000") == 0


@pytest.mark.parametrize("value", ["many", "0"])
def test_a_length_that_is_none_is_refused_with_what_to_write(lab: Lab, value: str) -> None:
    finding = run_experiment(Experiment("one", "backlog", {"backlogs": (value,)}), lab)
    assert finding.failed == f'backlogs {value}: write lengths of the queue, such as ["5", "1000"]'

"""«Was it the generator or the server?», provoked: limits made on purpose, and what `velodrome load` says of them.

A pause of the machine makes a late generator, and then the generator is the right answer: hence a few attempts.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.limited import cpus, program, server

ONE = [sys.executable, "-m", "velodrome"]
pytestmark = [
    pytest.mark.measured,
    pytest.mark.skipif(
        sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
        reason="needs Linux and two CPUs, one for each side",
    ),
]


@contextmanager
def third_party(latency: str) -> Iterator[str]:
    with program("-m", "velodrome", "upstream", "--latency", latency, cpu=cpus()[0]) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip() + "/"


def limit(*words: str, but: str = "generator") -> dict[str, Any]:
    """The document of a load; of a few in which the limit was `but`, the last."""
    for _ in range(3):
        document = once(*words)
        if document["limit"]["at"] != but:
            break
    return document


def once(*words: str) -> dict[str, Any]:
    command = ["taskset", "-c", str(cpus()[1]), *ONE, "load", *words, "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def test_a_server_whose_thread_is_busy_is_the_limit() -> None:
    with server("cpu") as url:
        document = limit(url, "-c", "20", "-z", "1s")
    assert document["limit"]["at"] == "server", document["limit"]
    assert "its busiest thread had" in document["limit"]["sentence"]
    assert document["server"]["threads"] == 1


def test_a_server_with_two_slots_is_the_limit_though_it_is_idle() -> None:
    with server("slots") as url:
        document = limit(url, "-c", "20", "-z", "1s")
    assert document["limit"]["at"] == "server", document["limit"]
    assert "its workers are too few, or wait" in document["limit"]["sentence"]


def test_connections_are_the_limit_of_a_server_that_only_waits() -> None:
    with third_party("20ms") as url:
        document = limit(url, "-c", "4", "-z", "1s")
    assert document["limit"]["at"] == "connections", document["limit"]
    assert "4 at once ÷ 2" in document["limit"]["sentence"]


def test_an_open_loop_that_gets_what_it_asks_for_has_no_limit() -> None:
    with third_party("1ms") as url:
        document = limit(url, "-R", "200", "-z", "1s")
    if "for a CPU that others had" in document["limit"]["sentence"]:
        pytest.skip(document["limit"]["sentence"])
    assert document["limit"]["at"] == "schedule", document["limit"]


def test_a_thread_that_may_waits_awake_for_what_is_about_to_be_due_and_says_so() -> None:
    with third_party("1ms") as url:
        document = once(url, "-R", "200", "-z", "1s")
    if document["generator"]["priority"] != "real-time":
        assert document["generator"]["awake_s"] == 0
        return
    assert 0 < document["generator"]["awake_s"] < 1 / 20
    assert " % awake for what was about to be due, " in document["limit"]["facts"]


def test_too_few_connections_for_a_rate_are_the_limit() -> None:
    with third_party("20ms") as url:
        document = limit(url, "-R", "400", "-c", "2", "-z", "1s", "--drain", "100ms")
    assert document["limit"]["at"] == "connections", document["limit"]
    assert "Little's law" in document["limit"]["sentence"]


def test_a_server_that_cannot_give_the_rate_is_the_limit() -> None:
    with server("cpu") as url:
        document = limit(url, "-R", "8000", "-z", "1s", "--drain", "100ms")
    assert document["limit"]["at"] == "server", document["limit"]
    assert "8 000/s" in document["limit"]["sentence"]


def test_a_generator_that_shares_its_cpu_is_the_limit() -> None:
    rival = "while True: pass"
    with third_party("0ms") as url, program("-c", rival, cpu=cpus()[1]), program("-c", rival, cpu=cpus()[1]):
        document = once(url, "-c", "50", "-z", "1s")
    assert document["limit"]["at"] == "generator", document["limit"]
    assert document["generator"]["run_queue_s"] > 0.2


def test_what_a_server_does_not_take_stays_in_our_sockets(tmp_path: Path) -> None:
    body = tmp_path / "body"
    body.write_bytes(b"x" * 20_000_000)
    with server("deaf") as url, third_party("0ms"):
        document = limit(url, "-X", "POST", "--body", f"@{body}", "-c", "2", "-z", "1s", "--drain", "100ms")
    assert document["sockets"]["with_unsent"] > 0
    assert document["sockets"]["unsent_bytes_max"] > 0

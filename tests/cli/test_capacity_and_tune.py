"""`velodrome capacity` and `velodrome tune`: what is refused at once, and one short search of each on real servers."""

import json
import os
import sys
from typing import Any

import pytest
from tests.cli.running import Ended, velodrome
from tests.run.link.possible import NEEDS_LINK

measured = pytest.mark.measured
two_cpus = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
    reason="needs Linux and two CPUs, one for each side",
)


def run(*words: str) -> Ended:
    return velodrome(None, *words)


def document(ended: Ended) -> dict[str, Any]:
    assert ended.stdout, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("capacity", "--stack", "uvicorn"), "give an app (shop.wsgi:application), or with --recipe"),
        (("capacity", "--stack", "uvicornn", "--recipe", "hello"), "Nearest: uvicorn"),
        (("capacity", "--stack", "uvicorn", "--recipe", "hello", "--threads", "4"), "setting of uvicorn"),
        (("capacity", "--stack", "uvicorn", "--recipe", "hello", "--slo", "p98x < 1s"), "'p98x'"),
        (
            ("capacity", "--stack", "uvicorn", "--recipe", "hello", "--closed", "--slo", "p99 < 1s"),
            "--closed shows throughput alone",
        ),
        (
            ("capacity", "--stack", "uvicorn", "--recipe", "hello", "--workers", "0"),
            "workers 0: give a whole",
        ),
        (
            ("capacity", "--stack", "uvicorn", "--recipe", "hello", "--knob", "loop"),
            "'loop' is not a setting",
        ),
        (
            (*("capacity", "--stack", "uvicorn", "--recipe", "hello", "--setup", "x", "-H", "A: b"),),
            "--header, --setup ",
        ),
        (
            ("capacity", "--stack", "uvicorn", "--recipe", "hello", "--link", "rtt=7"),
            "write 160ms, 1.5ms or 1s",
        ),
        (("tune", "--recipe", "hello", "--request", "GET /"), "--request "),
        (("tune", "--recipe", "hello", "--stack", "./no.py"), "the stack './no.py' could not be loaded"),
        (("tune", "--recipe", "hello", "--for", "memory"), "--rate 300"),
        (("tune", "--recipe", "hello", "--memory", "lots"), "write 512MB, 1GB, 512m or 1g"),
        (("tune", "--recipe", "chat-echo", "--stack", "waitress"), "none of these stacks can serve"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(words: tuple[str, ...], said: str) -> None:
    ended = run(*words)
    assert ended.returncode == 2, ended.stderr
    assert said in ended.stderr


@pytest.mark.exhaustive
@measured
@NEEDS_LINK
@two_cpus
def test_over_a_link_nothing_is_quicker_than_its_round_trip() -> None:
    ended = run(
        *("capacity", "--recipe", "hello", "--stack", "socketserver-threading", "--cpus", "1"),
        *("--link", "rtt=80ms", "--slo", "p50 < 40ms", "-z", "0.5s", "--wait", "--json"),
    )
    found = document(ended)
    assert ended.returncode == 1, ended.stderr
    assert found["ending"] == "never holds"
    assert "over a link of 80 ms" in found["of"]


@pytest.mark.exhaustive
@measured
@two_cpus
def test_an_slo_that_nothing_meets_never_holds_and_ends_with_1() -> None:
    ended = run(
        *("capacity", "--recipe", "sleep-50ms", "--stack", "socketserver-threading", "--cpus", "1"),
        *("--slo", "p50 < 20ms", "-z", "0.5s", "--wait", "--json"),
    )
    found = document(ended)
    assert found["schema"] == "velodrome/capacity/1"
    if "Other programs" in found["because"]:
        pytest.skip(found["because"])
    assert ended.returncode == 1, ended.stderr
    assert found["ending"] == "never holds"
    assert "p50 was 5" in found["sentence"]


@pytest.mark.exhaustive
@measured
@two_cpus
def test_the_knee_of_a_server_that_serves_one_at_a_time_is_two_connections_at_most() -> None:
    ended = run(
        *("capacity", "--recipe", "sleep-50ms", "--stack", "socketserver-single", "--cpus", "1"),
        *("--closed", "-z", "0.5s", "--wait", "--json"),
    )
    found = document(ended)
    assert found["sought"] == "connections"
    assert found["connections"]["mid"] <= 2, found["sentence"]
    assert 15 < found["rps"]["mid"] < 21


@pytest.mark.exhaustive
@measured
@two_cpus
def test_of_two_servers_the_one_that_waits_for_many_at_once_is_recommended() -> None:
    ended = run(
        *("tune", "--recipe", "sleep-50ms", "--stack", "socketserver-single"),
        *("--stack", "socketserver-threading", "--slo", "p95 < 200ms", "--cpus", "1"),
        *("--budget", "45s", "--wait", "--json"),
    )
    found = document(ended)
    assert found["schema"] == "velodrome/tune/1"
    assert found["recommended"]["stack"] == "socketserver-threading", found["sentence"]
    assert found["proof"]["throughput_rps"] > 50
    fates = {one["stack"]: one["fate"] for one in found["candidates"]}
    assert fates["socketserver-single"] in {"by arithmetic", "behind", "runner-up"}

"""`velodrome capacity` and `velodrome tune`: what is refused at once, and one short search of each on real servers."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import Ended, velodrome, within
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
    ("words", "sentence"),
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
        (
            ("capacity", "--stack", "uvicorn", "--recipe", "hello", "--closed", "--budget", "1m"),
            "--closed has no budget",
        ),
        (
            ("capacity", "--stack", "uvicorn", "--recipe", "hello", "--out", "a", "--resume", "b"),
            "--resume names the folder",
        ),
        (("tune", "--recipe", "hello", "--request", "GET /"), "--request "),
        (("tune", "--recipe", "hello", "--stack", "./no.py"), "the stack './no.py' could not be loaded"),
        (("tune", "--recipe", "hello", "--for", "memory"), "--rate 300"),
        (("tune", "--recipe", "hello", "--memory", "lots"), "write 512MB, 1GB, 512m or 1g"),
        (("tune", "--recipe", "chat-echo", "--stack", "waitress"), "none of these stacks can serve"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(
    words: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    code, written = within(tmp_path, *words)
    assert code == 2, written
    assert sentence in written


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
    fates = {candidate["stack"]: candidate["fate"] for candidate in found["candidates"]}
    assert fates["socketserver-single"] in {"by arithmetic", "behind", "runner-up"}


KILLED_S = 60.0


@pytest.mark.exhaustive
@measured
@two_cpus
def test_a_search_that_is_killed_goes_on_and_is_judged_again_with_the_same_answer(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = (
        *("capacity", "--recipe", "sleep-50ms", "--stack", "socketserver-threading", "--cpus", "1"),
        *("--slo", "p50 < 90ms", "-z", "0.5s", "--budget", "20s", "--wait"),
    )
    begun = subprocess.Popen(
        [sys.executable, "-m", "velodrome", *words, "--out", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + KILLED_S
    while lines(folder) < 3:  # its header, and two loads
        assert begun.poll() is None, "it ended before it was killed"
        assert time.monotonic() < until
        time.sleep(0.05)
    begun.send_signal(signal.SIGKILL)
    begun.wait()
    before = (folder / "results.jsonl").read_text()
    early = run("judge", str(folder))
    assert early.returncode == 4
    assert "interrupted" in early.stdout
    ended = run(*words, "--resume", str(folder))
    assert (folder / "results.jsonl").read_text().startswith(before[: before.rindex("\n")])
    again = run("judge", str(folder))
    assert (again.stdout, again.returncode) == (ended.stdout, ended.returncode), ended.stderr
    assert "interrupted" not in again.stdout


def lines(folder: Path) -> int:
    file = folder / "results.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


@pytest.mark.exhaustive
@measured
@two_cpus
def test_latency_over_load_overload_and_cold_start_of_a_server_with_one_slot_are_what_theory_says(
    tmp_path: Path,
) -> None:
    words = (
        *("capacity", "--recipe", "cpu-2ms", "--stack", "socketserver-single", "--cpus", "1"),
        *("--slo", "p90 < 50ms", "-z", "0.5s", "--wait", "--json", "--out", str(tmp_path / "run")),
    )
    ended = subprocess.run(
        [sys.executable, "-m", "velodrome", *words], capture_output=True, text=True, check=False, timeout=400
    )
    found = document(ended)
    if found["ending"] not in {"converged", "not converged"}:
        pytest.skip(found["sentence"])
    assert found["claim"]["proven"]
    assert [point["share"] for point in found["load"]] == [0.2, 0.5, 0.8, 0.95]
    known = [point["ms"] for point in found["load"] if point["ms"] is not None]
    assert known == sorted(known)
    assert all(latency_ms > 2 for latency_ms in known)
    for overload in found["overload"]:
        if overload["goodput_rps"] is not None:
            assert overload["goodput_rps"] < 500  # one slot of 2 ms
    assert found["cold_starts"] >= 5
    assert 0 < found["cold_start_s"]["low"] <= found["cold_start_s"]["mid"]


SHOP = """
import time


def application(environ, start_response):
    time.sleep(0.02)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    return [b"cart"]
"""
SLOWER = """
import time


def pre_request(worker, request):
    time.sleep(0.03)
"""
"""A file that gunicorn reads in the folder of an app, and a race does not."""


@pytest.mark.exhaustive
@measured
@two_cpus
@pytest.mark.parametrize("slower", [False, True], ids=["as measured", "slower than measured"])
def test_what_is_pasted_is_started_and_what_is_not_what_was_measured_is_not_given(
    slower: bool, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    if slower:
        (tmp_path / "gunicorn.conf.py").write_text(SLOWER)
    ended = velodrome(
        tmp_path,
        *("tune", "shop:application", "--stack", "gunicorn-gthread", "--slo", "p95 < 200ms", "--cpus", "1"),
        *("--budget", "40s", "--wait", "--json", "--paste"),
    )
    found = document(ended)
    if found["pasted"] is None:
        pytest.skip(found["sentence"])
    assert found["pasted"]["within"] is not slower, found["pasted"]
    if slower:
        assert ended.returncode == 4
        assert found["ending"] != "settled"
    assert not (tmp_path / "serve.py").exists()

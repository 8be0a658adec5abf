"""`velodrome load -R auto` and `-c auto`, against servers of a known capacity."""

import json
import os
import re
import subprocess
import sys
from typing import Any

import jsonschema
import pytest
from tests.cli.limited import server

from velodrome.report import schema

ONE = [sys.executable, "-m", "velodrome"]
measured = pytest.mark.measured
two_cpus = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
    reason="needs Linux and two CPUs, one for each side",
)


def load(*words: str) -> subprocess.CompletedProcess[str]:
    last = max(os.sched_getaffinity(0)) if sys.platform == "linux" else 0
    pinned = ["taskset", "-c", str(last)] if sys.platform == "linux" else []
    return subprocess.run(
        [*pinned, *ONE, "load", *words], capture_output=True, text=True, check=False, timeout=110
    )


def found(ended: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(ended.stdout)
    jsonschema.validate(document, schema.search())
    return document


@pytest.mark.exhaustive
@measured
@two_cpus
def test_the_highest_rate_of_two_slots_is_what_littles_law_allows() -> None:
    with server("slots") as url:
        ended = load(url, "-R", "auto", "-z", "1s", "--fail-if", "p90 > 100ms", "--json")
    document = found(ended)
    assert document["ending"] in {"converged", "not converged"}, document["sentence"]
    assert 330 < document["interval"]["mid"] < 410, document["sentence"]
    assert document["interval"]["low"] <= document["interval"]["mid"] <= document["interval"]["high"]
    assert document["best"]["schema"] == "velodrome/load/1"
    assert "held" in ended.stderr


@measured
@two_cpus
def test_throughput_of_two_slots_stops_rising_at_two_connections() -> None:
    with server("slots") as url:
        document = found(load(url, "-c", "auto", "-z", "200ms", "--json"))
    if document["ending"] == "not converged" and "blocks vary too much" in document["sentence"]:
        pytest.skip(document["sentence"])
    assert document["ending"] == "converged", document["sentence"]
    assert document["connections"]["mid"] == 2
    assert 300 < document["rps"]["mid"] < 410


@pytest.mark.exhaustive
@measured
@two_cpus
def test_a_condition_that_always_holds_is_reported_and_ends_with_1() -> None:
    with server("slots") as url:
        ended = load(url, "-R", "auto", "-z", "300ms", "--fail-if", "max > 1ms")
    assert ended.returncode == 1
    assert "There is no rate without max > 1ms" in ended.stdout
    assert "even at 1" in ended.stdout
    assert "max was" in ended.stdout


@two_cpus
def test_no_rate_is_searched_where_one_in_ten_is_answered_wrongly_at_any() -> None:
    with server("moody") as url:
        ended = load(url, "-R", "auto", "-z", "300ms")
        assert ended.returncode == 1
        output = " ".join(ended.stdout.split())
        wrong = re.search(
            r"(\d+(\.\d)?) % of the answers are wrong at any rate: say --fail-if 'errors > 20%'", output
        )
        assert wrong
        assert float(wrong[1]) == pytest.approx(10, abs=1)
        assert "[" not in ended.stderr, "it tried a rate"


def test_nobody_there_cannot_be_searched() -> None:
    for option in ("-R", "-c"):
        ended = load("http://127.0.0.1:1/", option, "auto")
        assert ended.returncode == 1
        assert "http://127.0.0.1:1/: connection refused" in ended.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-c", "auto", "-R", "100"), "leave -R out"),
        (("-c", "auto", "-n", "100"), "not -n"),
        (("-c", "auto", "--fail-if", "p99 > 1s"), "judges throughput alone"),
        (("-c", "many"), "is no number of connections"),
        (("-R", "auto", "--step", "5"), "--step"),
    ],
)
def test_what_makes_no_sense_together_is_reported(words: tuple[str, ...], sentence: str) -> None:
    ended = load("http://127.0.0.1:1/", *words)
    assert ended.returncode == 2
    assert sentence in ended.stderr

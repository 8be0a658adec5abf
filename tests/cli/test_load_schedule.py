"""`velodrome load -R A..B` as a user runs it: steps, ramps, pieces."""

import json
import subprocess
import sys
from typing import Any

import pytest

LOAD = [sys.executable, "-m", "velodrome", "load"]


def load(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LOAD, *words], capture_output=True, text=True, check=False, timeout=60)


def steps(*words: str) -> list[dict[str, Any]]:
    ended = load(*words, "--json")
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["ok"] == document["requests"] == sum(step["requests"] for step in document["steps"])
    found: list[dict[str, Any]] = document["steps"]
    return found


def test_each_step_is_reported_by_itself(third_party: str) -> None:
    found = steps(third_party, "-R", "50..150", "--step", "50", "--every", "400ms")
    assert [step["rate"] for step in found] == [50, 100, 150]
    assert [step["requests"] for step in found] == [20, 40, 60]
    assert [step["at_s"] for step in found] == [0, 0.4, 0.8]
    assert all(step["latency_ms"]["sent"]["p50"] >= 5 for step in found)
    assert all(step["throughput_rps"] > 0 for step in found)


def test_steps_go_down_too_and_the_last_rate_is_the_one_named(third_party: str) -> None:
    found = steps(third_party, "-R", "150..20", "--step", "100", "--every", "200ms", "-z", "800ms")
    assert [step["rate"] for step in found] == [150, 50, 20, 20]


def test_a_ramp_is_reported_in_ten_parts(third_party: str) -> None:
    found = steps(third_party, "-R", "0..200", "--ramp", "1s")
    assert [step["requests"] for step in found] == [1, 3, 5, 7, 9, 11, 13, 15, 17, 19]
    assert (found[3]["rate"], found[3]["to_rate"]) == (60, 80)


def test_the_report_has_a_line_for_each_piece(third_party: str) -> None:
    shown = load(third_party, "-R", "50:200ms,200:300ms,50:200ms").stdout
    assert "open loop, constant 50 to 50/s by way of 200 in 3 steps" in shown
    assert "offered/s" in shown
    assert [line.split()[1:4] for line in shown.splitlines() if line.startswith(" at ")] == [
        ["0", "ms", "50"],
        ["200", "ms", "200"],
        ["500", "ms", "50"],
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-R", "100..200"], "give either --step 100 --every 5s, or --ramp 60s"),
        (["-R", "100..200", "--step", "5", "--ramp", "5s"], "give either --step"),
        (["-R", "100", "--step", "5"], "--step needs two rates"),
        (["--ramp", "5s"], "--ramp needs two rates"),
        (["-R", "100", "--every", "5s"], "--every says how long a step takes"),
        (["-R", "fast"], "'fast' is not a rate"),
        (["-R", "1..x", "--ramp", "5s"], "'x' is not a rate"),
        (["-R", "100:5s,200"], "'200' has no duration"),
        (["-R", "100:soon"], "'soon' is not a span of time"),
        (["-R", "1..1000", "--step", "0.5"], "1999 steps are too many"),
        (["-R", "1..10", "--step", "-1"], "--step: -1 is not a step"),
        (["-R", "1..10", "--ramp", "5s", "-z", "4s"], "shorter than the schedule"),
        (["-R", "1..10", "--ramp", "5s", "-n", "4"], "a schedule ends by its time"),
        (["-R", "-5"], "rate: -5"),
    ],
)
def test_what_makes_no_schedule_is_one_sentence(words: list[str], sentence: str) -> None:
    ended = load("http://127.0.0.1:1/", *words)
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1

"""`velodrome load --fail-if`, against a third party of a known latency."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

ONE = [sys.executable, "-m", "velodrome"]


def load(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*ONE, "load", *words], capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture(scope="module")
def third_party() -> Iterator[str]:
    command = [*ONE, "upstream", "--latency", "5ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip() + "/"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)


def test_a_condition_that_holds_ends_with_1_and_says_why(third_party: str) -> None:
    ended = load(third_party, "-n", "60", "--fail-if", "p50 > 1ms", "--fail-if", "errors > 0")
    assert ended.returncode == 1
    assert "✗ Fails: p50 > 1ms. p50 was" in ended.stdout
    assert "✓ Passes: errors > 0. errors was 0 requests" in ended.stdout


def test_conditions_that_do_not_hold_end_with_0(third_party: str) -> None:
    ended = load(third_party, "-n", "60", "--fail-if", "p50 > 2s or errors > 1%", "--json")
    assert ended.returncode == 0
    (found,) = json.loads(ended.stdout)["conditions"]
    assert (found["condition"], found["holds"]) == ("p50 > 2s or errors > 1%", False)


def test_a_figure_that_was_not_measured_ends_with_a_code_of_its_own(third_party: str) -> None:
    for condition in ("p99.9 > 1s", "tls.p99 > 1s", "lag.p99 > 1s"):
        ended = load(third_party, "-n", "60", "--json", "--fail-if", condition)
        assert ended.returncode == 4, condition
        assert "Cannot tell" in ended.stderr
        assert json.loads(ended.stdout)["conditions"][0]["holds"] is None


def test_what_holds_outweighs_what_cannot_be_told(third_party: str) -> None:
    assert (
        load(third_party, "-n", "60", "--fail-if", "tls.p99 > 1s", "--fail-if", "p50 > 1ms").returncode == 1
    )


def test_an_unknown_metric_is_an_error_before_anything_is_sent() -> None:
    ended = load("http://127.0.0.1:1/", "-n", "1", "--fail-if", "p99th > 50ms")
    assert ended.returncode == 2
    assert ended.stderr.startswith("velodrome: unknown metric 'p99th'. Nearest: ")
    ended = load("http://127.0.0.1:1/", "-n", "1", "--fail-if", "p99 > 50")
    assert ended.returncode == 2
    assert "give it a unit" in ended.stderr

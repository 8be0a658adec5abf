"""Tests on a machine whose host takes the CPUs: which are tried again, set aside, or fail."""

import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
pytest_plugins = ["pytester"]

CONFTEST = """
from velodrome.run.measuring import kernel

pytest_plugins = ["tests.restless"]
seconds = iter(range(10**6))

def read():
    at = next(seconds)
    return kernel.Counters(at * 10**9, busy_s=0.0, steal_s=at * {stolen})

kernel.read = read
"""
TESTS = """
import pytest

tried = []

@pytest.mark.measured
def test_measures():
    tried.append(0)
    assert len(tried) > {fails}

def test_logic():
    tried.append(0)
    assert len(tried) > {fails}

@pytest.mark.measured
@pytest.mark.parametrize("how", [KeyError, OSError, pytest.fail.Exception, lambda: None.rate])
def test_raises(how):
    raise how()
"""

TWENTY = """
import pytest

@pytest.mark.measured
@pytest.mark.parametrize("number", range(20))
def test_it(number):
    assert number >= {}
"""


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


@pytest.mark.parametrize(
    ("stolen", "fails", "outcomes"),
    [
        (0.1, 0, {"passed": 1}),
        (0.1, 2, {"passed": 1, "rerun": 2}),
        (0.1, 9, {"skipped": 1, "rerun": 2}),
        (0.0, 2, {"passed": 1, "rerun": 2}),
        (0.0, 9, {"failed": 1, "rerun": 2}),
    ],
)
def test_one_that_measures_is_tried_three_times_and_set_aside_where_the_host_took_cpus_each_time(
    pytester: pytest.Pytester, stolen: float, fails: int, outcomes: dict[str, int]
) -> None:
    assert found(ran(pytester, stolen, fails, "test_measures")) == outcomes


@pytest.mark.parametrize("stolen", [0.0, 0.5])
@pytest.mark.parametrize("worker", ["", "gw0"])
def test_one_that_does_not_has_one_attempt_and_is_never_set_aside(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, stolen: float, worker: str
) -> None:
    if worker:
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    assert found(ran(pytester, stolen, 1, "test_logic")) == {"failed": 1}


def test_what_was_not_measured_may_miss_in_any_way(pytester: pytest.Pytester) -> None:
    """A figure that is not there is a `KeyError`, one that did not come in time a `TimeoutError`."""
    assert found(ran(pytester, 0.9, 9, "test_raises")) == {"skipped": 4, "rerun": 8}
    assert found(ran(pytester, 0.0, 9, "test_raises")) == {"failed": 4, "rerun": 8}


def test_what_was_taken_is_reported_with_what_was_found(pytester: pytest.Pytester) -> None:
    result = ran(pytester, 0.5, 9, "test_measures")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "1 set aside,*",
            "SKIPPED*insufficient data: in 3 attempts the host took *%, *%, *% of the CPUs; the last: *assert 3 > 9*",
        ]
    )


@pytest.mark.parametrize(("stolen", "at_most"), [(0.1, 2), (0.5, 10)])
def test_more_set_aside_than_a_tenth_or_than_was_taken_fail_the_session(
    pytester: pytest.Pytester, stolen: float, at_most: int
) -> None:
    pytester.makeconftest(CONFTEST.format(stolen=stolen * (os.cpu_count() or 1)))
    for set_aside, code in ((at_most, 0), (at_most + 1, 1)):
        pytester.makepyfile(TWENTY.format(set_aside))
        assert run(pytester).ret == code


def found(result: pytest.RunResult) -> dict[str, int]:
    return {kind: count for kind, count in result.parseoutcomes().items() if kind != "deselected"}


def ran(pytester: pytest.Pytester, stolen: float, fails: int, which: str) -> pytest.RunResult:
    pytester.makeconftest(CONFTEST.format(stolen=stolen))
    pytester.makepyfile(TESTS.format(fails=fails))
    return run(pytester, "-k", which)


def run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    pytester.makeini("[pytest]\nmarkers =\n  measured: starts load\n")
    return pytester.runpytest_subprocess("-rs", *words)

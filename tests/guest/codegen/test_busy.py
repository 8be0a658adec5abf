"""A `cpu` step takes the CPU time it says."""

import subprocess
import sys
import time

import pytest

from velodrome.guest.codegen.steps import TURN_VARIABLE, calibrate
from velodrome.guest.interfaces import wsgi
from velodrome.guest.recipe import Body, Cpu, Recipe

PATIENCE_S = 30.0


def fastest(us: int) -> float:
    """Build a handler, calibrated now, and return the least CPU microseconds it took of many calls."""
    handler = wsgi.build(Recipe("x", "x", (Cpu(us), Body(1))), "")

    def spent() -> float:
        started = time.thread_time()
        handler({}, lambda status, headers: None)
        return time.thread_time() - started

    return min(spent() for _ in range(50)) * 1e6


@pytest.mark.parametrize("us", [200, 2000])
def test_the_handler_burns_as_many_microseconds_as_asked(us: int) -> None:
    # A neighbour on the same core may slow the calibration or the calls, for a while: so try again.
    end = time.monotonic() + PATIENCE_S
    found = []
    while time.monotonic() < end:
        found.append(fastest(us))
        if 0.9 * us < found[-1] < 1.15 * us:
            return
    pytest.fail(f"{us} us are wanted, took {found}")


def test_servers_that_are_given_the_cost_of_a_turn_do_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TURN_VARIABLE, "12.5")
    assert calibrate(2000) == 160_000


def test_the_cost_of_a_turn_can_be_asked_for() -> None:
    command = [sys.executable, "-m", "velodrome.guest.codegen.steps"]
    assert 1 < float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) < 1000


def test_no_time_is_no_work() -> None:
    assert calibrate(0) == 0

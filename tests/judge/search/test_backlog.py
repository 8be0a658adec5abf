import numpy as np
import pytest

from velodrome.judge.search.holding import rises, slope

pytestmark = pytest.mark.simulation


def seen(rate: float, capacity: float, seconds: float, seed: int) -> list[tuple[float, float]]:
    """The backlog of an M/M/1 queue that begins empty, looked at four times a second."""
    random = np.random.default_rng(seed)
    step, found, backlog = 1 / max(rate, capacity) / 4, [], 0
    for number in range(int(seconds / step)):
        draw = random.random()
        if draw < rate * step:
            backlog += 1
        elif draw < (rate + capacity) * step and backlog:
            backlog -= 1
        if number % max(1, int(0.25 / step)) == 0:
            found.append((number * step, float(backlog)))
    return found


def noticed(values: list[tuple[float, float]], rate: float) -> float | None:
    """When a rate is given up, looking each time something new is seen."""
    return next((values[n][0] for n in range(len(values)) if rises(values[: n + 1], rate)), None)


def test_a_line_has_its_slope() -> None:
    found = slope([(second, 100 + 30 * second) for second in range(10)])
    assert found
    assert found.per_s == pytest.approx(30)
    assert found.error == pytest.approx(0, abs=1e-9)


def test_too_little_says_nothing() -> None:
    assert slope([(0, 1), (1, 2)]) is None
    assert slope([(1, 1)] * 10) is None
    assert rises([], 100) is None
    assert rises([(0.05 * n, 1_000.0 * n) for n in range(10)], 100) is None


@pytest.mark.parametrize(("load", "few"), [(0.5, 0), (0.9, 0), (0.97, 3)])
def test_a_server_that_keeps_up_is_hardly_ever_given_up(load: float, few: int) -> None:
    wrong = [seed for seed in range(60) if noticed(seen(load * 400, 400, 6, seed), load * 400)]
    assert len(wrong) <= few, wrong


@pytest.mark.parametrize(("load", "within_s"), [(1.5, 3.0), (1.2, 6.0)])
def test_a_server_that_falls_behind_is_given_up_long_before_time_outs(load: float, within_s: float) -> None:
    moments = [noticed(seen(load * 400, 400, 8, seed), load * 400) for seed in range(30)]
    in_time = [moment for moment in moments if moment is not None and moment <= within_s]
    assert len(in_time) >= 27, moments


def test_a_queue_that_fills_and_stays_is_no_rise() -> None:
    filling = [(0.25 * n, min(10 * n, 60.0)) for n in range(40)]
    assert noticed(filling, 1_000) is None

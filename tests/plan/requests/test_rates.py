"""Rates of a log: what was requested on average, and at most."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from velodrome.plan.requests.access_log import OPEN_S, Rates


def rates(seconds: list[int]) -> Rates:
    found = Rates()
    for second in seconds:
        found.add(second)
    return found


def test_a_log_without_times_has_no_rates() -> None:
    found = Rates()
    found.add(None)
    assert (found.timed, found.seconds, found.mean_rps, found.peak_rps) == (0, 0, None, None)


def test_a_burst_is_the_peak_and_not_the_mean() -> None:
    found = rates(sorted([*range(1000), *[500] * 99]))
    assert (found.seconds, found.mean_rps, found.peak_rps) == (1000, 1.099, 100)
    assert found.long_peak_rps == 10.9


def test_a_log_shorter_than_ten_seconds_has_no_peak_of_ten() -> None:
    assert rates([1, 2, 3]).long_peak_rps is None
    assert rates([1, 10]).long_peak_rps == 0.2


@given(st.lists(st.integers(0, 3 * OPEN_S), min_size=1, max_size=300), st.integers(0, OPEN_S), st.integers())
def test_lines_may_be_out_of_order_by_two_minutes(seconds: list[int], late: int, seed: int) -> None:
    chance = random.Random(seed)
    found = rates(sorted(seconds, key=lambda second: second + chance.random() * late))
    counts = Counter(seconds)
    windows = [sum(counts[second + at] for at in range(10)) for second in range(-10, max(seconds) + 1)]
    assert found.peak_rps == max(counts.values())
    if found.seconds >= 10:
        assert found.long_peak_rps == max(windows) / 10


def test_an_older_log_behind_is_another_one() -> None:
    newer = [1000 + at // 5 for at in range(500)]
    older = [at // 7 for at in range(700)]
    found = rates([*newer, *older])
    assert (found.peak_rps, found.long_peak_rps, found.seconds) == (7, 7, 1100)


def test_times_that_leap_take_no_memory() -> None:
    chance = random.Random(7)
    found = rates([chance.randrange(10**12) for _ in range(20_000)])
    assert len(found._open) <= OPEN_S + 1
    assert found.peak_rps == 1

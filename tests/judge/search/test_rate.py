import math

import numpy as np
import pytest
from tests.judge.search.servers import Cliff, Queue, sojourns_mdc

from velodrome.judge.search.rate import RateSearch, highest_rate
from velodrome.model.search import Ending, Probe

pytestmark = pytest.mark.simulation


def half_holds(queue: Queue) -> float:
    """The rate of which half of the trials hold, by brute force: what the search seeks."""
    rates = np.linspace(0.9 * queue.edge, 0.999 * queue.capacity, 25)
    shares = [np.mean([queue.holds(rate) for _ in range(80)]) for rate in rates]
    return float(np.interp(0.5, shares[::-1], rates[::-1]))


def test_the_capacity_of_a_queue_lies_within_the_interval() -> None:
    queue = Queue(1_000, 0.05, seed=99)
    truth = half_holds(queue)
    # A queue near its limit takes longer than five seconds to show all of its latency: short trials flatter.
    assert 1 < truth / queue.edge < 1.06
    inside = trials = 0
    for seed in range(40):
        found = highest_rate(Queue(1_000, 0.05, seed=seed), RateSearch(first=100))
        assert found.ending in {Ending.CONVERGED, Ending.SPENT}
        assert found.interval
        inside += found.interval.low <= truth <= found.interval.high
        trials += len(found.probes)
        assert found.interval.mid == pytest.approx(truth, rel=0.08)
    # 95 % of 40 are 38; fewer than 35 would be an accident of one in a hundred.
    assert inside >= 35, inside
    assert trials / 40 < 37


@pytest.mark.parametrize(
    ("noise", "lapses"), [(0.0, 0.0), (0.01, 0.0), (0.03, 0.0), (0.01, 0.04), (0.03, 0.04)]
)
def test_a_cliff_is_found_however_noisy(noise: float, lapses: float) -> None:
    inside = 0
    for seed in range(40):
        found = highest_rate(Cliff(7_300, noise, lapses, seed), RateSearch(first=100))
        assert found.interval, found
        inside += found.interval.low <= 7_300 <= found.interval.high
        if found.ending is Ending.CONVERGED:
            assert found.interval.high <= 1.1**2 * found.interval.low + 1e-6
    assert inside >= 35, inside


def test_a_deterministic_server_is_held_to_its_capacity() -> None:
    """M/D/4 of 5 ms: 800/s. Five seconds at a little more show it in latency."""
    random = np.random.default_rng(3)

    def tried(rate: float) -> Probe:
        times = sojourns_mdc(random, rate, 4, 0.005, 5.0)
        return Probe(rate, bool(np.percentile(times, 99) < 0.05), "p99")

    found = highest_rate(tried, RateSearch(first=50))
    assert found.ending is Ending.CONVERGED
    assert found.interval
    assert found.interval.mid == pytest.approx(800, rel=0.04)


def test_most_trials_are_near_the_answer() -> None:
    cliff = Cliff(7_300, noise=0.01, seed=5)
    highest_rate(cliff, RateSearch(first=100))
    near = [rate for rate in cliff.tried if abs(math.log(rate / 7_300)) < 0.1]
    assert len(near) > len(cliff.tried) / 3


def test_what_never_holds_is_reported_with_the_reason() -> None:
    found = highest_rate(Cliff(0.0), RateSearch(first=100, lowest=10))
    assert (found.ending, found.because, found.interval) == (Ending.NEVER, "too slow", None)
    assert [probe.rate for probe in found.probes] == [100, 50, 25, 12.5, 10, 10]


def test_what_always_holds_ends_where_the_generator_does() -> None:
    found = highest_rate(Cliff(math.inf, ceiling=50_000), RateSearch(first=100))
    assert found.ending is Ending.BEYOND
    assert found.because == "the generator's CPU was the limit"
    assert found.interval
    assert 50_000 / 1.06 < found.interval.low < 50_000


def test_what_always_holds_ends_at_the_highest_rate_asked_for() -> None:
    found = highest_rate(Cliff(math.inf), RateSearch(first=100, highest=1_000))
    assert found.ending is Ending.BEYOND
    assert found.interval
    assert found.interval.low == 1_000
    assert "no higher rate" in found.because


def test_a_generator_that_is_the_limit_everywhere_cannot_tell() -> None:
    found = highest_rate(Cliff(1_000, ceiling=1.0), RateSearch(first=100, lowest=10))
    assert found.ending is Ending.CANNOT
    assert found.because == "the generator's CPU was the limit"


def test_a_first_rate_above_the_edge_is_halved_until_it_holds() -> None:
    found = highest_rate(Cliff(730), RateSearch(first=100_000))
    assert found.ending is Ending.CONVERGED
    assert found.interval
    assert found.interval.low <= 730 <= found.interval.high


def test_a_first_answer_that_was_wrong_does_not_mislead() -> None:
    cliff = Cliff(7_300)
    wrong = iter([True])

    def tried(rate: float) -> Probe:
        probe = cliff(rate)
        return Probe(rate, not probe.held) if rate > 1_500 and next(wrong, False) else probe

    found = highest_rate(tried, RateSearch(first=100))
    assert found.interval
    assert found.interval.low <= 7_300 <= found.interval.high


def test_a_condition_that_cannot_be_told_ends_the_search_with_the_reason() -> None:
    found = highest_rate(lambda rate: Probe(rate, None, "p99.9 needs more requests"), RateSearch(first=100))
    assert (found.ending, found.because) == (Ending.CANNOT, "p99.9 needs more requests")
    assert len(found.probes) == 2


def test_trials_without_any_order_spend_the_budget_and_say_so() -> None:
    random = np.random.default_rng(8)
    found = highest_rate(
        lambda rate: Probe(rate, bool(random.random() < 0.5)), RateSearch(first=100, most=25)
    )
    assert found.ending in {Ending.SPENT, Ending.NEVER, Ending.CANNOT, Ending.BEYOND}
    assert len(found.probes) <= 25


def test_what_breaks_at_any_rate_is_not_searched() -> None:
    why = "6 % of the answers are wrong at any rate"
    found = highest_rate(lambda rate: Probe(rate, False, why, everywhere=True), RateSearch(first=100))
    assert (found.ending, found.because, len(found.probes)) == (Ending.NEVER, why, 1)

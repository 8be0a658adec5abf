"""What some loads say of a candidate's highest rate, or its cost, also where chance or a bad forecast had its part."""

import math
from dataclasses import replace

import numpy as np
import pytest

from velodrome.judge.tuning.knowing import REPORTED, Confirmed, Costs, Rates, Spread
from velodrome.model.tuning import Ask, Observation

pytestmark = pytest.mark.simulation


def observed(rate: float, held: bool, boot: int = 1) -> Observation:
    return Observation(Ask(2.0, rate=rate), throughput_rps=rate, held=held, boot=boot)


def test_one_load_that_breaks_by_chance_does_not_send_the_search_to_the_bottom() -> None:
    known = Rates(forecast=4_110)
    for rate, held in ((3_280, True), (4_340, False), (2_550, False)):
        known.learn(observed(rate, held))
    assert 2_000 < known.interval().mid < 4_400
    assert 1_900 < known.next(1) < 4_800


def test_rates_that_only_held_are_followed_upwards_by_steps() -> None:
    known = Rates(forecast=1_000)
    rate = 800.0
    while rate < 10_000:
        known.learn(observed(rate, True))
        assert rate * 0.8 < known.interval().mid < rate * 2
        following = known.next(1)
        assert following < rate * 2.5
        assert following > rate * 0.9
        rate = max(following, rate * 1.02)


def test_a_forecast_that_is_ten_times_too_high_is_given_up() -> None:
    known = Rates(forecast=10_000)
    for _ in range(14):
        rate = known.next(1)
        known.learn(observed(rate, rate < 900))
    found = known.interval(REPORTED)
    assert found.low < 900 < found.high * 1.1
    assert found.high < 1_400


def test_an_overdone_load_is_learnt_once() -> None:
    once, plain = Rates(forecast=1_000), Rates(forecast=1_000)
    once.learn(Observation(Ask(2.0, rate=2_000), throughput_rps=800, held=False, overdone=True, boot=1))
    plain.learn(observed(800 * 1.06, False))
    assert once.interval(REPORTED) == plain.interval(REPORTED)


def test_more_loads_of_one_start_say_less_than_as_many_of_several() -> None:
    rates, several = Rates(forecast=1_000), Rates(forecast=1_000)
    for number in range(12):
        rate, held = (880, True) if number % 2 else (920, False)
        rates.learn(observed(rate, held, boot=1))
        several.learn(observed(rate, held, boot=1 + number // 2))
    width = [found.high / found.low for found in (rates.interval(REPORTED), several.interval(REPORTED))]
    assert width[0] > 1.1 * width[1]


def test_a_server_that_is_started_again_in_the_midst_completes_the_start() -> None:
    known = Confirmed(1_000)
    for boot, held in ((1, True), (2, False), (3, True), (3, False)):
        known.learn(observed(known.next(boot), held, boot))
    assert len(known.by_host()[""]) == 1
    for held in (True, False, True):
        known.learn(observed(known.next(4), held, 4))
    assert len(known.by_host()[""]) == 2


@pytest.mark.parametrize("between", [0.02, 0.05, 0.1])
def test_the_interval_of_a_finalist_covers_what_it_can_do_however_far_its_starts_differ(
    between: float,
) -> None:
    """A seeded small form of `benchmarks/tune_intervals.py`."""
    draw, worlds, inside = np.random.default_rng(7), 300, 0
    for _ in range(worlds):
        known = Confirmed(1_000 * math.exp(draw.normal(0, 0.08)))
        for boot in range(3):
            edge = 1_000 * math.exp(draw.normal(0, between))
            for _ in range(4):
                rate = known.next(boot)
                held = rate < edge * math.exp(draw.normal(0, 0.02))
                known.learn(observed(rate, held != (draw.random() < 0.02), boot))
        found = known.interval()
        inside += found.low <= 1_000 <= found.high
    assert 0.92 * worlds < inside


@pytest.mark.parametrize(("hosts", "differ"), [(2, 0.0), (2, 0.03), (4, 0.03), (3, 0.06)])
def test_the_interval_of_starts_on_several_hosts_covers_the_middle_of_hosts_like_these(
    hosts: int, differ: float
) -> None:
    draw, worlds, inside = np.random.default_rng(11), 300, 0
    for _ in range(worlds):
        known = Confirmed(1_000 * math.exp(draw.normal(0, 0.08)))
        own = draw.normal(0, differ, hosts)
        for boot in range(5):
            host = f"host {boot % hosts}"
            edge = 1_000 * math.exp(own[boot % hosts] + draw.normal(0, 0.05))
            for _ in range(4):
                rate = known.next(boot, host)
                held = rate < edge * math.exp(draw.normal(0, 0.02))
                known.learn(replace(observed(rate, held != (draw.random() < 0.02), boot), host=host))
        found = known.interval()
        inside += found.low <= 1_000 <= found.high
    assert 0.92 * worlds < inside, inside / worlds


@pytest.mark.parametrize("between", [0.03, 0.1, 0.3])
def test_the_interval_of_a_cost_covers_it_however_noisy_the_machine_is(between: float) -> None:
    draw, worlds, inside = np.random.default_rng(7), 400, 0
    for _ in range(worlds):
        known = Costs(300.0, Spread(0.06), alone=True)
        for boot in range(3):
            start = draw.normal(0, between)
            for _ in range(2):
                known.pay(300 * math.exp(start + draw.normal(0, 0.02)), boot)
        found = known.cost(REPORTED)
        inside += found.low <= 300 <= found.high
    assert 0.92 * worlds < inside < 0.98 * worlds


def test_a_third_start_does_not_widen_what_is_known_of_a_cost_during_a_race() -> None:
    spread, widths = Spread(0.06), []
    known = Costs(300.0, spread)
    for boot, cost in enumerate((300.0, 310.0, 296.0)):
        known.pay(cost, boot)
        found = known.cost(REPORTED)
        widths.append(found.high / found.low)
    assert widths == sorted(widths, reverse=True)

"""What some loads say of a candidate's highest rate, also where chance or a bad forecast had its part in them."""

from velodrome.judge.tuning.racing import Rates
from velodrome.model.tuning import Ask, Told


def told(rate: float, held: bool) -> Told:
    return Told(Ask(2.0, rate=rate), throughput_rps=rate, held=held)


def test_one_load_that_breaks_by_chance_does_not_send_the_search_to_the_bottom() -> None:
    known = Rates(forecast=4_110)
    for rate, held in ((3_280, True), (4_340, False), (2_550, False)):
        known.learn(told(rate, held))
    assert 2_000 < known.interval.mid < 4_400
    assert 1_900 < known.next() < 4_800


def test_rates_that_only_held_are_followed_upwards_by_steps() -> None:
    known = Rates(forecast=1_000)
    rate = 800.0
    while rate < 10_000:
        known.learn(told(rate, True))
        assert rate * 0.8 < known.interval.mid < rate * 2
        following = known.next()
        assert following < rate * 2.5
        assert following > rate * 0.9
        rate = max(following, rate * 1.02)


def test_a_forecast_that_is_ten_times_too_high_is_given_up() -> None:
    known = Rates(forecast=10_000)
    for _ in range(14):
        rate = known.next()
        known.learn(told(rate, rate < 900))
    assert known.interval.low < 900 < known.interval.high * 1.1
    assert known.interval.high < 1_300

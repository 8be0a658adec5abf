"""The rate of a comparison's open loop follows from a look at every contestant."""

import pytest

from velodrome.usecases.compare import leader, look_at, two_digits


def test_the_slowest_that_reaches_half_of_the_best_sets_the_rate() -> None:
    look = look_at({"granian": 2000.0, "uvicorn": 1160.0, "waitress": 999.0}, 1.5)
    assert look.slowest == "uvicorn"
    assert look.rate == 810.0  # 70 % of it, in two digits
    assert leader(look) == "granian"


def test_exactly_half_of_the_best_is_enough() -> None:
    assert look_at({"granian": 200.0, "uvicorn": 100.0}, 1.0).rate == 70.0


def test_one_alone_sets_its_own_rate() -> None:
    assert look_at({"uvicorn": 10.0}, 1.0).rate == 7.0


def test_who_answered_nothing_counts_for_nothing() -> None:
    assert look_at({"uvicorn": 10.0, "waitress": 0.0}, 1.0) == look_at({"uvicorn": 10.0}, 1.0)


def test_where_nobody_answers_there_is_no_rate() -> None:
    look = look_at({"waitress": 0.0}, 1.0)
    assert (look.rate, look.slowest, leader(look)) == (None, "", "")


@pytest.mark.parametrize(
    ("rate", "cut"),
    [(812.3, 810.0), (81.999, 81.0), (7.0, 7.0), (0.7777, 0.77), (12999.0, 12000.0), (70, 70)],
)
def test_a_rate_has_two_digits_and_is_never_above_what_it_follows_from(rate: float, cut: float) -> None:
    assert two_digits(rate) == pytest.approx(cut)
    assert two_digits(rate) <= rate

import pytest

from velodrome.judge.search.holding import OneByOne, share_failed, wrong_anyway
from velodrome.model.condition import read


@pytest.mark.parametrize(
    ("wrong", "of", "limit"), [(12, 200, "10%"), (3, 200, ""), (1, 14, ""), (2, 40, ""), (90, 200, "90%")]
)
def test_a_few_wrong_answers_may_be_an_accident_and_many_are_none(wrong: int, of: int, limit: str) -> None:
    sentence = wrong_anyway(OneByOne({"ok": of - wrong, "bad_status": wrong}), ())
    assert bool(sentence) == bool(limit)
    assert f"say errors < {limit}" in sentence or not limit


def test_what_was_given_up_is_no_answer() -> None:
    assert not wrong_anyway(OneByOne({"ok": 100, "timeout": 30, "unfinished": 1}), ())


def test_loads_of_one_connection_are_counted_together() -> None:
    one_by_one = OneByOne().and_of({"ok": 10, "bad_status": 1}).and_of({"ok": 20, "reset": 2})
    assert one_by_one.outcomes == {"ok": 30, "bad_status": 1, "reset": 2}


def test_of_two_ways_to_fail_the_one_that_is_named_is_left_to_its_condition() -> None:
    outcomes = {"ok": 80, "bad_status": 15, "reset": 5}
    assert share_failed(outcomes, ()) == pytest.approx(0.2)
    assert share_failed(outcomes, (read("bad_status < 50%"),)) == pytest.approx(0.05)
    assert share_failed(outcomes, (read("p99 < 1s and errors < 50%"),)) == 0

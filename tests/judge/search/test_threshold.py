import pytest

from velodrome.judge.search.rate import Threshold


def test_what_is_known_narrows_with_answers_and_lies_between_them() -> None:
    known = Threshold(10, 1_000)
    before = known.interval()
    for _ in range(3):
        known.learn(90, True)
        known.learn(110, False)
    found = known.interval()
    assert before.high / before.low > 50
    assert found.low > 80
    assert found.high < 120
    assert 90 < found.mid < 110


def test_one_answer_against_many_is_taken_for_a_lapse() -> None:
    known = Threshold(10, 1_000)
    for _ in range(4):
        known.learn(200, True)
        known.learn(220, False)
    known.learn(50, False)
    assert known.interval().mid == pytest.approx(210, rel=0.05)


def test_it_asks_where_it_does_not_know() -> None:
    known = Threshold(10, 1_000)
    for _ in range(3):
        known.learn(200, True)
        known.learn(400, False)
    assert 190 < known.next() < 420

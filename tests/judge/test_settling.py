"""A race that goes on where it is open: who stops, what is left, and that looking costs little and errs seldom."""

from dataclasses import replace

import pytest
from tests.judge import made

from velodrome.judge import settling
from velodrome.judge.settling import LOOKS, still_open
from velodrome.judge.statistics import CONFIDENCE, critical_of_field
from velodrome.judge.verdict import judge
from velodrome.model.noise import SHIPPED
from velodrome.model.results import Result
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant

QUESTION = Question("hello", made.HELLO, (made.CLOSED,))


def study(**more: object) -> Study:
    contestants = tuple(Contestant(name) for name in ("granian", "uvicorn", "gunicorn-sync"))
    whole = Study("short", "A short race", (QUESTION,), contestants, blocks=3, until_settled=True)
    return replace(whole, **more)  # type: ignore[arg-type]


def measured(rates: dict[str, list[float]]) -> list[Result]:
    return [
        made.measured(made.trial(name, block=block, load=made.CLOSED), rate)
        for name, own in rates.items()
        for block, rate in enumerate(own)
    ]


def open_after(blocks: int, rates: dict[str, list[float]]) -> set[str] | None:
    found = still_open(study(), made.STACKS, measured(rates), SHIPPED, blocks)
    return None if found is None else set(found)


def test_who_is_clearly_behind_stops_and_those_who_may_be_first_go_on() -> None:
    rates = {"granian": [1000.0, 1010.0], "uvicorn": [1015.0, 990.0], "gunicorn-sync": [300.0, 305.0]}
    assert open_after(2, rates) == {"hello/granian", "hello/uvicorn"}


def test_a_question_that_is_settled_is_left() -> None:
    assert open_after(2, {"granian": [1000.0, 1010.0], "gunicorn-sync": [300.0, 305.0]}) == set()


def test_a_look_is_stricter_than_the_verdict() -> None:
    rates = {"granian": [1000.0, 1000.0], "gunicorn-sync": [900.0, 900.0]}
    df = SHIPPED.of("throughput busy").df
    strict, plain = (
        critical_of_field(2, 2, df, confidence=level) for level in (1 - settling.SPENT, CONFIDENCE)
    )
    assert strict > plain
    assert open_after(2, rates) == {"hello/granian", "hello/gunicorn-sync"}


def test_no_look_is_due_between_looks_and_later_blocks_say_nothing_of_an_earlier_one() -> None:
    rates = {"granian": [1000.0] * 3, "uvicorn": [1000.0] * 3}
    assert open_after(3, rates) is None
    assert open_after(2, {"granian": [1000.0, 1000.0, 1.0], "uvicorn": [1005.0, 995.0, 9000.0]}) == {
        "hello/granian",
        "hello/uvicorn",
    }


def test_the_looks_and_the_verdict_spend_five_percent_together() -> None:
    assert len(LOOKS) * settling.SPENT + (1 - settling.confidence(study())) == pytest.approx(0.05)
    assert settling.confidence(study(until_settled=False)) == CONFIDENCE


def test_an_answer_says_who_was_not_run_any_further() -> None:
    rates = {
        "granian": [1000.0, 1010.0, 1000.0],
        "uvicorn": [1015.0, 990.0, 1000.0],
        "gunicorn-sync": [300.0, 305.0],
    }
    found = made.results(measured(rates), (QUESTION,))
    (answer,) = judge([replace(found, header=replace(found.header, study=study()))], made.STACKS).answers
    (behind,) = (standing for standing in answer.standings if standing.contestant == "gunicorn-sync")
    assert (behind.rank, behind.blocks_done) == (3, 2)
    assert "after 2 blocks" in behind.stopped
    assert not any(standing.stopped for standing in answer.standings if standing is not behind)


def test_two_blocks_that_differ_beyond_all_that_was_presumed_settle_nothing() -> None:
    rates = {"granian": [1e-3, 1e9], "uvicorn": [1e9, 1e-3], "gunicorn-sync": [500.0, 500.0]}
    assert open_after(2, rates) == {"hello/granian", "hello/uvicorn", "hello/gunicorn-sync"}

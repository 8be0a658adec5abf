"""Every metric that a study file may name can be taken, and only those."""

from tests.judge import made

from velodrome.judge.figures.taking import TAKING
from velodrome.model.load import Closed, Load, Open
from velodrome.model.metric import METRICS, Unit, unit_of
from velodrome.model.study import Question


def test_the_metrics_that_can_be_named_are_those_that_can_be_taken() -> None:
    assert set(TAKING) == set(METRICS)


def test_throughput_is_shown_by_the_closed_loop_and_latency_by_the_open_one() -> None:
    closed, opened = Load(Closed(4), 1), Load(Open(9), 1)
    question = Question("q", made.HELLO, (opened, closed))
    assert TAKING["throughput_rps"].load(question) == closed
    assert TAKING["p99_ms"].load(question) == opened
    assert TAKING["p99_ms"].load(Question("q", made.HELLO, (closed,))) == closed


def test_facts_of_experiments_have_the_unit_their_name_ends_in() -> None:
    assert unit_of("thread_us") is Unit.MICROSECONDS
    assert unit_of("mismatch_share.uvicorn") is Unit.SHARE
    assert unit_of("mismatches") is Unit.COUNT
    assert unit_of("throughput_rps") is Unit.RATE

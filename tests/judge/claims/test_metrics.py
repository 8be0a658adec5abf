"""Every metric that a study file may name can be taken, and only those."""

from dataclasses import replace

from tests.judge import made

from velodrome.judge.field import runners
from velodrome.judge.metrics import TAKING, Cell
from velodrome.judge.statistics import NOISE, Series
from velodrome.model.condition import METRICS, unit_of
from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import Latency
from velodrome.model.quantity import Unit
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


def measured(load: Load, answers: float, cpu_s: float, p50_ms: float) -> Cell:
    question = Question("q", made.HELLO, (load,))
    measurement = made.measured(made.trial("uvicorn", question, 0, load), answers)
    latency = Latency(p50_ms, p50_ms, p50_ms, p50_ms, p50_ms, p50_ms, p50_ms, p50_ms)
    measurement = replace(
        measurement,
        load=replace(measurement.load, due=latency, sent=latency),
        server=replace(measurement.server, cpu_s=cpu_s * measurement.load.duration_s),
    )
    (runner,) = runners(question, [measurement], made.STACKS)
    return Cell(question, runner)


def noise(metric: str, cell: Cell, load: Load) -> float:
    found = TAKING[metric].take(cell, load)
    assert isinstance(found, Series)
    return found.noise


def test_cpu_of_a_server_that_sleeps_most_of_the_time_is_taken_to_be_noisier() -> None:
    load = Load(Closed(4), 1)
    assert noise("cpu_us", measured(load, 4000, 0.9, 1), load) == 0.05
    assert noise("cpu_us", measured(load, 400, 0.1, 1), load) == 0.3


def test_the_rate_of_an_open_loop_that_is_kept_is_known_better_than_that_of_a_closed_one() -> None:
    load = Load(Open(500), 1)
    assert noise("throughput_rps", measured(load, 499, 0.1, 1), load) == 0.01
    assert noise("throughput_rps", measured(load, 400, 0.9, 1), load) == NOISE


def test_a_short_latency_is_taken_to_be_noisier_than_a_long_one() -> None:
    load = Load(Open(500), 1)
    assert noise("p50_ms", measured(load, 500, 0.1, 0.1), load) > 0.5
    assert noise("p50_ms", measured(load, 500, 0.1, 50.0), load) < 0.06

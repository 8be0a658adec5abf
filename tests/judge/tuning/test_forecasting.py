import pytest

from velodrome.judge.tuning.forecasting import crowd, enough, forecast, look_of, with_fewer_slots
from velodrome.model.trial import Contestant
from velodrome.model.tuning import Ask, Candidate, Looked, Observation

ALONE, MANY = Ask(0.7, connections=1), Ask(1.0, connections=32)
ONE = Candidate(Contestant("one"), processes=1, slots=None)


def test_a_look_parts_what_a_request_computes_from_what_it_waits() -> None:
    look = look_of(
        ONE, Observation(ALONE, 19.0, mean_ms=52.0), Observation(MANY, 480.0, mean_ms=66.0, cpu_us=2_000), 2
    )
    assert look is not None
    assert look.wait_ms == pytest.approx(50.0)
    assert look.at_once is None  # its CPU was full


def test_a_pool_shows_as_requests_that_are_in_work_at_once() -> None:
    """32 connections, 20 ms each, 250/s: five at once, and the CPU has nothing to do."""
    look = look_of(
        ONE, Observation(ALONE, 50.0, mean_ms=20.0), Observation(MANY, 250.0, mean_ms=128.0, cpu_us=400), 2
    )
    assert look is not None
    assert look.at_once == pytest.approx(5.0)
    four = forecast(Candidate(Contestant("one"), 4, None), look, 2)
    assert four.rps == pytest.approx(1_000)
    assert four.arithmetic == "4 × 5.00 at once ÷ 20.0 ms = 1 000/s"


def test_connections_that_are_all_in_work_say_nothing_of_a_pool() -> None:
    look = look_of(
        ONE, Observation(ALONE, 5.0, mean_ms=200.0), Observation(MANY, 158.0, mean_ms=202.0, cpu_us=500), 2
    )
    assert look is not None
    assert look.at_once is None


def test_the_lowest_bound_applies() -> None:
    look = Looked(alone_ms=52.0, cpu_us=2_000, rps=480, memory_bytes=40_000_000, processes=1, at_once=None)
    slots = forecast(Candidate(Contestant("threads"), 2, 8), look, 2)
    assert slots.rps == pytest.approx(8 / 0.052)
    assert slots.arithmetic == "8 slots ÷ 52.0 ms = 154/s"
    cpu = forecast(Candidate(Contestant("threads"), 2, 512), look, 2)
    assert cpu.rps == pytest.approx(1_000)
    assert cpu.arithmetic == "2 CPUs ÷ 2 000 µs = 1 000/s"
    assert cpu.needs == pytest.approx(52)
    alone = forecast(Candidate(Contestant("one"), 1, None), look, 2)
    assert alone.arithmetic == "1 CPU ÷ 2 000 µs = 500/s"
    assert cpu.memory_bytes == pytest.approx(40e6 * 1.35)


def test_what_answered_nothing_is_no_look() -> None:
    assert look_of(ONE, Observation(ALONE), Observation(MANY), 2) is None


def threads(count: int) -> Candidate:
    return Candidate(Contestant("threaded", {"threads": count}), processes=1, slots=count)


THREADED = [threads(count) for count in (4, 16, 64, 256)]


def test_fewer_slots_are_looked_at_where_they_hold_what_was_in_work() -> None:
    quick = look_of(
        THREADED[-1], Observation(ALONE, 3_000.0, mean_ms=0.3), Observation(MANY, 5_400.0, cpu_us=180), 1
    )
    assert quick is not None
    assert enough(THREADED, quick) == THREADED[0]
    waits = look_of(
        THREADED[-1], Observation(ALONE, 16.0, mean_ms=60.0), Observation(MANY, 526.0, cpu_us=200), 1
    )
    assert waits is not None
    assert enough(THREADED, waits) == THREADED[2]
    assert enough([threads(256)], quick) is None


def test_a_request_costs_what_a_process_of_so_many_threads_makes_of_it() -> None:
    look = look_of(
        THREADED[-1], Observation(ALONE, 3_000.0, mean_ms=0.3), Observation(MANY, 5_400.0, cpu_us=180), 1
    )
    assert look is not None
    look = with_fewer_slots(look, THREADED[0], Observation(MANY, 10_000.0, cpu_us=100))
    assert [look.costs_us(count) for count in (1, 4, 256, 1_000, None)] == [100, 100, 180, 180, 180]
    assert 100 < look.costs_us(16) < look.costs_us(64) < 180
    assert forecast(THREADED[0], look, 1).rps == pytest.approx(10_000)


def test_a_look_at_fewer_slots_that_came_to_nothing_changes_nothing() -> None:
    look = look_of(
        THREADED[-1], Observation(ALONE, 3_000.0, mean_ms=0.3), Observation(MANY, 5_400.0, cpu_us=180), 1
    )
    assert look is not None
    assert with_fewer_slots(look, THREADED[0], Observation(MANY, failed="its process ended")) == look


def test_a_server_whose_requests_wait_is_looked_at_by_as_many_as_keep_its_cpu_busy() -> None:
    assert crowd(ONE, Observation(ALONE, 900.0, mean_ms=1.1, cpu_us=1_000)) == 32
    assert crowd(ONE, Observation(ALONE, 95.0, mean_ms=10.5, cpu_us=300)) == 140
    assert crowd(ONE, Observation(ALONE, 16.0, mean_ms=60.0, cpu_us=200)) == 512
    assert crowd(threads(64), Observation(ALONE, 16.0, mean_ms=60.0, cpu_us=200)) == 128
    assert crowd(threads(4), Observation(ALONE, 16.0, mean_ms=60.0, cpu_us=200)) == 32
    assert crowd(ONE, Observation(ALONE, 16.0, mean_ms=60.0)) == 32

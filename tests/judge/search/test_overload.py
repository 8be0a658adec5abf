"""Overload: what is answered meanwhile, and how long it is felt, beside what a queue in turn must do by arithmetic."""

from dataclasses import replace

import pytest
from tests.judge import made, queued

from velodrome.judge.search.load_levels import (
    AFTER,
    DURING,
    TIMES,
    USUAL,
    after_overload,
    back_to_normal,
    normal_ms,
    schedule,
)
from velodrome.model.load import Load
from velodrome.model.measurement import FlagKind, LoadSecond, Measurement, Severity

SERVICE_S = 0.005
CAPACITY = 1 / SERVICE_S
LOOK_S = 3.0
PACES = {times: schedule(CAPACITY, times, LOOK_S, "poisson") for times in TIMES}


def overloaded(times: float, seed: int = 1) -> Measurement:
    pace = PACES[times]
    return queued.measured(made.trial("uvicorn", load=Load(pace, pace.span_s)), SERVICE_S, seed)


def second(at: int, p99_ms: float | None = 2.0, errors: int = 0, in_flight: int = 0) -> LoadSecond:
    return LoadSecond(float(at), 10, 10 - errors, errors, in_flight, p99_ms, p99_ms, p99_ms)


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("seed", range(5))
def test_a_queue_in_turn_does_its_capacity_and_is_worked_off_in_the_time_that_arithmetic_says(
    times: float, seed: int
) -> None:
    found = after_overload(times, PACES[times], overloaded(times, seed))
    assert found.goodput_rps == pytest.approx(CAPACITY, rel=0.03)
    assert found.rate == times * CAPACITY
    lasts = (times - 1) / (1 - USUAL) * DURING * LOOK_S
    assert found.back_s is not None
    # Whole seconds, and a busy second may follow by chance.
    assert lasts - 2 <= found.back_s <= lasts + 3
    assert found.failed == 0


def test_a_second_is_normal_up_to_twice_the_slowest_before_or_a_millisecond_more() -> None:
    assert normal_ms([second(0, 2.0), second(1, 3.0), second(2, 40.0)], before_s=2) == 6.0
    assert normal_ms([second(0, 0.2), second(1, 0.3)], before_s=2) == 1.3
    assert normal_ms([second(0, None)], before_s=1) is None


def test_normal_are_three_seconds_in_a_row() -> None:
    def back(*after: LoadSecond) -> float | None:
        return back_to_normal([second(0), second(1, 90.0), *after], 1, 2, len(after))

    quick = [second(at) for at in range(2, 9)]
    assert back(*quick) == 0.0
    assert back(second(2), second(3), second(4, 9.0), *quick[3:]) == 3.0
    assert back(second(2, 9.0), second(3), second(4)) is None


def test_failures_and_a_silence_with_requests_in_flight_are_not_normal() -> None:
    before = [second(0), second(1, 90.0)]
    rest = [second(at) for at in range(3, 8)]
    assert back_to_normal([*before, second(2, errors=1), *rest], 1, 2, 6) == 1.0
    assert back_to_normal([*before, second(2, None, in_flight=4), *rest], 1, 2, 6) == 1.0
    assert back_to_normal([*before, second(2, None), *rest], 1, 2, 6) == 0.0


def test_a_growing_queue_and_errors_are_its_result_and_what_the_lab_did_is_not() -> None:
    good = overloaded(1.5)
    own = (FlagKind.NOT_STATIONARY, FlagKind.ERRORS, FlagKind.CAPPED_BY_CONNECTIONS)
    for kind in own:
        spoilt = replace(good, flags=(replace(made.INVALID, kind=kind),))
        assert after_overload(1.5, PACES[1.5], spoilt).goodput_rps is not None
    for kind in (FlagKind.GENERATOR_SATURATED, FlagKind.CPU_STEAL):
        spoilt = replace(good, flags=(replace(made.INVALID, kind=kind),))
        found = after_overload(1.5, PACES[1.5], spoilt)
        assert found.goodput_rps is None
        assert found.why == made.INVALID.sentence
    noted = replace(made.INVALID, kind=FlagKind.CPU_STEAL, severity=Severity.NOTE)
    assert after_overload(1.5, PACES[1.5], replace(good, flags=(noted,))).goodput_rps is not None


def test_a_server_that_dies_or_cannot_be_loaded_is_reported_so() -> None:
    dead = made.failed(made.trial("uvicorn"), "its process ended")
    assert after_overload(1.5, PACES[1.5], dead).why == "its process ended"
    flag = replace(made.INVALID, kind=FlagKind.SERVER_DIED, sentence="It died.")
    found = after_overload(1.5, PACES[1.5], replace(overloaded(1.5), flags=(flag,)))
    assert (found.why, found.back_s) == ("It died.", None)
    assert found.goodput_rps is not None
    cut = overloaded(1.5)
    cut = replace(cut, load=replace(cut.load, steps=cut.load.steps[:1]))
    assert after_overload(1.5, PACES[1.5], cut).goodput_rps is None


def test_it_is_watched_for_longer_than_a_queue_in_turn_takes() -> None:
    for times, pace in PACES.items():
        assert pace.steps[2].duration_s == AFTER * LOOK_S > (times - 1) / (1 - USUAL) * DURING * LOOK_S
        assert all(step.duration_s == round(step.duration_s) for step in pace.steps)

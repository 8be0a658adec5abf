"""What is reported of latency when a load was made by a generator that reports less than velodrome's own."""

import dataclasses
from typing import Any

import pytest
from tests.judge import made

from velodrome.judge.field import runners
from velodrome.judge.standings import FROM_DUE, latency_view
from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import (
    UNKNOWN_LATENCY,
    Fairness,
    Flag,
    FlagKind,
    Latency,
    Measurement,
    Severity,
)
from velodrome.model.study import Question
from velodrome.model.verdict import LatencyView, Outcome

BY_WRK = Load(Closed(40), 2.0, driver="wrk")
BY_GHZ = Load(Closed(1), 2.0, streams=100, driver="ghz")
AT_RATE = Load(Open(100), 2.0, driver="ghz")


def foreign(load: Load, block: int, rps: float, sent: Latency = UNKNOWN_LATENCY, **facts: Any) -> Measurement:
    """A measurement by another driver: nothing from when requests were due."""
    question = Question("hello", made.HELLO, (load,))
    measurement = made.measured(made.trial("uvicorn", question, block, load), rps)
    reported = dataclasses.replace(
        measurement.load, due=UNKNOWN_LATENCY, sent=sent, hdr_due=None, hdr_sent=None, mean_in_flight=None,
        driver=load.driver, driver_version="4.1", latency_is="service time", checks="the HTTP status",
        connections_answered=None, **facts
    )  # fmt: skip
    return dataclasses.replace(measurement, load=reported)


def at(p50: float, p99: float) -> Latency:
    return Latency(p50, p50, p50, p50, None, p99, None, 2 * p99)


def view(load: Load, *measured: Measurement) -> LatencyView:
    question = Question("hello", made.HELLO, (load,))
    found = latency_view(runners(question, measured, made.STACKS)[0], load)
    assert found is not None
    return found


def test_percentiles_of_one_block_are_as_the_tool_reported_them_and_named_so() -> None:
    found = view(BY_WRK, foreign(BY_WRK, 0, 1000, at(1.5, 9.0)))
    assert (found.p50_ms, found.p99_ms, found.p99_9_ms, found.max_ms) == (1.5, 9.0, None, 18.0)
    assert found.by is not None
    assert (found.by.name, found.by.version, found.by.basis) == ("wrk", "4.1", "service time (wrk)")
    assert {"latency from when due", "p99.9", "histograms", "each second"} <= set(found.by.untold)


def test_percentiles_of_several_blocks_without_histograms_are_bounds_never_a_mean() -> None:
    found = view(BY_WRK, foreign(BY_WRK, 0, 1000, at(1.0, 9.0)), foreign(BY_WRK, 1, 1000, at(2.0, 8.0)))
    assert (found.p50_ms, found.p99_ms) == (None, None)
    assert found.between["p50_ms"] == (1.0, 2.0)
    assert found.between["p99_ms"] == (8.0, 9.0)
    assert found.max_ms == 18.0, "the slowest of all is the slowest of the slowest"


def test_a_percentile_with_too_few_requests_beyond_it_is_missing_whoever_reported_it() -> None:
    found = view(BY_WRK, foreign(BY_WRK, 0, 50, at(1.0, 9.0)))
    assert found.p50_ms == 1.0
    assert found.p99_ms is None
    assert "p99_ms" not in found.between


def test_a_tool_that_reports_every_request_has_its_blocks_merged() -> None:
    times = [made.encode([1_000_000] * 500), made.encode([3_000_000] * 500)]
    blocks = [foreign(BY_GHZ, block, 250, at(9.0, 9.0)) for block in (0, 1)]
    merged = [
        dataclasses.replace(measurement, load=dataclasses.replace(measurement.load, hdr_sent=text))
        for measurement, text in zip(blocks, times, strict=True)
    ]
    found = view(BY_GHZ, *merged)
    assert found.p50_ms == pytest.approx(1.0, rel=0.01)
    assert found.p90_ms == pytest.approx(3.0, rel=0.01)
    assert found.curve_due == ()
    assert found.curve_sent
    assert found.by is not None
    assert found.by.basis == "service time (ghz)"


def test_velodromes_own_is_from_when_due() -> None:
    found = view(made.CLOSED, made.measured(made.trial("uvicorn"), 100, latencies_ms=[1.0] * 100))
    assert found.by is not None
    assert (found.by.name, found.by.basis, found.by.untold) == ("velodrome", FROM_DUE, ())


def test_a_closed_loop_by_another_driver_ranks() -> None:
    question = Question("hello", made.HELLO, (BY_WRK,))
    trials = [foreign(BY_WRK, block, 1000 + block) for block in range(3)]
    answer = made.verdict(list(trials), question).answers[0]
    assert answer.outcome is Outcome.WINNER
    assert answer.standings[0].rank == 1


def test_an_open_loop_without_latency_from_when_due_ranks_nobody_and_says_why() -> None:
    question = Question("hello", made.HELLO, (AT_RATE,))
    trials = [foreign(AT_RATE, block, 100, at(1.0, 2.0)) for block in range(3)]
    answer = made.verdict(list(trials), question).answers[0]
    assert answer.outcome is Outcome.CANNOT_TELL
    assert "ghz does not report latency from when requests were due" in answer.sentence
    assert answer.standings[0].rank is None


def test_streams_count_as_connections_where_arithmetic_bounds_a_closed_loop() -> None:
    question = Question("third-party", made.THIRD_PARTY, (BY_GHZ,))
    measurement = made.measured(made.trial("uvicorn", question, 0, BY_GHZ), 400)
    ceiling = runners(question, [measurement], made.STACKS)[0].ceiling(question, BY_GHZ)
    assert ceiling is not None
    assert ceiling.arithmetic == "100 ÷ 0.2 s = 500/s"


UNFAIR = Flag(
    FlagKind.UNFAIR, Severity.NOTE, "At any time about 3 of 40 connections got the answers.", "Yield."
)


def unfair(block: int, median_ms: float | None, flags: tuple[Flag, ...] = (UNFAIR,)) -> Measurement:
    """A server in whose closed loop half of the requests took 0.2 ms, and the median connection this."""
    measurement = made.measured(
        made.trial("uvicorn", block=block), 1000, latencies_ms=[0.2] * 990 + [600.0] * 10, flags=flags
    )
    fairness = Fairness(40, 2000, 10, 90, 0.9, 0.1, 6.0, median_ms)
    return dataclasses.replace(measurement, load=dataclasses.replace(measurement.load, fairness=fairness))


def test_the_median_of_a_server_that_starves_connections_is_that_of_connections() -> None:
    found = view(made.CLOSED, unfair(0, 35.0))
    assert (found.p50_ms, found.p50_by_connection) == (35.0, True)
    assert found.p99_ms is not None
    several = view(made.CLOSED, unfair(0, 35.0), unfair(1, 41.0), unfair(2, 38.0, flags=()))
    assert (several.p50_ms, several.between["p50_ms"]) == (None, (35.0, 41.0)), "medians are never averaged"


def test_a_median_connection_without_an_answer_has_no_latency() -> None:
    found = view(made.CLOSED, unfair(0, 35.0), unfair(1, None))
    assert (found.p50_ms, dict(found.between)) == (None, {})


def test_the_median_of_a_fair_server_is_that_of_requests() -> None:
    found = view(made.CLOSED, unfair(0, 35.0, flags=()))
    assert found.p50_ms == pytest.approx(0.2, rel=0.01)
    assert not found.p50_by_connection

"""Requests logged one by one: percentiles, a histogram that the judge reads, and each second."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from velodrome.judge import histograms
from velodrome.model.measurement import UNKNOWN_LATENCY
from velodrome.run.drivers import request_log
from velodrome.run.drivers.request_log import RequestLog


def calls(
    took_ms: list[float], ended_ms: list[float] | None = None, wrong: frozenset[int] = frozenset()
) -> RequestLog:
    took = np.array([round(ms * 1e6) for ms in took_ms], np.int64)
    ended = took + 10**9 if ended_ms is None else np.array([round(ms * 1e6) for ms in ended_ms], np.int64)
    right = np.array([place not in wrong for place in range(len(took_ms))])
    return RequestLog(ended, took, right, timed=np.ones(len(took_ms), bool))


def test_percentiles_are_the_times_within_which_so_many_were_answered() -> None:
    latency = calls([float(ms) for ms in range(1, 1001)]).latency()
    assert (latency.p50, latency.p99, latency.p99_9, latency.max) == (500, 990, 999, 1000)
    assert latency.mean == 500.5


def test_no_call_has_no_latency() -> None:
    assert calls([]).latency() == UNKNOWN_LATENCY
    assert calls([]).series(1.0) == ()


@given(some.lists(some.integers(0, 1 << 40), min_size=1))
def test_the_judge_reads_the_histogram_as_it_was_written(values: list[int]) -> None:
    read = histograms.decode(request_log.histogram_text(np.array(values, np.int64)))
    assert read.total == len(values)
    for percentile in (50, 99, 100):
        exact = sorted(values)[max(1, -(-percentile * len(values) // 100)) - 1]
        decoded = (read.percentile_ms(percentile) or 0) * 1e6
        assert exact <= decoded + 0.5
        assert decoded <= exact * 1.001 + 1


def test_each_second_counts_what_ended_in_it_and_what_was_in_flight_at_its_end() -> None:
    # two requests at once: one ends in the first second, one in the second; a third fails in the second
    found = calls([500, 1500, 200], [500, 1500, 1900], frozenset({2})).series(2.0)
    assert [(s.requests, s.ok, s.errors, s.in_flight) for s in found] == [(1, 1, 0, 1), (2, 1, 1, 0)]
    assert found[0].p50_ms == 500


def test_clocks_that_no_load_has_are_refused() -> None:
    with pytest.raises(ValueError, match="less than no time"):
        calls([-1.0])
    with pytest.raises(ValueError, match="days apart"):
        calls([1.0, 1.0], [1.0, 1e12]).series(1.0)

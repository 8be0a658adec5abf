from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from velodrome.model.bottleneck import generator_fault
from velodrome.model.load import Open
from velodrome.model.measurement import Flag, FlagKind, Latency, Severity

Flags = Callable[..., dict[FlagKind, Flag]]


def latency(**changes: float) -> Latency:
    return replace(Latency(10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0), **changes)


def test_a_sound_measurement_raises_nothing(raised: Flags) -> None:
    assert raised() == {}


def test_a_generator_without_cpu_left_is_reported_with_its_share(raised: Flags) -> None:
    flag = raised({"generator_saturated": True, "generator_cpu_s": 9.8})[FlagKind.GENERATOR_SATURATED]
    assert flag.severity is Severity.INVALID
    assert "98 % of its core" in flag.sentence


def test_several_generator_threads_share_several_cores(raised: Flags) -> None:
    facts = {"generator_saturated": True, "generator_cpu_s": 19.0, "generator_threads": 2}
    assert "95 % of its 2 cores" in raised(facts)[FlagKind.GENERATOR_SATURATED].sentence


@pytest.mark.parametrize(
    ("lag_p99", "due_p99", "severity"),
    [
        (0.4, 0.5, None),  # below half a millisecond nothing turns on it
        (0.9, 10.0, None),  # 9 %
        (2.0, 10.0, Severity.NOTE),
        (6.0, 10.0, Severity.NOTE),  # most of it is ours, but every virtual machine pauses that long
        (15.0, 20.0, Severity.INVALID),
    ],
)
def test_lag_counts_by_its_share_of_the_latency_shown(
    raised: Flags, lag_p99: float, due_p99: float, severity: Severity | None
) -> None:
    found = raised(
        {"lag": latency(p50=0.0, p99=lag_p99), "due": latency(p99=due_p99)}, pace=Open(4000, connections=500)
    )
    flag = found.get(FlagKind.GENERATOR_LAGGED)
    assert (flag.severity if flag else None) is severity


def test_lag_at_the_median_spoils_the_run_at_any_length(raised: Flags) -> None:
    facts = {"lag": latency(p50=1.5, p99=1.5), "due": latency(p50=2.0, p99=20.0)}
    flag = raised(facts, pace=Open(4000, connections=500))[FlagKind.GENERATOR_LAGGED]
    assert flag.severity is Severity.INVALID
    assert "at p50 is 1.5 ms" in flag.sentence


def test_missing_percentiles_are_no_lag(raised: Flags) -> None:
    nothing = Latency(None, None, None, None, None, None, None, None)
    assert FlagKind.GENERATOR_LAGGED not in raised({"lag": nothing})


def test_an_open_loop_that_needs_more_connections_than_allowed_is_a_closed_loop(raised: Flags) -> None:
    slow = {"sent": latency(mean=125.0), "throughput_rps": 3200.0}
    flag = raised(slow, pace=Open(4000, connections=400), wait_ms=125.0)[FlagKind.CAPPED_BY_CONNECTIONS]
    assert flag.severity is Severity.INVALID
    assert "All 400 connections were in use: 4,000/s × 125 ms needs 500" in flag.sentence
    assert "600 connections" in flag.advice


def test_a_server_that_is_slow_by_itself_uses_up_the_connections_and_that_is_its_own_doing(
    raised: Flags,
) -> None:
    slow = {"sent": latency(mean=300.0), "throughput_rps": 1300.0, "mean_in_flight": 400.0}
    flag = raised(slow, pace=Open(4000, connections=400), wait_ms=10.0)[FlagKind.CAPPED_BY_CONNECTIONS]
    assert flag.severity is Severity.NOTE


def test_enough_connections_cap_nothing(raised: Flags) -> None:
    facts: dict[str, Any] = {"sent": latency(mean=125.0), "mean_in_flight": 500.0}
    assert FlagKind.CAPPED_BY_CONNECTIONS not in raised(
        facts, pace=Open(4000, connections=600), wait_ms=125.0
    )


def test_what_the_engine_saw_of_the_cap_is_believed_and_no_arithmetic_made_up(raised: Flags) -> None:
    facts = {"engine_flags": ("capped-by-connections",)}
    flag = raised(facts, pace=Open(4000, connections=50))[FlagKind.CAPPED_BY_CONNECTIONS]
    assert flag.severity is Severity.NOTE
    assert "All 50 connections were in use for a time" in flag.sentence
    assert "needs" not in flag.sentence


def test_a_debug_build_measures_nothing(raised: Flags) -> None:
    assert raised({"generator_debug": True})[FlagKind.DEBUG_BUILD].severity is Severity.INVALID


def test_a_generator_is_judged_by_the_rule_that_bottlenecks_are_found_by(raised: Flags) -> None:
    for cpu_s in (8.9, 9.0, 9.1):
        flag = raised({"generator_cpu_s": cpu_s}).get(FlagKind.GENERATOR_SATURATED)
        assert (flag is None) is (generator_fault(cpu_s / 10.0) is None)


def test_a_tool_that_runs_longer_than_its_span_is_judged_by_all_of_its_time(raised: Flags) -> None:
    facts = {"driver": "ghz", "generator_cpu_s": 9.8, "generator_ran_s": 14.0}
    assert FlagKind.GENERATOR_SATURATED not in raised(facts)

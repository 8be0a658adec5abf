from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from velodrome.model.load import Open, Schedule, Step
from velodrome.model.measurement import Flag, FlagKind, Latency, LoadSecond, QueueFacts, Severity
from velodrome.run.validity.server import relative_change

Flags = Callable[..., dict[FlagKind, Flag]]
FLAT = Latency(10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0)


def seconds(values: Sequence[float], p50: Sequence[float] | None = None) -> tuple[LoadSecond, ...]:
    middle = p50 or [10.0] * len(values)
    return tuple(
        LoadSecond(float(at), int(ok), int(ok), 0, 40, ms, ms, ms)
        for at, (ok, ms) in enumerate(zip(values, middle, strict=True))
    )


@pytest.mark.parametrize(("mean_ms", "raises"), [(10.0, False), (9.2, False), (8.0, True), (13.0, True)])
def test_connections_must_be_throughput_times_latency(raised: Flags, mean_ms: float, raises: bool) -> None:
    assert (FlagKind.LITTLES_LAW in raised({"sent": replace(FLAT, mean=mean_ms)})) is raises


def test_the_arithmetic_of_littles_law_is_shown(raised: Flags) -> None:
    flag = raised({"sent": replace(FLAT, mean=5.0)})[FlagKind.LITTLES_LAW]
    assert flag.severity is Severity.INVALID
    assert "4,000/s × 5 ms makes 20 requests in flight, but 40 connections were requested" in flag.sentence


def test_messages_to_a_room_are_held_against_those_kept_on_their_way(raised: Flags) -> None:
    flag = raised({"at_once": 2})[FlagKind.LITTLES_LAW]
    assert "makes 40 requests in flight, but 2 messages to all were kept on their way" in flag.sentence
    assert FlagKind.LITTLES_LAW not in raised({"at_once": 2, "sent": replace(FLAT, mean=0.5)})


def test_requests_that_straddle_the_ends_of_a_short_span_break_no_law(raised: Flags) -> None:
    facts = {"duration_s": 3.0, "sent": replace(FLAT, mean=1000.0), "throughput_rps": 30.0, "requests": 90}
    assert FlagKind.LITTLES_LAW not in raised(facts)


def test_a_server_that_serves_some_connections_and_lets_the_others_wait_breaks_no_law(raised: Flags) -> None:
    # 18 of the 40 have a request in flight at the end that began more than a second before.
    starved: dict[str, object] = {"duration_s": 2.0, "sent": replace(FLAT, mean=5.5, p50=0.3, max=1400.0)}
    assert FlagKind.LITTLES_LAW not in raised(starved)
    assert FlagKind.LITTLES_LAW in raised(starved | {"duration_s": 10.0})
    assert FlagKind.LITTLES_LAW in raised(starved | {"sent": replace(FLAT, mean=5.5, max=30.0)})


def test_connections_that_a_server_starves_all_through_the_span_break_no_law(raised: Flags) -> None:
    # Their requests never end, and a histogram of those that did has no latency of them.
    starved: dict[str, object] = {"sent": replace(FLAT, mean=2.0, max=30.0)}
    assert FlagKind.LITTLES_LAW in raised(starved)
    assert FlagKind.LITTLES_LAW not in raised(starved | {"engine_flags": ("unfair",)})
    more_than_there_are: dict[str, object] = {"sent": replace(FLAT, mean=20.0), "engine_flags": ("unfair",)}
    assert FlagKind.LITTLES_LAW in raised(more_than_there_are)


def test_connections_that_never_got_an_answer_need_not_be_in_the_law(raised: Flags) -> None:
    half: dict[str, object] = {"sent": replace(FLAT, mean=5.0, max=30.0)}
    flags = raised(half | {"connections_answered": 20})
    assert FlagKind.CONNECTIONS_NEVER_IN in flags
    assert FlagKind.LITTLES_LAW not in flags
    assert FlagKind.LITTLES_LAW in raised(half | {"connections_answered": 30})
    assert FlagKind.LITTLES_LAW in raised(
        half | {"sent": replace(FLAT, mean=20.0), "connections_answered": 20}
    )


def test_connections_that_lie_in_the_listen_queue_break_no_law_and_are_noted(raised: Flags) -> None:
    half: dict[str, object] = {"sent": replace(FLAT, mean=5.0, max=30.0)}
    flags = raised(half, sampled={"queue": QueueFacts(20, 2048, 0, 0)})
    assert FlagKind.LITTLES_LAW not in flags
    assert flags[FlagKind.UNFAIR].severity is Severity.NOTE
    assert flags[FlagKind.UNFAIR].facts["outside"] == pytest.approx(20)
    assert FlagKind.LITTLES_LAW in raised(half, sampled={"queue": QueueFacts(5, 2048, 0, 0)})


def test_an_open_loop_is_held_against_requests_seen_in_flight(raised: Flags) -> None:
    pace = Open(4000, connections=1000)
    assert FlagKind.LITTLES_LAW not in raised({"mean_in_flight": 41.0}, pace=pace)
    assert FlagKind.LITTLES_LAW in raised({"mean_in_flight": 80.0}, pace=pace)
    assert FlagKind.LITTLES_LAW not in raised({"mean_in_flight": None}, pace=pace)


@pytest.mark.parametrize("closes", [{"connections_reopened": 40_000}, {"keepalive": False}])
def test_opening_a_connection_for_each_request_is_no_breach(raised: Flags, closes: dict[str, int]) -> None:
    facts: dict[str, object] = {"sent": replace(FLAT, mean=5.0), "due": FLAT}
    keepalive = "keepalive" not in closes
    facts |= {name: value for name, value in closes.items() if name != "keepalive"}
    assert FlagKind.LITTLES_LAW not in raised(facts, keepalive=keepalive)
    facts["due"] = replace(FLAT, mean=5.0)
    assert FlagKind.LITTLES_LAW in raised(facts, keepalive=keepalive)


def test_the_law_is_not_held_against_a_queue_that_grows(raised: Flags) -> None:
    facts = {"throughput_rps": 40.0, "sent": replace(FLAT, mean=900.0), "mean_in_flight": 246.0}
    found = raised(facts, pace=Open(300, connections=400))
    assert FlagKind.NOT_STATIONARY in found
    assert FlagKind.LITTLES_LAW not in found


def test_errors_are_reported_as_errors_not_as_a_broken_law(raised: Flags) -> None:
    facts = {"outcomes": {"ok": 20_000, "reset": 20_000}, "throughput_rps": 2000.0}
    assert FlagKind.LITTLES_LAW not in raised(facts)


def test_a_rate_the_server_cannot_carry_measures_the_length_of_the_run(raised: Flags) -> None:
    facts = {"throughput_rps": 10.0, "series": seconds([10] * 10, [500.0] * 10)}
    flag = raised(facts, pace=Open(150, connections=1000))[FlagKind.NOT_STATIONARY]
    assert flag.severity is Severity.INVALID
    assert "carried 10/s of the 150/s offered" in flag.sentence


def test_the_last_latency_of_a_short_run_is_not_falling_behind(raised: Flags) -> None:
    facts = {"duration_s": 3.0, "throughput_rps": 186.0, "series": seconds([160, 200, 200], [202.0] * 3)}
    assert FlagKind.NOT_STATIONARY not in raised(facts, pace=Open(200, connections=1000), wait_ms=200.0)


def test_few_poisson_arrivals_scatter(raised: Flags) -> None:
    facts = {"duration_s": 3.0, "throughput_rps": 8.0, "series": seconds([8, 8, 8])}
    pace = Open(10, connections=1000)
    assert FlagKind.NOT_STATIONARY in raised(facts, pace=pace)
    assert FlagKind.NOT_STATIONARY not in raised(facts, pace=replace(pace, arrivals="poisson"))


def test_throughput_that_rises_all_through_had_not_settled(raised: Flags) -> None:
    flag = raised({"series": seconds([3000, 3200, 3500, 3700, 4000, 4200])})[FlagKind.NOT_STATIONARY]
    assert flag.severity is Severity.INVALID
    assert "throughput rose by" in flag.sentence


def test_latency_that_rises_all_through_an_open_loop_had_not_settled(raised: Flags) -> None:
    facts = {"series": seconds([4000] * 6, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0])}
    assert "p50 rose" in raised(facts, pace=Open(4000))[FlagKind.NOT_STATIONARY].sentence


@pytest.mark.parametrize(
    "values",
    [
        [3000, 3500, 4000, 4500],  # four seconds cannot tell
        [4000, 3990, 3980, 3970, 3960, 3950],  # a trend, but of 1 %
        [4000, 3000, 4200, 3100, 4100, 3300],  # large, but no trend
        [4000] * 10,
    ],
)
def test_noise_and_short_runs_are_no_trend(raised: Flags, values: list[float]) -> None:
    assert FlagKind.NOT_STATIONARY not in raised({"series": seconds(values)})


def test_the_broken_second_at_the_end_is_left_out(raised: Flags) -> None:
    facts = {"duration_s": 5.4, "series": seconds([4000, 4000, 4000, 4000, 4000, 1600])}
    assert FlagKind.NOT_STATIONARY not in raised(facts)


def test_one_second_that_stalled_is_noted_and_no_trend(raised: Flags) -> None:
    flag = raised({"series": seconds([4000, 4000, 600, 4000, 4000, 4000])})[FlagKind.NOT_STATIONARY]
    assert flag.severity is Severity.NOTE
    assert "second from 2 s on 600 requests" in flag.sentence


@given(st.lists(st.floats(1, 1e6), max_size=12))
def test_a_trend_backwards_is_the_opposite_trend(values: list[float]) -> None:
    forward, backward = relative_change(values), relative_change(values[::-1])
    assert (forward is None) is (backward is None)
    if forward is not None and backward is not None:
        assert forward == pytest.approx(-backward)


def test_a_rate_that_changes_is_no_trend_and_no_stall(raised: Flags) -> None:
    steps = tuple(Step(rate, 1.0) for rate in range(100, 1100, 100))
    rising = seconds([100.0 * at for at in range(1, 11)], [10.0 * at for at in range(1, 11)])
    assert FlagKind.NOT_STATIONARY in raised({"series": rising}, pace=Open(550))
    assert FlagKind.NOT_STATIONARY not in raised({"series": rising}, pace=Schedule(steps))
    assert FlagKind.LITTLES_LAW not in raised({"mean_in_flight": 80.0}, pace=Schedule(steps))

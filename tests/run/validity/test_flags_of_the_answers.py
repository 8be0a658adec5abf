from collections.abc import Callable
from dataclasses import replace

import pytest

from velodrome.model.load import Closed, Open
from velodrome.model.measurement import Fairness, Flag, FlagKind, IdleFacts, Severity

Flags = Callable[..., dict[FlagKind, Flag]]


@pytest.mark.parametrize(
    ("failed", "severity"), [(0, None), (1, Severity.NOTE), (399, Severity.NOTE), (400, Severity.INVALID)]
)
def test_one_request_in_a_hundred_that_fails_sets_the_measurement_aside(
    raised: Flags, failed: int, severity: Severity | None
) -> None:
    flag = raised({"outcomes": {"ok": 40_000 - failed, "reset": failed}}).get(FlagKind.ERRORS)
    assert (flag.severity if flag else None) is severity


def test_failures_are_counted_by_kind(raised: Flags) -> None:
    flag = raised({"outcomes": {"ok": 38_000, "bad_status": 1500, "timeout": 500}})[FlagKind.ERRORS]
    assert "2,000 of 40,000 requests failed (5.0 %): 500 timeout, 1,500 bad status." in flag.sentence
    assert flag.facts["bad_status"] == 1500


def test_requests_in_flight_at_the_end_are_no_errors(raised: Flags) -> None:
    assert FlagKind.ERRORS not in raised({"outcomes": {"ok": 39_960, "unfinished": 40}})


def test_a_server_that_answers_before_it_has_read_is_found_out(raised: Flags) -> None:
    flag = raised({"answered_before_read": 40_000})[FlagKind.ANSWERED_BEFORE_READ]
    assert flag.severity is Severity.INVALID
    assert FlagKind.ANSWERED_BEFORE_READ not in raised({"answered_before_read": 0})
    assert FlagKind.ANSWERED_BEFORE_READ not in raised({"answered_before_read": None})


def test_connections_kept_out_are_counted(raised: Flags) -> None:
    flag = raised({"connections_answered": 28})[FlagKind.CONNECTIONS_NEVER_IN]
    assert flag.severity is Severity.INVALID
    assert flag.sentence.startswith("12 of 40 connections never got an answer")
    assert "the load of 28 connections" in flag.sentence


def test_a_connection_that_had_no_time_for_its_turn_was_not_kept_out(raised: Flags) -> None:
    slow = {"throughput_rps": 5.0, "duration_s": 3.0, "connections_answered": 25}
    assert FlagKind.CONNECTIONS_NEVER_IN not in raised(slow)


def test_an_open_loop_opens_what_it_needs_so_none_is_kept_out(raised: Flags) -> None:
    found = raised({"connections_answered": 28}, pace=Open(4000, connections=1000))
    assert FlagKind.CONNECTIONS_NEVER_IN not in found


@pytest.mark.parametrize(
    ("idle", "severity", "sentence"),
    [
        (None, None, ""),
        (IdleFacts(950, 950, 950, 950), None, ""),
        (IdleFacts(950, 950, 945, 945), None, ""),
        (IdleFacts(950, 950, None, 950), None, ""),
        (
            IdleFacts(950, 950, 2, 950),
            Severity.NOTE,
            "Of 950 idle connections the server had taken in 2; the others",
        ),
        (IdleFacts(950, 950, 950, 12), Severity.INVALID, "950 could be opened, 938 of them the server ended"),
        (IdleFacts(950, 30, 30, 30), Severity.INVALID, "Of 950 idle connections 30 were there at the end"),
    ],
)
def test_idle_connections_that_were_not_held_are_reported(
    raised: Flags, idle: IdleFacts | None, severity: Severity | None, sentence: str
) -> None:
    flag = raised(idle=idle).get(FlagKind.IDLE_NOT_HELD)
    assert (flag.severity if flag else None) is severity
    assert flag is None or sentence in flag.sentence


@pytest.mark.parametrize(
    ("answered", "severity"),
    [(9, Severity.INVALID), (10, Severity.NOTE), (999, Severity.NOTE), (1000, None)],
)
def test_a_percentile_needs_ten_requests_beyond_it(
    raised: Flags, answered: int, severity: Severity | None
) -> None:
    facts = {
        "requests": answered,
        "outcomes": {"ok": answered},
        "throughput_rps": answered / 10,
        "duration_s": 10.0,
    }
    flag = raised(facts).get(FlagKind.TOO_SHORT)
    assert (flag.severity if flag else None) is severity


def test_answers_to_requests_sent_before_the_span_are_throughput_without_latency(raised: Flags) -> None:
    queued = {
        "requests": 20,
        "outcomes": {"ok": 0, "unfinished": 20},
        "throughput_rps": 10.0,
        "duration_s": 2.0,
    }
    flag = raised(queued)[FlagKind.TOO_SHORT]
    assert flag.severity is Severity.NOTE
    assert flag.sentence.startswith("20 answers arrived, but only 0 to requests sent in the same span")
    assert raised(queued, pace=Open(100))[FlagKind.TOO_SHORT].severity is Severity.INVALID


def test_the_highest_percentile_that_holds_is_named(raised: Flags) -> None:
    sentence = raised({"requests": 500, "outcomes": {"ok": 500}})[FlagKind.TOO_SHORT].sentence
    assert "p99 rests on the slowest 5" in sentence
    assert "p98 is the highest" in sentence


@pytest.mark.parametrize("pace", [Closed(40), Open(20)])
def test_a_server_that_needs_longer_than_the_span_is_distinguished_from_one_that_fails(
    raised: Flags, pace: Closed | Open
) -> None:
    slow = {"requests": 40, "outcomes": {"unfinished": 40}, "throughput_rps": 0.0, "duration_s": 2.0}
    flag = raised(slow, pace=pace)[FlagKind.TOO_SHORT]
    assert flag.severity is Severity.INVALID
    assert flag.facts == {"answered": 0, "in_flight": 40}
    failing = {**slow, "outcomes": {"unfinished": 39, "reset": 1}}
    assert "in_flight" not in raised(failing, pace=pace)[FlagKind.TOO_SHORT].facts


STARVED = Fairness(64, 40_000, 500, 800, 0.97, 0.3, 16.0, 15.0)


@pytest.mark.parametrize(
    ("fairness", "engine_flags", "is_unfair"),
    [
        (STARVED, ("unfair",), True),
        (replace(STARVED, median_connection_ms=None), ("unfair",), True),
        (replace(STARVED, jain_short_term=0.99), (), False),
        (None, (), False),  # an open loop, another generator, an older result
    ],
)
def test_a_server_that_starves_connections_is_noted_as_unfair(
    raised: Flags, fairness: Fairness | None, engine_flags: tuple[str, ...], is_unfair: bool
) -> None:
    flag = raised({"fairness": fairness, "engine_flags": engine_flags}).get(FlagKind.UNFAIR)
    assert (flag is not None) is is_unfair
    if flag is None or fairness is None:
        return
    assert flag.severity is Severity.NOTE, "what it served is what it can do"
    assert flag.facts["jain_short_term"] == 0.3
    assert flag.facts.get("median_connection_ms") == fairness.median_connection_ms

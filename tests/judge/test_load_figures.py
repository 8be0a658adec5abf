import base64
import struct
import zlib
from typing import Any

import pytest

from velodrome.judge.load_figures import figures, requests_needed
from velodrome.model.condition import Beyond, because, decide, load_metric, read

NONE = dict.fromkeys(("mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "max"))


def encoded(counts: dict[int, int]) -> str:
    """Encode counts of whole nanoseconds below 2048, which have a bucket each."""
    payload = bytearray()
    for value in range(max(counts) + 1):
        number = counts.get(value, 0) << 1
        while number >= 0x80:
            payload.append(number & 0x7F | 0x80)
            number >>= 7
        payload.append(number)
    inner = struct.pack(">iiiiqqd", 0x1C849303, len(payload), 0, 3, 1, 3_600_000_000_000, 1.0) + bytes(
        payload
    )
    packed = zlib.compress(inner)
    return base64.b64encode(struct.pack(">ii", 0x1C849304, len(packed)) + packed).decode()


def document(**changes: Any) -> dict[str, Any]:
    percentiles = {**NONE, "mean": 0.0005, "p50": 0.0005, "p99": 0.00099, "max": 0.001}
    outcomes = {"ok": 990, "timeout": 10, "refused": 0, "unfinished": 0}
    found: dict[str, Any] = {
        "requests": 1_000,
        "ok": 990,
        "outcomes": outcomes,
        "duration_s": 10.0,
        "throughput_rps": 99.0,
        "mean_in_flight": 2.5,
        "latency_ms": {"due": percentiles, "sent": percentiles},
        "lag_ms": {**NONE, "p99": 0.2, "max": 0.3},
        "first_message_ms": None,
        "deliveries": None,
        "hdr": {"due": encoded(dict.fromkeys(range(1, 1_001), 1)), "sent": None, "deliveries": None},
        "generator": {"cpu_s": 2.0, "threads": 1},
        "load": {"model": "open"},
    }
    return found | changes


def value(name: str, counted: bool = False, **changes: Any) -> float | None:
    return figures(document(**changes))(load_metric(name), counted).value


def test_any_percentile_comes_from_the_histogram() -> None:
    assert value("p97.5") == pytest.approx(975e-6)
    assert value("p50") == pytest.approx(500e-6)


def test_a_percentile_with_too_few_requests_beyond_it_is_missing_and_says_how_many_it_needs() -> None:
    figure = figures(document())(load_metric("p99.9"), False)
    assert figure.value is None
    assert "it needs 10000 requests, and there were 1000" in figure.missing


@pytest.mark.parametrize(("name", "needed"), [("p50", 6), ("p99", 300), ("p99.9", 10_000), ("max", 1)])
def test_how_many_requests_a_percentile_needs(name: str, needed: int) -> None:
    assert requests_needed(load_metric(name)) == needed


def test_a_percentile_among_requests_that_were_given_up_is_a_lower_bound() -> None:
    outcomes = {"ok": 980, "timeout": 15, "unfinished": 5}
    look_up = figures(document(outcomes=outcomes))
    assert not look_up(load_metric("p98"), False).lower_bound
    assert look_up(load_metric("p98.5"), False).lower_bound
    assert look_up(load_metric("max"), False).lower_bound


def test_shares_and_their_counts() -> None:
    assert value("errors") == pytest.approx(0.01)
    assert value("errors", counted=True) == 10
    assert value("timeout") == pytest.approx(0.01)
    assert value("rate") == 99.0
    assert value("cpu") == pytest.approx(0.2)
    assert value("in_flight") == 2.5
    assert value("requests") == 1_000


def test_what_has_no_histogram_is_reported_as_far_as_it_is_known() -> None:
    assert value("lag.p99") == 0.2
    assert value("lag.p97") is None
    assert "only p50" in figures(document())(load_metric("lag.p97"), False).missing


def test_what_was_not_measured_is_missing_with_the_reason() -> None:
    closed = document(lag_ms=NONE, load={"model": "closed"})
    assert "closed loop" in figures(closed)(load_metric("lag.p99"), False).missing
    assert "TLS" in figures(document())(load_metric("tls.p99"), False).missing
    nothing = figures(document(requests=0, ok=0))
    assert nothing(load_metric("errors"), False).missing == "no request was made"


def test_in_a_closed_loop_what_was_in_flight_at_the_end_is_no_error() -> None:
    outcomes = {"ok": 900, "timeout": 10, "refused": 0, "unfinished": 90}
    closed = document(ok=900, outcomes=outcomes, load={"model": "closed"})
    assert figures(closed)(load_metric("errors"), True).value == 10
    assert figures(closed)(load_metric("unfinished"), True).value == 90
    opened = document(ok=900, outcomes=outcomes)
    assert figures(opened)(load_metric("errors"), True).value == 100


@pytest.mark.parametrize(
    ("name", "refused", "beyond"),
    [
        ("p99", 10, False),
        ("p99", 11, True),
        ("p50", 499, False),
        ("p50", 501, True),
        ("sent.p99", 20, True),
        ("max", 1, True),
        ("max", 0, False),
        ("mean", 9, False),
        ("mean", 20, True),
        ("lag.p99", 900, False),
        ("rate", 900, False),
    ],
)
def test_a_latency_that_lies_among_requests_without_any_is_beyond_every_limit(
    name: str, refused: int, beyond: bool
) -> None:
    outcomes = {"ok": 1_000 - refused, "refused": refused // 2, "reset": refused - refused // 2}
    histogram = encoded(dict.fromkeys(range(1, 1_001), 1))
    hdr = {"due": histogram, "sent": histogram, "deliveries": None}
    found = figures(document(outcomes=outcomes, ok=1_000 - refused, hdr=hdr))(load_metric(name), False)
    assert found.value is not None
    assert (found.beyond is Beyond.ABOVE) is beyond
    assert ("no latency" in found.but) is beyond


@pytest.mark.parametrize(
    ("name", "requests", "refused", "beyond"),
    [
        ("p99", 150, 150, True),
        ("p99", 10, 3, True),
        ("p99", 10, 2, False),
        ("p99", 299, 2, False),
        ("p99.9", 1_000, 9, False),
        ("p99.9", 1_000, 10, True),
        ("sent.p50", 5, 5, True),
        ("sent.p50", 4, 2, False),
        ("max", 1, 1, True),
        ("mean", 1, 1, True),
        ("lag.p99", 150, 150, False),
        ("tls.p99", 150, 150, False),
    ],
)
def test_a_latency_without_a_value_is_beyond_every_limit_where_enough_requests_have_none(
    name: str, requests: int, refused: int, beyond: bool
) -> None:
    answered = requests - refused
    histogram = encoded(dict.fromkeys(range(1, answered + 1), 1)) if answered else None
    statistics = {**NONE, "max": 0.001} if answered else NONE
    found = figures(
        document(
            requests=requests,
            ok=answered,
            outcomes={"ok": answered, "refused": refused},
            latency_ms={"due": statistics, "sent": statistics},
            lag_ms=NONE,
            hdr={"due": histogram, "sent": histogram, "deliveries": None},
        )
    )(load_metric(name), False)
    assert found.value is None
    assert (found.beyond is Beyond.ABOVE) is beyond
    assert ("of the requests have no latency (refused)" in found.but) is beyond
    decided = decide(read(f"{name} > 5ms"), lambda _metric, _counted: found)
    assert decided.holds is (True if beyond else None)
    assert ("counts as above every limit" in because(decided)) is beyond


def test_all_figures_of_a_silent_target_are_beyond_their_limits() -> None:
    alive = {"requests": 100, "ok": 100, "in_flight": 4, "waiting": 0, "p50_ms": 1.0}
    series = [{**alive, "at_s": float(at)} for at in range(7)]
    series += [{**alive, "at_s": float(at), "requests": 2, "ok": 0} for at in range(7, 10)]
    look_up = figures(document(series=series))
    for name, beyond in (
        ("errors", Beyond.ABOVE),
        ("rate", Beyond.BELOW),
        ("p99", Beyond.ABOVE),
        ("sent.max", Beyond.ABOVE),
        ("cpu", None),
        ("requests", None),
    ):
        found = look_up(load_metric(name), False)
        assert found.beyond is beyond, name
        assert found.but == ("the target gave no correct response after 7 s" if beyond else ""), name

import base64
import struct
import zlib
from typing import Any

import pytest

from velodrome.judge.load_figures import figures, requests_needed
from velodrome.model.load_metric import load_metric

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
    told = {**NONE, "mean": 0.0005, "p50": 0.0005, "p99": 0.00099, "max": 0.001}
    outcomes = {"ok": 990, "timeout": 10, "refused": 0, "unfinished": 0}
    found: dict[str, Any] = {
        "requests": 1_000,
        "ok": 990,
        "outcomes": outcomes,
        "duration_s": 10.0,
        "throughput_rps": 99.0,
        "mean_in_flight": 2.5,
        "latency_ms": {"due": told, "sent": told},
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


def test_what_has_no_histogram_is_told_as_far_as_it_is_known() -> None:
    assert value("lag.p99") == 0.2
    assert value("lag.p97") is None
    assert "only p50" in figures(document())(load_metric("lag.p97"), False).missing


def test_what_was_not_measured_is_missing_with_the_reason() -> None:
    closed = document(lag_ms=NONE, load={"model": "closed"})
    assert "closed loop" in figures(closed)(load_metric("lag.p99"), False).missing
    assert "TLS" in figures(document())(load_metric("tls.p99"), False).missing
    nothing = figures(document(requests=0, ok=0))
    assert nothing(load_metric("errors"), False).missing == "no request was made"

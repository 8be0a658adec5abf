from typing import Any

from velodrome.report import load_text


def document(loop: str, example: tuple[str, str] | None = None, **outcomes: int) -> dict[str, Any]:
    return {
        "requests": sum(outcomes.values()),
        "ok": outcomes.get("ok", 0),
        "outcomes": outcomes,
        "examples": [] if example is None else [{"outcome": example[0], "text": example[1]}],
        "load": {"model": loop},
    }


def failures(loop: str, example: tuple[str, str] | None = None, **outcomes: int) -> str:
    return " ".join(" ".join(load_text.failures(document(loop, example, **outcomes), 80)).split())


def test_nothing_is_reported_where_none_failed() -> None:
    assert failures("open", ok=5) == ""
    assert failures("closed", ok=5, unfinished=3) == ""
    assert failures("open", ok=0) == ""


def test_what_is_in_flight_is_called_so_in_a_closed_loop_only() -> None:
    assert "ok 5 · in flight at the end 3 · timeout 1" in failures("closed", ok=5, unfinished=3, timeout=1)
    assert "ok 5 · unfinished 3" in failures("open", ok=5, unfinished=3)
    assert "in flight at the end 8" in failures("closed", ok=0, unfinished=8)


def test_a_redirect_has_its_cure_and_another_status_none() -> None:
    text = "status 301 where 2xx is right"
    assert "redirects are not followed" in failures("open", ("bad_status", text), ok=1, bad_status=1)
    for outcome, other in (
        ("bad_status", "status 304 where 2xx is right"),
        ("bad_status", "grpc-status 14: status 301 where you"),
        ("wrong_body", text),
    ):
        assert "redirects" not in failures("open", (outcome, other), ok=1, **{outcome: 1})


def test_requests_without_a_latency_are_reported_beside_those_that_have_one() -> None:
    assert "60 % of the requests have no latency" in failures("open", ok=40, refused=50, reset=10)
    assert "no latency" not in failures("open", ok=0, refused=50)

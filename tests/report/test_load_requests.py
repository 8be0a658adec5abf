from typing import Any

from velodrome.report import load_text


def row(name: str, requests: int, ok: int, **outcomes: int) -> dict[str, Any]:
    latency = {"p50": 1.5, "p99": 12.0}
    return {
        "name": name,
        "method": "GET",
        "weight": 0.5,
        "requests": requests,
        "ok": ok,
        "outcomes": {"ok": ok, **outcomes},
        "latency_ms": {"due": latency, "sent": latency},
    }


def test_one_request_has_no_table() -> None:
    assert load_text.requests_table({"by_request": []}) == []


def test_each_request_has_a_line_and_what_was_never_sent_is_reported() -> None:
    rows = [row("item", 90, 90), row("order\x1b[2J", 10, 7, bad_status=2, timeout=1)]
    lines = load_text.requests_table({"load": {"model": "open"}, "requests": 103, "by_request": rows})
    assert lines[2].split() == ["item", "50", "%", "90", "1.50", "12.0", "1.50", "12.0", "0"]
    assert lines[3].endswith("bad status 2 · timeout 1")
    assert "\x1b" not in lines[3]
    assert lines[4].strip() == "3 were never sent, so none of them was drawn."

from typing import Any

from velodrome.report import load_text


def step(at_s: float, rate: float, to_rate: float, **changes: Any) -> dict[str, Any]:
    latency = {"p50": 1.25, "p99": 10.5}
    found = {
        "at_s": at_s,
        "rate": rate,
        "to_rate": to_rate,
        "requests": 100,
        "ok": 97,
        "throughput_rps": 96.4,
        "latency_ms": {"due": latency, "sent": {"p50": 0.2, "p99": None}},
        "lag_ms": {"p50": 0.01, "p99": 0.05},
    }
    return found | changes


def test_a_load_with_one_rate_has_no_table() -> None:
    assert load_text.steps_table({"steps": []}) == []
    assert load_text.steps_table({}) == []


def test_each_step_has_a_line() -> None:
    lines = load_text.steps_table({"steps": [step(0, 100, 100), step(5, 1000, 1000, ok=100)]})
    assert lines[1].split() == " ".join(load_text.STEP_HEADS).split()
    assert lines[2].split() == ["at", "0", "ms", "100", "96.4", "1.25", "10.5", "0.20", "–", "3", "0.05"]
    assert lines[3].split()[:5] == ["at", "5", "s", "1", "000"]
    assert len({len(line) for line in lines[1:4]}) == 1


def test_a_schedule_has_a_name() -> None:
    def piece(rate: float, to_rate: float | None = None) -> dict[str, Any]:
        return {"rate": rate, "to_rate": to_rate, "duration_s": 1}

    assert load_text.schedule_name([piece(100), piece(5000)]) == "100 to 5 000/s in 2 steps"
    assert load_text.schedule_name([piece(0, 50), piece(50, 100)]) == "0 to 100/s"
    assert load_text.schedule_name([piece(5), piece(100), piece(5)]) == "5 to 5/s by way of 100 in 3 steps"

from typing import Any

import pytest

from velodrome.judge.bottleneck import silent_after


def second(
    at: int, ok: int, errors: int = 0, in_flight: int = 0, p50_ms: float | None = None
) -> dict[str, Any]:
    return {
        "at_s": float(at),
        "requests": ok + errors,
        "ok": ok,
        "errors": errors,
        "in_flight": in_flight,
        "waiting": 0,
        "p50_ms": p50_ms,
    }


def document(*series: dict[str, Any], duration_s: float | None = None) -> dict[str, Any]:
    return {"duration_s": float(len(series)) if duration_s is None else duration_s, "series": list(series)}


ALIVE = [second(at, 500, p50_ms=2.0) for at in range(3)]


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ([second(3, 0, errors=4), second(4, 0, errors=4)], "it refuses"),
        ([second(3, 0, in_flight=8), second(4, 0, in_flight=8)], "it hangs"),
        ([second(3, 0, errors=4), second(4, 0)], "it refused, and nobody asked again yet"),
    ],
)
def test_from_the_last_second_with_a_right_answer_on_the_target_is_silent(
    after: list[dict[str, Any]], why: str
) -> None:
    assert silent_after(document(*ALIVE, *after)) == 3.0, why


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (document(*ALIVE), "it answered to the end"),
        (document(second(0, 0, errors=9), second(1, 0, errors=9)), "it never answered"),
        (document(*ALIVE, second(3, 0), second(4, 0)), "a pause of the schedule"),
        (document(*ALIVE, second(3, 0, errors=9), second(4, 500), duration_s=5.0), "it came back"),
        (document(*ALIVE, second(3, 0, in_flight=9), duration_s=3.4), "a second that has hardly begun"),
        (
            document(*[second(at, 500) for at in range(99)], second(99, 0, errors=9)),
            "one second of a hundred",
        ),
        (document(second(0, 1, p50_ms=5.0), second(1, 0), second(2, 0, errors=1)), "one answer so far"),
        (
            document(
                *[second(at, 50, in_flight=50, p50_ms=1_900.0) for at in range(3)], second(3, 0, in_flight=50)
            ),
            "answers come in waves of two seconds",
        ),
        ({"duration_s": 5.0}, "seconds are not told"),
    ],
)
def test_what_is_no_silence(found: dict[str, Any], why: str) -> None:
    assert silent_after(found) is None, why

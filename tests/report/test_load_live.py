import io
import re
import time
from typing import Any

import pytest

from velodrome.report.load_live import LINES, LoadView, bars


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def tick(at_s: float, **changes: Any) -> dict[str, Any]:
    last = {"seconds": 1.0, "requests": 500, "ok": 490, "p50_ms": 0.31, "p99_ms": 1.91, "max_ms": 4.2}
    found = {
        "event": "tick",
        "phase": "measure",
        "at_s": at_s,
        "requests": int(at_s * 500),
        "ok": int(at_s * 490),
        "errors": int(at_s * 10),
        "in_flight": 3,
        "waiting": 2,
        "last_second": last,
    }
    return found | changes


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_view_tells_rate_latencies_errors_and_backlog_and_fits(width: int) -> None:
    view = LoadView(Screen(), "http://127.0.0.1:8000/", 10.0)
    for at in range(1, 60):
        view.event(tick(at / 5))
    lines = view.frame(tick(12.0), width).plain.splitlines()
    assert len(lines) == LINES
    assert max(map(len, lines)) <= width
    view.end()
    if width >= 80:
        text = "\n".join(lines)
        assert "490/s" in text
        assert "p50 0.31   p99 1.91   max 4.20 ms" in text
        assert "120 requests" in text
        assert "5: 3 in flight, 2 waiting for a connection" in text
        assert "12.0 s of 10 s" in text


def test_frames_are_few_however_many_the_ticks() -> None:
    screen = Screen()
    view = LoadView(screen, "http://127.0.0.1:8000/", None)
    for number in range(50):
        view.event(tick(number / 50))
    view.end()
    assert len(re.findall("last second", screen.getvalue())) <= 4


def test_the_view_costs_less_than_half_a_percent_of_a_cpu() -> None:
    view = LoadView(Screen(), "http://127.0.0.1:8000/", 60.0)
    before = time.process_time()
    for number in range(300):
        view.event(tick(number / 5))
    used_s = time.process_time() - before
    view.end()
    assert used_s < 0.005 * 60, "0.8 ms a second where this was written"


def test_a_url_cannot_write_control_codes() -> None:
    view = LoadView(Screen(), "http://x/\x1b]0;owned\x07", None)
    assert "\x1b" not in view.frame(tick(1.0), 80).plain


def test_a_warm_up_is_called_one() -> None:
    view = LoadView(Screen(), "http://x/", 10.0)
    assert "warming up" in view.frame(tick(-0.5, phase="warmup"), 80).plain
    assert "last answers" in view.frame(tick(11, phase="drain"), 80).plain


def test_bars_reach_from_zero_to_the_greatest() -> None:
    assert bars([0, 50, 100]) == "▁▅█"
    assert bars([]) == bars([0.0]) == ""

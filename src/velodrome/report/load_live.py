"""A load while it runs, on a terminal: its rate second by second, the latencies of the last second, errors, backlog.

     http://127.0.0.1:8000/  ━━━━━━━━━━━━────────────  5.2 s of 10 s

     rate         4 998/s   ▁▃▆███▇█
     last second  p50 0.31   p99 1.91   max 4.20 ms, from when due
     errors       0
     backlog      3: 3 in flight, 0 waiting for a connection

In a pipe it is a line every five seconds (`load_text.Progress`). The view must not disturb what it shows: two frames a
second, about 1 ms of CPU each, on the thread that reads the engine's events, not on those that load.
"""

import shutil
from collections import deque
from collections.abc import Mapping
from typing import Any, TextIO

from rich.live import Live
from rich.text import Text

from velodrome.model import quantity
from velodrome.report import terminal
from velodrome.report.load_text import Progress, is_terminal
from velodrome.report.typeset import plural, visible

FRAME_S = 0.5
"""Between frames: the engine ticks five times a second, and nobody reads so fast."""
SECONDS_SHOWN = 60
BARS = "▁▂▃▄▅▆▇█"
LINES = 6


class LoadView:
    """Follows a load by the engine's events; `end` gives the terminal back. Only for a terminal."""

    def __init__(self, stream: TextIO, url: str, span_s: float | None) -> None:
        self._url, self._span_s = visible(url), span_s
        self._live = Live(console=terminal.console(stream), auto_refresh=False, transient=True)
        self._started = False
        self._shown_s = float("-inf")
        self._rates: deque[float] = deque(maxlen=SECONDS_SHOWN)
        self._last: tuple[float, int] = (0.0, 0)

    def event(self, event: Mapping[str, Any]) -> bool:
        """Show an event of the engine. Returns True: the load goes on."""
        if event["event"] != "tick":
            return True
        self._note_rate(event)
        if event["at_s"] - self._shown_s >= FRAME_S:
            self._shown_s = event["at_s"]
            if not self._started:
                self._live.start()
                self._started = True
            self._live.update(self.frame(event, shutil.get_terminal_size().columns), refresh=True)
        return True

    def end(self) -> None:
        """Take the view away again."""
        if self._started:
            self._live.stop()
            self._started = False

    def _note_rate(self, tick: Mapping[str, Any]) -> None:
        """Keep the rate of each whole second."""
        at_s, ok = self._last
        if tick["at_s"] < at_s + 1:
            return
        if tick["at_s"] > 1:
            self._rates.append((tick["ok"] - ok) / (tick["at_s"] - at_s))
        self._last = (tick["at_s"], tick["ok"])

    def frame(self, tick: Mapping[str, Any], width: int) -> Text:
        """Return what is shown at a tick, no line wider than `width`."""
        last, errors = tick["last_second"], tick["errors"]
        rate = last["ok"] / last["seconds"] if last["seconds"] else None
        p50, p99, most = (quantity.milliseconds(last[key]) for key in ("p50_ms", "p99_ms", "max_ms"))
        in_flight, waiting = tick["in_flight"], tick["waiting"]
        backlog = f"{quantity.thousands(in_flight)} in flight, {quantity.thousands(waiting)} waiting for a connection"
        shown = [
            self._head(tick, width),
            "",
            f" rate         {quantity.rate(rate):<10} {bars(list(self._rates))}",
            f" last second  p50 {p50}   p99 {p99}   max {most} ms, from when due",
            f" errors       {plural(errors, 'request') if errors else '0'}",
            f" backlog      {quantity.thousands(in_flight + waiting)}: {backlog}",
        ]
        lines = [line if len(line) < width else line[: width - 2] + "…" for line in shown]
        text = Text("\n".join(lines), no_wrap=True)
        if errors:
            text.highlight_words([lines[4]], "red")
        return text

    def _head(self, tick: Mapping[str, Any], width: int) -> str:
        phase, at_s = tick["phase"], tick["at_s"]
        if phase != "measure":
            return f" {self._url}  {'warming up' if phase == 'warmup' else 'waiting for the last answers'}"
        if not self._span_s:
            return f" {self._url}  {quantity.span(at_s)}, {plural(tick['requests'], 'request')}"
        size = max(10, min(30, width - len(self._url) - 24))
        full = min(size, round(size * at_s / self._span_s))
        return (
            f" {self._url}  {'━' * full}{'─' * (size - full)}  {at_s:.1f} s of {quantity.span(self._span_s)}"
        )


def bars(rates: list[float]) -> str:
    """Return a bar a second, from zero to the greatest."""
    most = max(rates, default=0.0)
    if most <= 0:
        return ""
    return "".join(BARS[min(len(BARS) - 1, int(rate / most * len(BARS)))] for rate in rates)


def view(stream: TextIO, url: str, span_s: float | None) -> LoadView | Progress:
    """Return what shows a load on a terminal: a terminal that knows no control codes gets lines."""
    return LoadView(stream, url, span_s) if is_terminal(stream) else Progress(stream)

"""Ctrl-C during a load: the first ends it, and what was measured so far is told; the second ends all at once.

SIGTERM and SIGHUP do as Ctrl-C does.

Python's module of signals takes longer to import than the engine to send, so it is imported at the first event that is
not urgent: within the first fifth of a second Ctrl-C still ends the command, and nothing was measured then.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType
    from typing import Any, NoReturn

EXIT_CODE = 130
"""As of a program that SIGINT ended: 128 and its number."""


class Interruption:
    """Whether somebody has interrupted; `listen` from when on it is noticed."""

    def __init__(self) -> None:
        self.asked = False
        self._listens = False
        self._before_end: Callable[[], None] = lambda: None

    def listen(self, before_end: Callable[[], None]) -> None:
        """Take signals from here on that are not ignored or somebody else's; `before_end` gives the terminal back."""
        if self._listens:
            return
        import signal  # noqa: PLC0415

        self._listens, self._before_end = True, before_end
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, self._heard)

    def _heard(self, _signal: int, _frame: FrameType | None) -> None:
        if self.asked:
            self._end_at_once()
        self.asked = True

    def _end_at_once(self) -> NoReturn:
        """End without waiting for the engine, which may be waiting for a connection."""
        try:
            self._before_end()
            print("velodrome: interrupted", file=sys.stderr, flush=True)
        finally:
            os._exit(EXIT_CODE)  # also where the terminal has gone


class Attentive:
    """Hands events of the engine on, and ends the load when somebody has interrupted."""

    def __init__(
        self,
        interruption: Interruption,
        on_event: Callable[[Mapping[str, Any]], bool],
        before_end: Callable[[], None],
    ) -> None:
        self._interruption, self._on_event, self._before_end = interruption, on_event, before_end

    def event(self, event: Mapping[str, Any]) -> bool:
        """Take an event of the engine. Returns whether the load goes on."""
        if event["event"] == "tick":
            self._interruption.listen(self._before_end)
        return self._on_event(event) and not self._interruption.asked

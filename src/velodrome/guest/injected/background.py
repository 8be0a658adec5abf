"""Threads that the app's own code starts to run its own code, beside those that serve requests.

    begun_by_app(thread, is_own)        # whether it is one
    {"background-longer": 2}            # what they compute between two waits takes twice as much CPU time

A wait is a call of `time.sleep`, or anything that goes through a condition: events, queues, timers of `threading`.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any, Callable, Dict

from velodrome.guest.injected.giving import Giving, Treatments

TOOK = "background-longer"
LEAST_S = 0.0005
"""CPU time between two waits from which on there is something to be made longer."""
MOST_S = 5.0
"""By which it gets longer, at most: what has computed since the app was started is no piece of work."""


def begun_by_app(thread: Any, is_own: Callable[[str], bool]) -> bool:
    """Whether the app's own code is what a thread runs; `is_own` says so of a file."""
    if thread is None:
        return False
    # A timer is a thread of the standard library's that calls `function`.
    for target in (getattr(thread, "_target", None), getattr(thread, "function", None), type(thread).run):
        called = target.func if isinstance(target, partial) else target
        code = getattr(getattr(called, "__func__", called), "__code__", None)
        if code is not None and is_own(code.co_filename):
            return True
    return False


class _Longer:
    """Has what a thread computed since its last wait take so many times as long, before it waits again."""

    def __init__(self, giving: Giving, times: float) -> None:
        from velodrome.guest.injected.heartbeat import is_own

        self._giving, self._more, self._is_own = giving, times - 1, is_own
        self._since: Dict[int, float] = {}
        """CPU time of a thread when its last wait ended."""

    def waits(self, before: Callable[..., Any]) -> Callable[..., Any]:
        """Return what is called in the place of a function that waits."""

        def wait(*args: Any, **named: Any) -> Any:
            ident = threading.get_ident()
            thread = getattr(threading, "_active", {}).get(ident)
            if not begun_by_app(thread, self._is_own):
                return before(*args, **named)
            used_s = time.thread_time() - self._since.get(ident, 0.0)
            if ident in self._since and used_s >= LEAST_S:
                self._giving.took(TOOK)
                until = time.thread_time() + min(self._more * used_s, MOST_S)
                while time.thread_time() < until:
                    pass
            try:
                return before(*args, **named)
            finally:
                self._since[ident] = time.thread_time()

        return wait


def _longer(giving: Giving, times: float) -> None:
    longer = _Longer(giving, times)

    def patch(module: Any) -> None:
        module.Condition.wait = longer.waits(module.Condition.wait)

    giving.finder.after("threading", patch)
    giving.finder.after("time", lambda module: setattr(module, "sleep", longer.waits(module.sleep)))


TREATMENTS: Treatments = {TOOK: _longer}

"""Threads that the app's own code starts to run its own code, beside those that serve requests.

    begun_by_app(ident, is_own)         # whether the thread of this number is one
    {"background-rests": 9}             # before each wait they rest nine times as long as they computed since the last

A wait is a call of `time.sleep`, of an event's or of a queue's: no lock of their own is held there while they rest. To
have them compute more would show little: a thread that always computes has half of an interpreter as it is.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any, Callable, Dict

from velodrome.guest.injected.giving import Giving, Treatments, sleep

TOOK = "background-rests"
LEAST_S = 0.0005
"""CPU time between two waits from which on there is something to rest from."""
MOST_S = 2.0
"""Of a rest, at most: what has computed since the app was started is no piece of work."""


def begun_by_app(ident: int, is_own: Callable[[str], bool]) -> bool:
    """Whether the app's own code is what a thread runs; `is_own` says so of a file."""
    thread = getattr(threading, "_active", {}).get(ident)
    if thread is None:
        return False
    # A timer is a thread of the standard library's that calls `function`.
    for target in (getattr(thread, "_target", None), getattr(thread, "function", None), type(thread).run):
        called = target.func if isinstance(target, partial) else target
        code = getattr(getattr(called, "__func__", called), "__code__", None)
        if code is not None and is_own(code.co_filename):
            return True
    return False


class _Rests:
    """Has a thread rest so many times as long as it computed since its last wait, before it waits again."""

    def __init__(self, giving: Giving, times: float) -> None:
        from velodrome.guest.injected.heartbeat import is_own

        self._giving, self._times, self._is_own = giving, times, is_own
        self._since: Dict[int, float] = {}
        """CPU time of a thread when its last wait ended."""

    def waits(self, before: Callable[..., Any]) -> Callable[..., Any]:
        """Return what is called in the place of a function that waits."""

        def wait(*args: Any, **named: Any) -> Any:
            ident = threading.get_ident()
            if not begun_by_app(ident, self._is_own):
                return before(*args, **named)
            used_s = time.thread_time() - self._since.get(ident, 0.0)
            if ident in self._since and used_s >= LEAST_S:
                self._giving.took(TOOK)
                sleep(min(self._times * used_s, MOST_S))
            try:
                return before(*args, **named)
            finally:
                self._since[ident] = time.thread_time()

        return wait


def _rests(giving: Giving, times: float) -> None:
    rests = _Rests(giving, times)

    def before(module: str, cls: str, name: str) -> None:
        def patch(found: Any) -> None:
            owner = getattr(found, cls) if cls else found
            setattr(owner, name, rests.waits(getattr(owner, name)))

        giving.finder.after(module, patch)

    before("time", "", "sleep")
    before("threading", "Event", "wait")
    before("queue", "Queue", "get")


TREATMENTS: Treatments = {TOOK: _rests}

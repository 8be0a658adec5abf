"""Doing several things at once in code that blocks: on threads, or on greenlets once gevent has patched those."""

from __future__ import annotations

import sys
from typing import Any, Callable

MOST = 1024
"""Threads, or greenlets, at most. They start as they are needed, so a small load has few."""

Start = Callable[..., Callable[[], Any]]


def starter() -> Start:
    """Return a function that starts `work(*arguments)` beside its caller and returns what waits for the result.

    Greenlets are taken from gevent's own pool, not from a pool of threads that happen to be greenlets: that
    is what is written by whoever writes for gevent, and it wakes nobody through a queue.
    """
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("threading"):
        from gevent.pool import Pool

        spawn = Pool(MOST).spawn

        def start_greenlet(work: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
            wait: Callable[[], Any] = spawn(work, *arguments).get
            return wait

        return start_greenlet
    from concurrent.futures import ThreadPoolExecutor

    submit = ThreadPoolExecutor(MOST, "velodrome-call").submit

    def start_thread(work: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        return submit(work, *arguments).result

    return start_thread

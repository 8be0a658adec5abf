"""Pauses: an app, or a library that it calls, sleeps and then looks again whether it can go on.

    follow(giving.finder, timer)    # timer(PAUSE) -> a Timer that runs while a request sleeps, or None
    {"pauses-shorter": {"file": "/srv/shop/locks.py", "line": 12, "times": 0.1}}

The place of a pause is the line of the app's own code that sleeps, or that calls what does. Threads that the app starts
beside those that serve requests are let alone.
"""

from __future__ import annotations

import sys
import threading
from functools import wraps
from typing import Any, Callable, Mapping

from velodrome.guest.injected import marks
from velodrome.guest.injected.background import begun_by_app
from velodrome.guest.injected.giving import Giving, Treatments
from velodrome.guest.injected.importing import Finder
from velodrome.guest.injected.loops import is_awaited
from velodrome.guest.injected.places import position
from velodrome.guest.injected.statements import Timer, TimerOf

PAUSE = "PAUSE"
"""As which a pause is followed among the statements of an app."""
TOOK = "pauses-shorter"
SLEEPS = (
    "asyncio",
    "time",
    "gevent",
    "gevent.time",  # from where gevent takes what it puts in the place of `time.sleep`
    "trio",
    "anyio",
    "tornado.gen",
)
"""Modules with a function `sleep` that takes seconds."""
Sleep = Callable[..., Any]


def _replaced(finder: Finder, how: Callable[[Sleep], Sleep]) -> None:
    for module in SLEEPS:
        finder.after(module, lambda found: setattr(found, "sleep", how(found.sleep)))


def _serves() -> bool:
    """Whether this thread is none that the app started."""
    from velodrome.guest.injected.heartbeat import is_own

    return not begun_by_app(threading.get_ident(), is_own)


def follow(finder: Finder, timer_of: TimerOf) -> None:
    """Have a timer run with each pause."""

    def how(before: Sleep) -> Sleep:
        async def awaited(timer: Timer, waiting: Any) -> Any:
            timer.begin()
            try:
                return await waiting
            finally:
                timer.end()

        @wraps(before)
        def sleep(*args: Any, **named: Any) -> Any:
            timer = timer_of(PAUSE) if any(args[:1]) and _serves() else None
            if timer is None:
                return before(*args, **named)
            if is_awaited(before):
                return awaited(timer, before(*args, **named))
            timer.begin()
            found: Any = None
            try:
                found = before(*args, **named)
            finally:
                if hasattr(found, "add_done_callback"):
                    found.add_done_callback(lambda _: timer.end())
                else:
                    timer.end()
            return found

        return sleep

    _replaced(finder, how)


def _shorter(giving: Giving, how: Mapping[str, Any]) -> None:
    """Have those at one place take so many times as long."""

    def shortened(before: Sleep) -> Sleep:
        @wraps(before)
        def sleep(*args: Any, **named: Any) -> Any:
            if args and _is_at(how) and _serves():
                giving.took(TOOK)
                args = (args[0] * how["times"], *args[1:])
            return before(*args, **named)

        return sleep

    _replaced(giving.finder, shortened)


def _is_at(place: Mapping[str, Any]) -> bool:
    """Whether the innermost line of the app's own code on this stack is the one meant."""
    from velodrome.guest.injected.heartbeat import is_own

    frame = marks.own_line(sys._getframe(2), is_own)
    if frame is None or frame.f_code.co_filename != place["file"]:
        return False
    return bool(position(frame.f_code, frame.f_lasti).line == place["line"])


TREATMENTS: Treatments = {TOOK: _shorter}

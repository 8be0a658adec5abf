"""Work that an app has others do, counted: calls of third parties, statements to databases, and its own waits.

    {"work-counted": True}      # `worked-<pid>`, a byte for each piece that has come to its end so far

A wait is a sleep or a read of a connection that a line of the app's own calls: it stands for what others do, or talks
with them without a library that is known here. What is cancelled before its end is not counted.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, Optional, Sequence

from velodrome.guest.injected import pauses, statements, third_parties
from velodrome.guest.injected.giving import Giving, Treatments
from velodrome.guest.injected.loops import is_awaited

COUNTED = "work-counted"
WAITS = (
    *((module, "", ("sleep",)) for module in pauses.SLEEPS),
    ("asyncio.streams", "StreamReader", ("read", "readline", "readexactly", "readuntil")),
    ("socket", "socket", ("recv", "recv_into")),
    ("gevent._socket3", "socket", ("recv", "recv_into")),
)
"""Module, class or none, and what waits in it."""


class _Count(third_parties.Calls, statements.Timer):
    """Of a process: a byte in its file for each piece of work."""

    def __init__(self, giving: Giving) -> None:
        self._giving = giving
        self._files: Dict[int, int] = {}

    def ended(self) -> None:
        """Count one piece."""
        pid = os.getpid()
        file = self._files.get(pid)
        if file is None:  # in a worker that was forked, too
            path = os.path.join(self._giving.folder, "worked-%d" % pid)
            file = self._files[pid] = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
            self._giving.took(COUNTED)
        os.write(file, b".")

    def note(self, began: float) -> None:
        """Count a call of a third party."""
        self.ended()

    def end(self) -> None:
        """Count a statement."""
        self.ended()

    def _done(self, future: Any) -> None:
        if not future.cancelled():
            self.ended()

    def waits(self, before: Callable[..., Any]) -> Callable[..., Any]:
        """Return what counts in the place of a function that waits."""
        from velodrome.guest.injected.heartbeat import is_own

        async def awaited(waiting: Any) -> Any:
            found = await waiting
            self.ended()
            return found

        def wait(*args: Any, **named: Any) -> Any:
            found = before(*args, **named)
            if not is_own(sys._getframe(1).f_code.co_filename):
                return found
            if is_awaited(before):
                return awaited(found)
            if hasattr(found, "add_done_callback"):
                found.add_done_callback(self._done)
            else:
                self.ended()
            return found

        return wait


def _work_counted(giving: Giving, _: bool) -> None:
    count = _Count(giving)

    def timer_of(_: str) -> Optional[statements.Timer]:
        return count

    def counted(cls: str, names: Sequence[str]) -> Callable[[Any], None]:
        def patch(module: Any) -> None:
            owner = getattr(module, cls) if cls else module
            for name in names:
                setattr(owner, name, count.waits(getattr(owner, name)))

        return patch

    third_parties.follow(giving.finder, count)
    statements.follow(giving.finder, timer_of)
    for module, cls, names in WAITS:
        giving.finder.after(module, counted(cls, names))


TREATMENTS: Treatments = {COUNTED: _work_counted}

"""Ends of this process that the app's own code brings about while it serves: by a signal to itself, or at once.

    follow(giving.finder, hear)     # hear("os.kill", code, instruction) -> True: it is left out
    {"own-ends": True}              # all of them are left out

A call is heard before it is made, since there is no after. What ends because it was sent a signal to do so, a process
that does not listen, and one that the app's own code forked, are left alone: without its end a child would go on with
what its parent does.
"""

from __future__ import annotations

import os
import sys
from functools import wraps
from types import CodeType, FrameType
from typing import Any, Callable, Optional, Set, Tuple

from velodrome.guest.injected import marks
from velodrome.guest.injected.giving import Giving, Treatments
from velodrome.guest.injected.importing import Finder

TOOK = "own-ends"
Hear = Callable[[str, CodeType, int], bool]
"""Called with what the app is about to end its process by, and where; whether it is left out."""
Args = Tuple[Any, ...]
SIGNALS = ("SIGTERM", "SIGINT", "SIGQUIT", "SIGKILL", "SIGABRT", "SIGHUP")


def follow(finder: Finder, hear: Hear) -> None:
    """Have each end by the app's own code heard, and left out where `hear` says so."""
    ends = _Ends(hear)
    os.register_at_fork(after_in_child=ends.forked)
    wrapped = ends.wrapped
    wrapped(os, "kill", _kills_itself)
    wrapped(os, "_exit", _always)
    wrapped(os, "abort", _always)
    finder.after("signal", lambda module: wrapped(module, "raise_signal", _is_raised))  # Python 3.8


class _Ends:
    """Of one process, and of those that are forked from it."""

    def __init__(self, hear: Hear) -> None:
        from velodrome.guest.injected.heartbeat import is_own

        self._hear, self._is_own = hear, is_own
        self._is_the_apps = False
        """Whether the app's own code forked this process, or one before it."""
        self._serves = False

    def forked(self) -> None:
        """Look in a process that was forked who did it: that is still on its stack."""
        self._serves = False
        self._is_the_apps = self._is_the_apps or self._caller(sys._getframe().f_back) is not None

    def wrapped(self, module: Any, name: str, is_end: Callable[[Args], bool]) -> None:
        """Have the calls of a function heard that end this process, as `is_end` says by their arguments."""
        before = getattr(module, name, None)
        if before is None:
            return

        @wraps(before)
        def end(*args: Any, **named: Any) -> Any:
            if is_end(args) and self._is_left_out("%s.%s" % (module.__name__, name), sys._getframe(1)):
                return None
            return before(*args, **named)

        setattr(module, name, end)

    def _is_left_out(self, name: str, caller: FrameType) -> bool:
        frame = None if self._is_the_apps else self._caller(caller)
        if frame is None or _is_told(caller):
            return False
        self._serves = self._serves or _listens()
        return self._serves and self._hear(name, frame.f_code, frame.f_lasti)

    def _caller(self, frame: Optional[FrameType]) -> Optional[FrameType]:
        """Return the nearest frame of the app's own code; None: that of a package, such as a server, is nearer."""
        while frame is not None and not self._is_own(frame.f_code.co_filename):
            frame = None if marks.is_installed(frame.f_code.co_filename) else frame.f_back
        return frame


def _always(args: Args) -> bool:
    return True


def _is_raised(args: Args) -> bool:
    return len(args) == 1 and _ends(args[0])


def _kills_itself(args: Args) -> bool:
    return len(args) == 2 and args[0] in (os.getpid(), 0, -os.getpgrp()) and _ends(args[1])


def _ends(number: Any) -> bool:
    """Whether a signal ends this process."""
    import signal  # only now: it is not imported before the app wants it

    return number in _numbers() and signal.getsignal(number) is not signal.SIG_IGN


def _numbers() -> Set[int]:
    """Return the signals that end a process, of those that this system has."""
    import signal

    return {int(getattr(signal, name)) for name in SIGNALS if hasattr(signal, name)}


def _is_told(frame: Optional[FrameType]) -> bool:
    """Whether what runs is a handler of a signal that ends a process: somebody sent it."""
    import signal

    handlers = {getattr(signal.getsignal(number), "__code__", None) for number in _numbers()}
    while frame is not None and frame.f_code not in handlers:
        frame = frame.f_back
    return frame is not None


def _listens() -> bool:
    """Whether this process has a socket that takes connections: its end is one that requests meet.

    Where the system does not show what a process has open, it is taken for one.
    """
    import _socket  # gevent replaces what `socket` has of it

    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return True
    return any(_takes_connections(_socket, number) for number in numbers)


def _takes_connections(module: Any, number: int) -> bool:
    try:
        found = module.socket(fileno=number)
    except OSError:  # a file, or closed since
        return False
    try:
        return bool(found.getsockopt(module.SOL_SOCKET, module.SO_ACCEPTCONN))
    except OSError:
        return False
    finally:
        found.detach()  # it is the app's


def _own_ends(giving: Giving, _: bool) -> None:
    """Have the app's own code not end its process."""

    def leave_out(name: str, code: CodeType, instruction: int) -> bool:
        giving.took(TOOK)
        return True

    follow(giving.finder, leave_out)


TREATMENTS: Treatments = {TOOK: _own_ends}

"""Greenlets switched by hand: what would wait tells the hub what for, and switches to it.

    hub().start(converse, Attended(connected), True)
    hub().run()

A greenlet keeps its own stack, so code in it is written as if it blocked.
"""

from __future__ import annotations

import socket
import sys
from functools import partial
from typing import Any, Callable, List, Optional, Sequence, Union

from velodrome.guest.raw.generators import ALL, FORGET, SLEEP, Waiting
from velodrome.guest.raw.switchboard import READ, WRITE, Switchboard


class Hub:
    """The greenlet that waits for all others. Needs greenlet installed; belongs to the thread that made it."""

    def __init__(self) -> None:
        import greenlet

        self._greenlet = greenlet.greenlet
        self._current = greenlet.getcurrent
        self.main = greenlet.getcurrent()
        self.board = Switchboard()

    def start(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Have a function begin in its turn, in a greenlet of its own."""

        def begin(_: Any) -> None:
            try:
                function(*arguments)
            except Exception:  # one that fails must not stop the others
                sys.excepthook(*sys.exc_info())

        self.board.soon(self._greenlet(begin, self.main))

    def run(self) -> None:
        """Run all, for ever."""
        self.board.run(lambda waiter, value: waiter.switch(value))

    def until_ready(self, event: int, fd: int, timeout: Optional[float] = None) -> bool:
        """Wait till a descriptor is ready, at most so long; return whether it is."""
        self.board.until_ready(self._current(), event, fd, timeout)
        return bool(self.main.switch())

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.board.after(self._current(), seconds)
        self.main.switch()

    def gather(self, functions: Sequence[Callable[[], Any]]) -> List[Any]:
        """Run all at once, each in a greenlet of its own; return the list of what they return."""
        waiter = self._current()
        results: List[Any] = [None] * len(functions)
        left = [len(functions)]

        def one(number: int, function: Callable[[], Any]) -> None:
            results[number] = function()
            left[0] -= 1
            if not left[0]:
                self.board.soon(waiter, None)

        for number, function in enumerate(functions):
            self.start(one, number, function)
        self.main.switch()
        return results

    def drive(self, coroutine: Waiting) -> Any:
        """Run a generator coroutine (`raw/generators.py`) in this greenlet and return what it returns."""
        value: Any = None
        try:
            while True:
                value = self._perform(coroutine.send(value))
        except StopIteration as end:
            return end.value

    def _perform(self, asked: Any) -> Any:
        kind = asked[0]
        if kind == FORGET:
            return self.board.forget(asked[1])
        if kind == SLEEP:
            return self.sleep(asked[1])
        if kind == ALL:
            return self.gather([partial(self.drive, one) for one in asked[1]])
        return self.until_ready(kind, asked[1], asked[2])


class Attended:
    """A connected socket as straight code knows it; where it would block, it switches."""

    def __init__(self, connected: socket.socket) -> None:
        """Take over a socket that does not block."""
        self._socket = connected
        self._fd = connected.fileno()
        self._timeout: Optional[float] = None
        self._hub = hub()

    def settimeout(self, seconds: Optional[float]) -> None:
        """Wait at most so long from now on."""
        self._timeout = seconds

    def recv(self, size: int) -> bytes:
        """Return what comes next, nothing at the end. Raises OSError, also when time is up."""
        while True:
            if not self._hub.until_ready(READ, self._fd, self._timeout):
                raise socket.timeout
            try:
                return self._socket.recv(size)
            except BlockingIOError:  # woken for nothing
                continue

    def sendall(self, data: bytes) -> None:
        """Send all of it. Raises OSError, also when time is up."""
        rest: Union[bytes, memoryview] = data
        while True:
            try:
                sent = self._socket.send(rest)
            except BlockingIOError:
                sent = 0
            if sent == len(rest):
                return
            rest = memoryview(rest)[sent:]
            if not self._hub.until_ready(WRITE, self._fd, self._timeout):
                raise socket.timeout

    def shutdown(self, how: int) -> None:
        """End one half."""
        self._socket.shutdown(how)

    def close(self) -> None:
        """Close it."""
        self._hub.board.forget(self._fd)
        self._socket.close()


_hubs: List[Hub] = []


def hub() -> Hub:
    """Return the hub of this process, made at the first call."""
    if not _hubs:
        _hubs.append(Hub())
    return _hubs[0]

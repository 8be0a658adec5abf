"""Generator coroutines: each hands control back with `yield`, saying what it waits for, and is sent what came of it.

    yield (READ, fd, 30.0)      till the descriptor is ready, at most so long; gives whether it is
    yield (SLEEP, 0.05)         so many seconds
    yield (ALL, [a, b])         till these generators have returned; gives the list of what they did
    yield (FORGET, fd)          not at all: the descriptor is about to be closed

Coroutines as they were before `async`.
"""

from __future__ import annotations

import socket
import sys
from typing import Any, Callable, Generator, List, Optional, Sequence, Tuple, Union

from velodrome.guest.raw.connection import PIECE
from velodrome.guest.raw.switchboard import READ, WRITE, Switchboard

SLEEP, ALL, FORGET = 16, 17, 18
"""What else than READ and WRITE can be asked for."""

TO_BE_READY = (READ, WRITE)

Waiting = Generator[Tuple[Any, ...], Any, Any]
"""A coroutine."""


def sleep(seconds: float) -> Waiting:
    """Wait."""
    yield (SLEEP, seconds)


def gather(coroutines: Sequence[Waiting]) -> Waiting:
    """Run all at once; return the list of what they return."""
    return (yield (ALL, coroutines))


class Talk:
    """A connected socket, for generators."""

    def __init__(self, connected: socket.socket) -> None:
        """Take over a socket that does not block."""
        self.socket = connected
        self.fd = connected.fileno()
        self._to_read = (READ, self.fd, None)
        self._to_write = (WRITE, self.fd, None)

    def receive(self, timeout: Optional[float] = None) -> Waiting:
        """Return what comes next; nothing at the end, or when time is up. Raises OSError."""
        ask = self._to_read if timeout is None else (READ, self.fd, timeout)
        while True:
            if not (yield ask):
                return b""
            try:
                return self.socket.recv(PIECE)
            except BlockingIOError:  # woken for nothing
                continue

    def send(self, data: bytes, timeout: Optional[float] = None) -> Waiting:
        """Send all of it. Raises OSError, also when time is up."""
        ask = self._to_write if timeout is None else (WRITE, self.fd, timeout)
        rest: Union[bytes, memoryview] = data
        while True:
            try:
                sent = self.socket.send(rest)
            except BlockingIOError:
                sent = 0
            if sent == len(rest):
                return
            rest = memoryview(rest)[sent:]
            if not (yield ask):
                raise OSError("nobody reads")

    def close(self) -> Waiting:
        """Close the socket."""
        yield (FORGET, self.fd)
        self.socket.close()


class Trampoline:
    """Runs generators till each waits for something, and again when that has come."""

    def __init__(self) -> None:
        self.board = Switchboard()

    def start(self, coroutine: Waiting) -> None:
        """Have a coroutine begin in its turn."""
        self.board.soon(coroutine)

    def run(self) -> None:
        """Run all, for ever."""
        self.board.run(self._resume)

    def _resume(self, coroutine: Waiting, value: Any) -> None:
        try:
            asked = coroutine.send(value)
            while asked[0] == FORGET:
                self.board.forget(asked[1])
                asked = coroutine.send(None)
        except StopIteration:
            return
        except Exception:  # one that fails must not stop the others
            sys.excepthook(*sys.exc_info())
            return
        kind = asked[0]
        if kind in TO_BE_READY:
            self.board.until_ready(coroutine, kind, asked[1], asked[2])
        elif kind == SLEEP:
            self.board.after(coroutine, asked[1])
        else:
            join(asked[1], self.start, lambda results: self.board.soon(coroutine, results))


def join(
    coroutines: Sequence[Waiting], start: Callable[[Waiting], None], done: Callable[[List[Any]], None]
) -> None:
    """Start all; when the last has returned, call `done` with what each returned."""
    results: List[Any] = [None] * len(coroutines)
    left = [len(coroutines)]

    def one(number: int, coroutine: Waiting) -> Waiting:
        results[number] = yield from coroutine
        left[0] -= 1
        if not left[0]:
            done(results)

    for number, coroutine in enumerate(coroutines):
        start(one(number, coroutine))

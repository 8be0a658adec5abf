"""Coroutines written and switched by hand: generators, as they were before `async`, and greenlets.

    yield (READ, fd, 30.0)      till the descriptor is ready, at most so long; gives whether it is
    yield (SLEEP, 0.05)         so many seconds
    yield (ALL, [a, b])         till these generators have returned; gives the list of what they did
    yield (FORGET, fd)          not at all: the descriptor is about to be closed

A generator hands control back with `yield`, saying what it waits for, and is sent what came of it. A greenlet keeps its
own stack, so code in it is written as if it blocked: what would wait switches to the hub. Both wait through a
`Switchboard`, and call the third party through an `Asker`.
"""

from __future__ import annotations

import heapq
import itertools
import selectors
import socket
import sys
import time
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any, Callable, Deque, Dict, Generator, List, Optional, Sequence, Tuple, Union
from urllib.parse import urlsplit

from velodrome.guest.codegen.wire import BLANK_LINE, LONGEST_HEAD, field
from velodrome.guest.raw.connection import PIECE

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Switchboard:
    """Who waits for what: descriptors, moments, turns; one selector for all.

        board.until_ready(waiter, READ, fd, timeout=30.0)    resumed with True when it is ready, False when time is up
        board.after(waiter, 0.05)                            resumed with None
        board.soon(waiter, value)                            resumed with the value, in its turn
        board.run(resume)                                    calls resume(waiter, value), for ever

    It does not know what a waiter is.
    """

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._waiting: Dict[int, Any] = {}
        self._watched: Dict[int, int] = {}
        """What the selector watches; it goes on watching when nobody waits, because mostly somebody will again."""
        self._deadline: Dict[int, int] = {}
        """Number of the moment at which waiting for a descriptor ends."""
        self._moments: List[Tuple[float, int, Any, Optional[int]]] = []
        self._numbers = itertools.count()
        self._turns: Deque[Tuple[Any, Any]] = deque()

    def until_ready(self, waiter: Any, event: int, fd: int, timeout: Optional[float] = None) -> None:
        """Resume `waiter` when `fd` is ready for `event`, with True, or after `timeout` seconds with False."""
        watched = self._watched.get(fd)
        if watched is None:
            self._selector.register(fd, event)
            self._watched[fd] = event
        elif watched != event:
            self._selector.modify(fd, event)
            self._watched[fd] = event
        self._waiting[fd] = waiter
        if timeout is not None:
            number = self._deadline[fd] = next(self._numbers)
            heapq.heappush(self._moments, (time.monotonic() + timeout, number, waiter, fd))

    def after(self, waiter: Any, seconds: float) -> None:
        """Resume `waiter` after so many seconds, with None."""
        heapq.heappush(self._moments, (time.monotonic() + seconds, next(self._numbers), waiter, None))

    def soon(self, waiter: Any, value: Any = None) -> None:
        """Resume `waiter` in its turn, with a value."""
        self._turns.append((waiter, value))

    def forget(self, fd: int) -> None:
        """Watch a descriptor no more. To be called before it is closed; nobody may wait for it."""
        if self._watched.pop(fd, None) is not None:
            self._selector.unregister(fd)
        self._deadline.pop(fd, None)

    def run(self, resume: Callable[[Any, Any], None]) -> None:
        """Resume whoever can go on, for ever."""
        select, waiting, turns = self._selector.select, self._waiting, self._turns
        while True:
            for key, _ in select(self._patience()):
                fd = key.fd
                waiter = waiting.pop(fd, None)
                if waiter is None:  # ready, and nobody waits: stop watching, or it would be reported for ever
                    self.forget(fd)
                    continue
                if self._deadline:
                    self._deadline.pop(fd, None)
                resume(waiter, True)
            if self._moments:
                self._overdue(resume)
            for _ in range(len(turns)):
                resume(*turns.popleft())

    def _patience(self) -> Optional[float]:
        if self._turns:
            return 0.0
        return max(0.0, self._moments[0][0] - time.monotonic()) if self._moments else None

    def _overdue(self, resume: Callable[[Any, Any], None]) -> None:
        now = time.monotonic()
        while self._moments and self._moments[0][0] <= now:
            _, number, waiter, fd = heapq.heappop(self._moments)
            if fd is None:
                resume(waiter, None)
            elif self._deadline.get(fd) == number:  # else it became ready in time
                del self._deadline[fd]
                del self._waiting[fd]
                resume(waiter, False)


SLEEP, ALL, FORGET = 16, 17, 18
"""What a flow can wait for beside READ and WRITE."""

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
            request = coroutine.send(value)
            while request[0] == FORGET:
                self.board.forget(request[1])
                request = coroutine.send(None)
        except StopIteration:
            return
        except Exception:  # one that fails must not stop the others
            sys.excepthook(*sys.exc_info())
            return
        kind = request[0]
        if kind in TO_BE_READY:
            self.board.until_ready(coroutine, kind, request[1], request[2])
        elif kind == SLEEP:
            self.board.after(coroutine, request[1])
        else:
            join(request[1], self.start, lambda results: self.board.soon(coroutine, results))


def join(
    coroutines: Sequence[Waiting], start: Callable[[Waiting], None], done: Callable[[List[Any]], None]
) -> None:
    """Start all; when the last has returned, call `done` with what each returned."""
    results: List[Any] = [None] * len(coroutines)
    left = [len(coroutines)]

    def finish(number: int, coroutine: Waiting) -> Waiting:
        results[number] = yield from coroutine
        left[0] -= 1
        if not left[0]:
            done(results)

    for number, coroutine in enumerate(coroutines):
        start(finish(number, coroutine))


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

        def finish(number: int, function: Callable[[], Any]) -> None:
            results[number] = function()
            left[0] -= 1
            if not left[0]:
                self.board.soon(waiter, None)

        for number, function in enumerate(functions):
            self.start(finish, number, function)
        self.main.switch()
        return results

    def drive(self, coroutine: Waiting) -> Any:
        """Run a generator coroutine  in this greenlet and return what it returns."""
        value: Any = None
        try:
            while True:
                value = self._perform(coroutine.send(value))
        except StopIteration as end:
            return end.value

    def _perform(self, request: Any) -> Any:
        kind = request[0]
        if kind == FORGET:
            return self.board.forget(request[1])
        if kind == SLEEP:
            return self.sleep(request[1])
        if kind == ALL:
            return self.gather([partial(self.drive, flow) for flow in request[1]])
        return self.until_ready(kind, request[1], request[2])


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


class Asker:
    """The client of a process: any number of questions at once, each on a connection of its own meanwhile.

    As much of HTTP/1.1 as the simulated third party needs: an answer has a Content-Length. Connections are kept.
    """

    def __init__(self, upstream: str, timeout_s: float) -> None:
        """`upstream` is the third party's base URL; open nothing yet."""
        parts = urlsplit(upstream)
        self._address = (parts.hostname or "", parts.port or 80)
        self._host = parts.netloc.encode()
        self._timeout_s = timeout_s
        self._idle: List[Talk] = []

    def ask(self, url: str) -> Waiting:
        """Fetch a URL of the third party whole and return its status; 0 if there was no answer."""
        parts = urlsplit(url)
        target = "%s?%s" % (parts.path or "/", parts.query)
        request = b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target.encode(), self._host)
        while True:
            kept = bool(self._idle)
            try:
                talk = self._idle.pop() if kept else (yield from self._connect())
            except OSError:
                return 0
            try:
                status, keep = yield from self._exchange(talk, request)
            except OSError:
                yield from talk.close()
                if kept:  # it may have been closed as it lay idle
                    continue
                return 0
            if keep:
                self._idle.append(talk)
            else:
                yield from talk.close()
            return status

    def _connect(self) -> Waiting:
        """Return a new connection. Raises OSError."""
        family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        connecting = socket.socket(family, socket.SOCK_STREAM)
        connecting.setblocking(False)
        with suppress(BlockingIOError):
            connecting.connect(self._address)
        talk = Talk(connecting)
        ready = yield (WRITE, talk.fd, self._timeout_s)
        error = connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error or not ready:
            yield from talk.close()
            raise OSError(error, "no connection")
        return talk

    def _exchange(self, talk: Talk, request: bytes) -> Waiting:
        """Send a request and return the status of the answer, and whether the connection can be kept."""
        yield from talk.send(request, self._timeout_s)
        received = b""
        while BLANK_LINE not in received:
            received += yield from self._more(talk, len(received))
        head, _, body = received.partition(BLANK_LINE)
        status, length, keep = read_head(head)
        had = len(body)
        while had < length:
            had += len((yield from self._more(talk, 0)))
        return status, keep and had == length

    def _more(self, talk: Talk, had: int) -> Waiting:
        data = yield from talk.receive(self._timeout_s)
        if not data or had > LONGEST_HEAD:
            raise OSError("the answer breaks off")
        return data


def read_head(head: bytes) -> Tuple[int, int, bool]:
    """Return status, length of the body, and whether the connection is kept. Raises OSError if it tells none."""
    lowered = head.lower()
    words = lowered.split(None, 2)
    length = field(lowered, b"\r\ncontent-length:")
    if (
        len(words) < 2
        or not words[0].startswith(b"http/1.")
        or not words[1].isdigit()
        or not length.isdigit()
    ):
        raise OSError("not an answer of known length")
    keep = words[0] != b"http/1.0" and b"close" not in field(lowered, b"\r\nconnection:")
    return int(words[1]), int(length), keep

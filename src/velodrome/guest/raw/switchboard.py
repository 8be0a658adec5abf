"""Who waits for what, for coroutines that are written and switched by hand: descriptors, moments, turns.

    board.until_ready(waiter, READ, fd, timeout=30.0)     resumed with True when it is ready, False when time is up
    board.after(waiter, 0.05)                             resumed with None
    board.soon(waiter, value)                             resumed with the value, in its turn
    board.run(resume)                                     calls resume(waiter, value), for ever

It does not know what a waiter is: a generator, a greenlet.
"""

from __future__ import annotations

import heapq
import itertools
import selectors
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Switchboard:
    """One selector for all."""

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
                if waiter is None:  # ready, and nobody waits: look away, or it would be told for ever
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

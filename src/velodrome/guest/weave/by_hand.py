"""Two more ways to wait, for coroutines that are switched by hand: generators that delegate, greenlets.

Both sleep and ask the third party without stopping the others. For databases and gRPC they have the clients that
block, and those stop all: somebody would have to write one that yields to this loop.
"""

from __future__ import annotations

from functools import partial
from types import GeneratorType
from typing import Any, Callable, List, Sequence

from velodrome.guest.recipe import Query, Write
from velodrome.guest.weave.idioms import TIMEOUT_S, Blocking


class Delegating:
    """`yield from`, down to a bare `yield` that hands control to the loop (`raw/generators.py`)."""

    wait = "yield from "

    def __init__(self) -> None:
        """Open nothing yet."""
        self._blocking = Blocking()

    def sleep(self) -> Callable[[float], Any]:
        """Return a generator function that waits."""
        from velodrome.guest.raw.generators import sleep

        return sleep

    def ask(self, upstream: str) -> Callable[[str], Any]:
        """Return a generator function over connections that are kept."""
        from velodrome.guest.raw.asking import Asker

        return Asker(upstream, TIMEOUT_S).ask

    def ask_all(self, ask: Callable[[str], Any]) -> Callable[[Sequence[str]], Any]:
        """Return a generator function that has all asked at once."""
        from velodrome.guest.raw.generators import gather

        def ask_all(urls: Sequence[str]) -> Any:
            return gather([ask(url) for url in urls])

        return ask_all

    def ask_grpc(self, peer: str) -> Callable[[int], Any]:
        """Return a generator function over a channel that blocks, and stops all meanwhile."""
        ask = self._blocking.ask_grpc(peer)
        return lambda latency_ms: _stopping_all(partial(ask, latency_ms))()

    def fetch(self, step: Query) -> Callable[[], Any]:
        """Return a generator function that reads, and stops all meanwhile."""
        return _stopping_all(self._blocking.fetch(step))

    def store(self, step: Write) -> Callable[[], Any]:
        """Return a generator function that writes, and stops all meanwhile."""
        return _stopping_all(self._blocking.store(step))

    def at_once(self, branches: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
        """Return a generator function that runs all branches in turns."""
        from velodrome.guest.raw.generators import gather

        return lambda: gather([_run(branch) for branch in branches])


def _stopping_all(work: Callable[[], Any]) -> Callable[[], Any]:
    def done() -> Any:
        yield from ()  # so that this is a generator like the others
        return work()

    return done


def _run(branch: Callable[[], Any]) -> Any:
    result = branch()  # a generator, or done already if it waits for nothing
    return (yield from result) if isinstance(result, GeneratorType) else result


class Switching:
    """Straight code: what would wait switches to the hub (`raw/greenlets.py`). Needs greenlet installed."""

    wait = ""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._blocking = Blocking()

    def sleep(self) -> Callable[[float], Any]:
        """Return what waits, and lets others run."""
        from velodrome.guest.raw.greenlets import hub

        return lambda seconds: hub().sleep(seconds)

    def ask(self, upstream: str) -> Callable[[str], int]:
        """Return a function over connections that are kept."""
        from velodrome.guest.raw.asking import Asker
        from velodrome.guest.raw.greenlets import hub

        asker = Asker(upstream, TIMEOUT_S)
        return lambda url: int(hub().drive(asker.ask(url)))

    def ask_all(self, ask: Callable[[str], int]) -> Callable[[Sequence[str]], List[int]]:
        """Return a function that has each URL asked by a greenlet of its own, and waits for all."""
        from velodrome.guest.raw.greenlets import hub

        return lambda urls: hub().gather([partial(ask, url) for url in urls])

    def ask_grpc(self, peer: str) -> Callable[[int], int]:
        """Return a function over a channel that blocks, and stops all meanwhile."""
        return self._blocking.ask_grpc(peer)

    def fetch(self, step: Query) -> Callable[[], List[Any]]:
        """Return a function that reads, and stops all meanwhile."""
        return self._blocking.fetch(step)

    def store(self, step: Write) -> Callable[[], int]:
        """Return a function that writes, and stops all meanwhile."""
        return self._blocking.store(step)

    def at_once(self, branches: Sequence[Callable[[], int]]) -> Callable[[], List[int]]:
        """Return a function that runs each branch in a greenlet of its own."""
        from velodrome.guest.raw.greenlets import hub

        return lambda: hub().gather(branches)

"""SQLite for coroutines: read on the loop's default executor, which is what `asyncio.to_thread` does.

A statement can take long, and a statement that runs on the loop stops every other request. It costs two thread
switches a request.
"""

from __future__ import annotations

from typing import Any, Callable

from velodrome.guest.client import Client
from velodrome.guest.clients.sqlite import Database


class OnThreads:
    """A database whose functions run on threads."""

    def __init__(self, url: str) -> None:
        """Make the tables; there is no address."""
        self._database = Database()

    def reader(self, rows: int, ms: float) -> Callable[[], Any]:
        """Return a coroutine function that reads so many rows."""
        return on_a_thread(self._database.reader(rows, ms))

    def writer(self, rows: int) -> Callable[[], Any]:
        """Return a coroutine function that changes so many rows."""
        return on_a_thread(self._database.writer(rows))


def on_a_thread(work: Callable[[], Any]) -> Callable[[], Any]:
    """Return a coroutine function that has a thread of the running loop's executor do it."""
    from asyncio import get_event_loop

    async def done() -> Any:
        return await get_event_loop().run_in_executor(None, work)

    return done


client = Client(
    "sqlite3-threads",
    "sqlite",
    "The standard library's sqlite3 on the event loop's pool of threads.",
    OnThreads,
    awaits=True,
    default=True,
    pauses=True,
)

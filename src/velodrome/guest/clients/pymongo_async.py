"""PyMongo's asyncio half, which took the place of Motor."""

from __future__ import annotations

from typing import Any, Callable, List

from velodrome.guest.client import Client
from velodrome.guest.clients import _tables
from velodrome.guest.clients._on_loop import OnLoop
from velodrome.guest.clients.pymongo import CHANGE, DATABASE, OPTIONS, PYMONGO, between


class Documents:
    """Reads by `find`, writes by `update_many`, over the library's own pool."""

    def __init__(self, url: str) -> None:
        """Open nothing yet. Needs pymongo installed."""
        import pymongo
        from pymongo.errors import PyMongoError

        async def make() -> Any:
            return pymongo.AsyncMongoClient(url, connect=False, **OPTIONS)

        async def close(mongo: Any) -> None:
            await mongo.close()

        self._failures = (PyMongoError, OSError)
        self._pool = OnLoop(make, close)

    async def _collection(self, name: str) -> Any:
        return (await self._pool.pool()).get_default_database(DATABASE)[name]

    def reader(self, rows: int, ms: float) -> Callable[[], Any]:
        """Return what reads so many rows; `ms` is refused before (`Client.pauses`)."""
        spans = _tables.spans(rows)

        async def fetch() -> List[Any]:
            try:
                items = await self._collection("velodrome_item")
                found: List[Any] = await items.find(between(*next(spans))).to_list()
            except self._failures as error:
                _tables.tell("pymongo-async", error)
                return []
            return found

        return fetch

    def writer(self, rows: int) -> Callable[[], Any]:
        """Return what changes so many rows."""
        spans = _tables.spans(rows)

        async def store() -> int:
            try:
                notes = await self._collection("velodrome_note")
                return int((await notes.update_many(between(*next(spans)), CHANGE)).modified_count)
            except self._failures as error:
                _tables.tell("pymongo-async", error)
                return 0

        return store


client = Client(
    "pymongo-async",
    "mongodb",
    "PyMongo's asyncio half: pure Python over asyncio streams; other tasks run while it waits.",
    Documents,
    awaits=True,
    requires=(PYMONGO,),
    default=True,
)

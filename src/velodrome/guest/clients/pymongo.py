"""PyMongo: MongoDB's protocol in Python, over sockets that block."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

from velodrome.guest.client import CONNECTIONS, TIMEOUT_S, Client
from velodrome.guest.clients import _tables

PYMONGO = "pymongo==4.20.0"
OPTIONS = {
    "maxPoolSize": CONNECTIONS,
    "serverSelectionTimeoutMS": TIMEOUT_S * 1000,
    "socketTimeoutMS": TIMEOUT_S * 1000,
    "waitQueueTimeoutMS": TIMEOUT_S * 1000,
}
DATABASE = "velodrome"
CHANGE = {"$inc": {"version": 1}}


def between(first: int, last: int) -> Dict[str, Any]:
    """Return the filter for rows by their primary key."""
    return {"_id": {"$gte": first, "$lte": last}}


class Documents:
    """Reads by `find`, writes by `update_many`, over the library's own pool."""

    def __init__(self, url: str) -> None:
        """Open nothing yet. Needs pymongo installed."""
        import pymongo
        from pymongo.errors import PyMongoError

        self.mongo: Any = pymongo.MongoClient(url, connect=False, **OPTIONS)
        self.database = self.mongo.get_default_database(DATABASE)
        self._failures = (PyMongoError, OSError)

    def reader(self, rows: int, ms: float) -> Callable[[], List[Any]]:
        """Return what reads so many rows; `ms` is refused before (`Client.pauses`)."""
        spans = _tables.spans(rows)
        find = self.database["velodrome_item"].find

        def fetch() -> List[Any]:
            try:
                return list(find(between(*next(spans))))
            except self._failures as error:
                _tables.tell("pymongo", error)
                return []

        return fetch

    def writer(self, rows: int) -> Callable[[], int]:
        """Return what changes so many rows."""
        spans = _tables.spans(rows)
        change = self.database["velodrome_note"].update_many

        def store() -> int:
            try:
                return int(change(between(*next(spans)), CHANGE).modified_count)
            except self._failures as error:
                _tables.tell("pymongo", error)
                return 0

        return store


def prepare(url: str) -> str:
    """Make the collections, unless they are there and whole; return the database's version."""
    documents = Documents(url)
    every = zip(("velodrome_item", "velodrome_note"), ("name", "version"), _tables.fill("%s"))
    for name, field, (_, rows) in every:
        collection = documents.database[name]
        if collection.count_documents({}) != len(rows):
            collection.delete_many({})
            collection.insert_many([{"_id": key, field: value, "body": body} for key, value, body in rows])
    version = str(documents.mongo.server_info()["version"])
    documents.mongo.close()
    return version


client = Client(
    "pymongo",
    "mongodb",
    "PyMongo: pure Python over a socket, so that under gevent other requests run while it waits.",
    Documents,
    requires=(PYMONGO,),
    default=True,
    prepare=prepare,
)

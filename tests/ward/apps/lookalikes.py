"""Decoys: each shows the figure by which a fault is suspected, and has its cause nowhere."""

import asyncio
import json
import threading
import time
from functools import lru_cache

from answering import BODY, answering

one_at_a_time, fifteen, thirty_two = asyncio.Lock(), asyncio.Semaphore(15), asyncio.Semaphore(32)
kept = []


async def behind_a_lock():
    """One request in work, as where the loop is blocked: but it waits, and lets all others wait."""
    async with one_at_a_time:
        await asyncio.sleep(0.005)


async def fifteen_at_once():
    """As many in work as a pool of SQLAlchemy has connections."""
    async with fifteen:
        await asyncio.sleep(0.02)


@lru_cache(maxsize=4000)
def priced(number):
    return bytes(3000)


async def fills_a_cache():
    """Memory rises with every request, until the cache is full."""
    priced(len(kept))
    kept.append(None)


async def opens_files():
    """A descriptor more for each of the first requests, which are kept for those that follow."""
    if len(kept) < 200:
        kept.append(open(__file__, "rb"))  # noqa: SIM115


async def large_for_a_moment():
    """40 MB for each request, which are given back."""
    bytearray(40_000_000)


async def serialises():
    """Computes on the loop, in the C code of `json`, for each request."""
    json.dumps(TABLE)


TABLE = [{"row": row, "name": f"name {row}", "values": [row / 7] * 5} for row in range(400)]


def beside():
    while True:
        time.sleep(0.001)


async def with_a_thread_that_waits():
    """A thread wakes a thousand times a second, and never computes."""
    if not kept:
        kept.append(threading.Thread(target=beside, daemon=True))
        kept[0].start()


async def refusing(scope, receive, send):
    """More than 32 at once are refused by the app itself, which is set to that."""
    if scope["type"] != "http":
        await ready(scope, receive, send)
        return
    status = 503 if thirty_two.locked() else 200
    if status == 200:
        async with thirty_two:
            await asyncio.sleep(0.01)
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": BODY})


async def nothing():
    return None


ready = answering(nothing)
locked, bounded, caching, opening, large, serialising, waking = map(
    answering,
    (
        behind_a_lock,
        fifteen_at_once,
        fills_a_cache,
        opens_files,
        large_for_a_moment,
        serialises,
        with_a_thread_that_waits,
    ),
)

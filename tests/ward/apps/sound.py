"""Healthy apps, and decoys: what looks like a fault and is none."""

import asyncio
import hashlib

from answering import answering


async def at_once():
    return None


async def awaits():
    await asyncio.sleep(0.01)


async def computes():
    """On the loop, for some 5 ms: it holds up others, and no thread, client or `def` would change that."""
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 10_000)
    value = 0
    for number in range(60_000):
        value += number


nothing, waiting, computing = map(answering, (at_once, awaits, computes))

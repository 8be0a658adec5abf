"""`blocking-call`: a call that waits on the loop's thread, in every request or in one of a hundred; and cured."""

import asyncio
import time
from itertools import count

from answering import answering

_numbers = count(1)


def price(seconds):
    time.sleep(seconds)
    return seconds


async def in_every_request():
    price(0.01)


async def in_one_of_a_hundred():
    if next(_numbers) % 100 == 0:
        price(0.02)
    await asyncio.sleep(0.002)


async def awaited():
    await asyncio.sleep(0.01)


severe, mild, cured = map(answering, (in_every_request, in_one_of_a_hundred, awaited))

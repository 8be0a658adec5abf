"""Two faults at once: a call that blocks the loop in one request of twenty, and all of them through AnyIO's threads."""

from itertools import count

from answering import answering
from anyio import to_thread
from blocking import price
from threads import query

numbers = count(1)


async def both():
    if next(numbers) % 20 == 0:
        price(0.03)
    await to_thread.run_sync(query)


severe = answering(both)

"""`serial-gather`: four calls of 8 ms gathered through one connection behind a lock; cured by one for each call."""

import asyncio

from answering import answering

TAKES_S, CALLS = 0.008, 4


class Connection:
    """Carries one call at a time."""

    def __init__(self):
        self.turn = asyncio.Lock()

    async def call(self):
        async with self.turn:
            await asyncio.sleep(TAKES_S)
            return 1


async def over_one():
    connection = Connection()
    return sum(await asyncio.gather(*(connection.call() for _ in range(CALLS))))


async def over_some():
    return sum(await asyncio.gather(*(Connection().call() for _ in range(CALLS))))


severe, cured = answering(over_one), answering(over_some)

"""`connections-leak`: one request of twenty leaves a file open; and cured."""

import asyncio
import os
from itertools import count

from answering import answering

numbers = count(1)
kept = []


def opening(keeps):
    async def opens():
        await asyncio.sleep(0.01)
        if next(numbers) % 20 == 0:
            descriptor = os.open(os.devnull, os.O_RDONLY)
            if keeps:
                kept.append(descriptor)
            else:
                os.close(descriptor)

    return opens


severe, cured = answering(opening(True)), answering(opening(False))

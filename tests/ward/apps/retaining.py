"""`arenas`: threads that need some megabytes for a moment, and keep little of it; cured by one thread at a time.

What stays is small and bounded, and comes last: what lies below it in its arena is free, and is not given back.
"""

import asyncio
import collections
import time
from concurrent.futures import ThreadPoolExecutor

from answering import answering

THREADS, PIECES, PIECE = 32, 3000, 2000
kept = collections.deque(maxlen=2 * THREADS)
many, alone = ThreadPoolExecutor(THREADS), ThreadPoolExecutor(1)


def reads_a_report():
    time.sleep(0.01)  # the database
    rows = [bytes(PIECE) for _ in range(PIECES)]
    kept.append(rows[-1])
    return len(rows)


def in_threads_of(pool):
    async def work():
        await asyncio.get_running_loop().run_in_executor(pool, reads_a_report)

    return answering(work)


severe, cured = in_threads_of(many), in_threads_of(alone)

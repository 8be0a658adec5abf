"""`thread-tokens`: calls that wait in AnyIO's threads; cured, and bounded by a semaphore of the app's own."""

import asyncio

from answering import answering
from anyio import to_thread
from threads import query

semaphore = asyncio.Semaphore(40)


async def in_anyio():
    await to_thread.run_sync(query)


async def in_anyio_with_more():
    to_thread.current_default_thread_limiter().total_tokens = 400
    await to_thread.run_sync(query)


async def in_anyio_behind_a_semaphore():
    async with semaphore:
        await in_anyio_with_more()


severe, cured, decoy = map(answering, (in_anyio, in_anyio_with_more, in_anyio_behind_a_semaphore))

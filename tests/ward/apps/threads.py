"""`thread-tokens` and `default-executor`: calls that wait in threads of a pool; cured, and with bounds of their own."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from answering import answering

WAITS_S = 0.05


def query() -> None:
    time.sleep(WAITS_S)


async def in_anyio() -> None:
    from anyio import to_thread

    await to_thread.run_sync(query)


async def in_anyio_with_more() -> None:
    from anyio import to_thread

    to_thread.current_default_thread_limiter().total_tokens = 400
    await to_thread.run_sync(query)


async def in_the_executor() -> None:
    await asyncio.to_thread(query)


_own = ThreadPoolExecutor(200)


async def in_an_executor_of_its_own() -> None:
    await asyncio.get_running_loop().run_in_executor(_own, query)


def bounded(work: Callable[[], Awaitable[None]], most: int) -> Callable[[], Awaitable[None]]:
    """Return work of which at most so many run at once, by a semaphore of the app's own."""
    semaphores: list[asyncio.Semaphore] = []

    async def one_of_them() -> None:
        if not semaphores:
            semaphores.append(asyncio.Semaphore(most))
        async with semaphores[0]:
            await work()

    return one_of_them


tokens, tokens_cured = answering(in_anyio), answering(in_anyio_with_more)
executor, executor_cured = answering(in_the_executor), answering(in_an_executor_of_its_own)
semaphore_of_40 = answering(bounded(partial(asyncio.sleep, WAITS_S), 40))
semaphore_of_40_in_anyio: Any = answering(bounded(in_anyio_with_more, 40))

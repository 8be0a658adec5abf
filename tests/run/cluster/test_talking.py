"""How talks with agents end."""

import asyncio
from contextlib import suppress

from velodrome.run.cluster import talking


def test_a_task_that_forgets_a_cancellation_is_ended_all_the_same() -> None:
    async def forgetful() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)

    async def failing() -> None:
        raise OSError

    async def ends() -> list[bool]:
        tasks = [asyncio.ensure_future(coroutine()) for coroutine in (forgetful, failing)]
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await talking.cancel_all(tasks)
        return [task.done() for task in tasks]

    assert asyncio.run(ends()) == [True, True]

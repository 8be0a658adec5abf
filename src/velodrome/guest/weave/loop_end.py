"""What is opened on a running loop is closed when that loop ends, whoever runs it.

No server has the same hook for that, but all end by cancelling what still runs on the loop: a task that waits
for nothing else closes then.
"""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable, Set

_keepers: Set["asyncio.Task[None]"] = set()
"""A loop holds its tasks weakly."""


def at_loop_end(close: Callable[[], Awaitable[Any]]) -> None:
    """Await `close()` when the running loop ends."""

    async def keep() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await close()

    task = asyncio.get_running_loop().create_task(keep())
    _keepers.add(task)
    task.add_done_callback(_keepers.discard)

"""What the published servers over asyncio's streams share: one read, one answer, and the connection is closed."""

from __future__ import annotations

import asyncio
from typing import Any, Callable

from velodrome.guest.weave.as_published import READ_AT_MOST


def handler(answer: Callable[[bytes], bytes]) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
    """Return the coroutine function that is called for each connection."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.read(READ_AT_MOST)
        writer.write(answer(request))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    return handle

"""`lost-at-stop`: a handler of SIGTERM of the app's own, set when it starts, that exits at once; and cured."""

import asyncio
import os
import signal

from answering import answering


async def waits():
    await asyncio.sleep(0.1)


cured = answering(waits)


async def severe(scope, receive, send):
    if scope["type"] == "lifespan":
        # "So that the container stops quickly."
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
    await cured(scope, receive, send)

"""Takes every request and never ends an answer."""

import asyncio
import time


def application(environ, start_response):
    time.sleep(600)


async def asgi(scope, receive, send):
    assert scope["type"] == "http"
    await asyncio.sleep(600)

"""`stampede`: a cache that is filled by whoever finds it empty; cured by one task for each key.

From a third party where one is named, else from what takes as long in the app.
"""

import asyncio
import os
from urllib.parse import urlsplit

URL = urlsplit(os.environ.get("PAYMENTS_URL", ""))
TAKES_S = 0.02
MOST = 10_000
cache, flights = {}, {}
BODY = b"hello"


async def fetch():
    if not URL.hostname:
        await asyncio.sleep(TAKES_S)
        return
    reader, writer = await asyncio.open_connection(URL.hostname, URL.port)
    path = URL.path or "/"
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {URL.netloc}\r\nConnection: close\r\n\r\n".encode())
    await reader.read()
    writer.close()


async def whoever(key):
    if key not in cache:
        await fetch()
        keep(key)


async def once(key):
    if key in cache:
        return
    if key not in flights:
        flights[key] = asyncio.ensure_future(fetch())
        flights[key].add_done_callback(lambda task: (keep(key), flights.pop(key)))
    await flights[key]


async def every_time(key):
    await fetch()


def keep(key):
    while len(cache) >= MOST:
        cache.pop(next(iter(cache)))
    cache[key] = True


def answering(work):
    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        await work(scope["query_string"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
        await send({"type": "http.response.body", "body": BODY})

    return app


severe, cured, decoy = map(answering, (whoever, once, every_time))

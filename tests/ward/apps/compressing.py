"""`gzip-on-loop`: large responses compressed at level 9, by a middleware or by hand; cured by leaving that to a proxy.

A decoy: an app whose work is to compress, and that answers with what came of it as it is.
"""

import gzip
import json

from starlette.middleware.gzip import GZipMiddleware

ROWS = [
    {"number": number, "name": f"article {number * 7919}", "price": number * 31} for number in range(4000)
]
BODY = json.dumps(ROWS).encode()


async def answered(send, body, *headers):
    start = [(b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": 200, "headers": start})
    await send({"type": "http.response.body", "body": body})


async def cured(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await answered(send, BODY)


compressed = GZipMiddleware(cured)


async def severe(scope, receive, send):
    await (cured if scope["type"] == "lifespan" else compressed)(scope, receive, send)


async def by_hand(scope, receive, send):
    if scope["type"] == "lifespan":
        await cured(scope, receive, send)
    await answered(send, gzip.compress(BODY), (b"content-encoding", b"gzip"))


async def decoy(scope, receive, send):
    if scope["type"] == "lifespan":
        await cured(scope, receive, send)
    await answered(send, gzip.compress(BODY), (b"content-type", b"application/gzip"))

"""`gzip-on-loop`: large responses compressed at level 9; cured by leaving that to a proxy."""

import json

from starlette.middleware.gzip import GZipMiddleware

ROWS = [
    {"number": number, "name": f"article {number * 7919}", "price": number * 31} for number in range(4000)
]
BODY = json.dumps(ROWS).encode()


async def cured(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    length = str(len(BODY)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": BODY})


compressed = GZipMiddleware(cured)


async def severe(scope, receive, send):
    await (cured if scope["type"] == "lifespan" else compressed)(scope, receive, send)

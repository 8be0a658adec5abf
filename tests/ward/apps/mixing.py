"""`context-bleed`: the request's id is kept in a global while the request waits; and cured by a ContextVar."""

import asyncio
from contextvars import ContextVar

current = {"id": b""}
own = ContextVar("id", default=b"")


def sending(keep, kept):
    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        keep(dict(scope["headers"]).get(b"x-request-id", b"none"))
        await asyncio.sleep(0.005)
        headers = [(b"content-length", b"5"), (b"x-request-id", kept())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"hello"})

    return app


severe = sending(lambda value: current.update(id=value), lambda: current["id"])
cured = sending(own.set, own.get)

"""`no-cancel`: long work in steps that nobody stops when the client has left; and cured by a look between them."""

import asyncio
import time

BODY = b"hello"
STEPS, EACH_S = 10, 0.01


async def compute():
    until = time.thread_time() + EACH_S
    while time.thread_time() < until:
        pass


async def wait():
    await asyncio.sleep(EACH_S)


def working(step, looks):
    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        await receive()
        left = asyncio.ensure_future(receive())
        for _ in range(STEPS):
            await asyncio.sleep(0)
            if looks and left.done():
                return
            await step()
        left.cancel()
        headers = [(b"content-length", b"%d" % len(BODY))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": BODY})

    return app


severe, cured = working(compute, False), working(compute, True)
waiting, waiting_cured = working(wait, False), working(wait, True)

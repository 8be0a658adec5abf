"""What the apps of the ward share: an ASGI application of one coroutine, without a framework."""

BODY = b"hello"


def answering(work):
    """Return an application that does some work for each request, and then answers it."""

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        await work()
        length = str(len(BODY)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": BODY})

    return app

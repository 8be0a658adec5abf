"""Applications that do not begin."""


async def raises(scope, receive, send):
    assert scope["type"] == "lifespan"
    await receive()
    message = "no such database: shop"
    await send({"type": "lifespan.startup.failed", "message": message})


async def hangs(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        print("waiting for the database", flush=True)
        while True:
            await receive()

from aiohttp import web


async def cart(request):
    return web.json_response({"id": request.query.get("id")})


def make_app():
    app = web.Application()
    app.router.add_get("/cart", cart)
    return app


async def make_later():
    return make_app()


app = make_app()

"""`middleware-cost`: three of BaseHTTPMiddleware before an endpoint that answers at once; cured by plain ASGI."""

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route


class Timed(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        response = await call_next(request)
        response.headers["x-shop"] = "1"
        return response


class Plain:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        async def sent(message):
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-shop", b"1")]
            await send(message)

        await self.app(scope, receive, sent)


async def hello(request):
    return PlainTextResponse("hello")


async def works(request):
    for number in range(9_000):
        number + 1
    return PlainTextResponse("hello")


def wrapped(middleware, times, handler=hello):
    return Starlette(routes=[Route("/", handler)], middleware=[Middleware(middleware)] * times)


severe, cured, mild = wrapped(Timed, 3), wrapped(Plain, 3), wrapped(Timed, 1, works)

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


severe, cured = (
    Starlette(routes=[Route("/", hello)], middleware=[Middleware(one)] * 3) for one in (Timed, Plain)
)

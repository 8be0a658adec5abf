"""`background-holds`: a BackgroundTask behind a middleware of Starlette before 0.28; and cured by a task of its own."""

import asyncio

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route

running = set()


class PassesOn(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):
        return await call_next(request)


async def writes_mail():
    await asyncio.sleep(0.1)


async def in_background(request):
    return PlainTextResponse("hello", background=BackgroundTask(writes_mail))


async def in_a_task(request):
    task = asyncio.ensure_future(writes_mail())
    running.add(task)
    task.add_done_callback(running.discard)
    return PlainTextResponse("hello")


def behind_a_middleware(answer):
    return Starlette(routes=[Route("/", answer)], middleware=[Middleware(PassesOn)])


severe, cured = map(behind_a_middleware, (in_background, in_a_task))

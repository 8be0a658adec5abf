"""`background-holds`: work behind the answer, as a BackgroundTask, in the app's own call; and cured by a task."""

import asyncio

from answering import answering
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.responses import PlainTextResponse
from starlette.routing import Route

running = set()


async def writes_mail():
    await asyncio.sleep(0.1)


async def at_once():
    return None


async def in_background(request):
    return PlainTextResponse("hello", background=BackgroundTask(writes_mail))


async def in_a_task(request):
    task = asyncio.create_task(writes_mail())
    running.add(task)
    task.add_done_callback(running.discard)
    return PlainTextResponse("hello")


answer = answering(at_once)


async def severe_without_starlette(scope, receive, send):
    await answer(scope, receive, send)
    if scope["type"] == "http":
        await writes_mail()


severe = Starlette(routes=[Route("/", in_background)])
cured = Starlette(routes=[Route("/", in_a_task)])

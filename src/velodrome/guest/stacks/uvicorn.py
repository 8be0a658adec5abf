"""uvicorn as `uvicorn[standard]` runs it: uvloop and httptools, both in C."""

from velodrome.guest.interfaces.websockets_asyncio import WEBSOCKETS
from velodrome.guest.stack import Stack
from velodrome.guest.stacks import _uvicorn

stack = Stack(
    name="uvicorn",
    title="uvicorn · uvloop",
    about="An event loop in C with a parser in C; while a request awaits the other tasks run.",
    interface="asgi",
    concurrency="tasks",
    command=_uvicorn.fast,
    requires=(*_uvicorn.REQUIRES, WEBSOCKETS),
    knobs={"workers": 1, "loop": "uvloop", "backlog": 2048, "keepalive": 75, "limit_concurrency": 0},
    choices={"loop": ("uvloop", "asyncio")},
    python=_uvicorn.OLDEST_PYTHON,
    needs=_uvicorn.NEEDS,
    server=_uvicorn.SERVER,
    usual=True,
)

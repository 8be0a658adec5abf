"""Starlette on uvicorn, as a client of gRPC: a `grpc.aio` channel made in the start-up event.

A channel belongs to a loop, and a module is imported before the loop of uvicorn runs.
"""

from velodrome.guest.interface import GRPCIO
from velodrome.guest.stack import Stack
from velodrome.guest.stacks import _uvicorn

stack = Stack(
    name="starlette-uvicorn-grpc",
    title="Starlette · uvicorn · gRPC client",
    about="Starlette on uvicorn's event loop, with a `grpc.aio` channel made at start-up for calls over gRPC.",
    interface="starlette",
    concurrency="tasks",
    command=_uvicorn.fast,
    requires=(*_uvicorn.REQUIRES, *GRPCIO),
    knobs={"workers": 1, "loop": "uvloop", "backlog": 2048},
    choices={"loop": ("uvloop", "asyncio")},
    python=(3, 11),
    server=_uvicorn.SERVER,
)

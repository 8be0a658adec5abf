"""grpc.aio's servicer: a coroutine method called once per call, on the server's event loop.

`app` is a function that adds the service to a `grpc.aio.Server`, as the generated `add_…_to_server` is.
"""

from __future__ import annotations

from typing import Any

from velodrome.guest.codegen.idioms import Awaiting
from velodrome.guest.grpc.greeter import protobuf_messages
from velodrome.guest.grpc.servicer import Frame, adds, raising, servicer
from velodrome.guest.interface import AIOHTTP, GRPCIO, Interface, lazily
from velodrome.guest.recipe import Recipe, served_here

interface = Interface(
    "grpc_aio",
    "a servicer's coroutine method called once per gRPC call, which awaits",
    requires=(*GRPCIO, AIOHTTP),
    chats=True,
    awaits=True,
    protocol="grpc",
    apps=True,
)

FRAME = Frame(
    "grpc_aio", ", context", lambda method: method.name, raising("await context.abort(StatusCode.%s, %r)")
)  # abort raises


def build(recipe: Recipe, upstream: str) -> Any:
    """Return what adds the service of a recipe to a server. Needs grpcio and protobuf installed."""
    from grpc import StatusCode

    messages = protobuf_messages()
    made = servicer(recipe, upstream, Awaiting(), FRAME, messages, StatusCode=StatusCode)
    return adds(made(), messages)


def make_app() -> Any:
    """Return what adds the service of the recipe this process serves to a server."""
    return build(*served_here())


__getattr__ = lazily(globals())

"""grpcio's servicer: a method called once per call, on a thread (or greenlet) of the server's pool.

`app` is a function that adds the service to a `grpc.Server`, as the generated `add_…_to_server` is.
"""

from __future__ import annotations

from typing import Any

from velodrome.guest.codegen.idioms import Blocking
from velodrome.guest.grpc.greeter import protobuf_messages
from velodrome.guest.grpc.servicer import Frame, adds, raising, servicer
from velodrome.guest.interface import GRPCIO, URLLIB3, Interface, lazily
from velodrome.guest.recipe import Recipe, served_here

interface = Interface(
    "grpc",
    "a servicer's method called once per gRPC call, which may block",
    requires=(*GRPCIO, URLLIB3),
    chats=True,
    protocol="grpc",
    apps=True,
)

FRAME = Frame(
    "grpc", ", context", lambda method: method.name, raising("context.abort(StatusCode.%s, %r)")
)  # abort raises


def build(recipe: Recipe, upstream: str) -> Any:
    """Return what adds the service of a recipe to a server. Needs grpcio and protobuf installed."""
    from grpc import StatusCode

    messages = protobuf_messages()
    made = servicer(recipe, upstream, Blocking(), FRAME, messages, StatusCode=StatusCode)
    return adds(made(), messages)


def make_app() -> Any:
    """Return what adds the service of the recipe this process serves to a server."""
    return build(*served_here())


__getattr__ = lazily(globals())

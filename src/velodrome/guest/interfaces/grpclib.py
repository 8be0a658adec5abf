"""grpclib's handler with betterproto's messages: a coroutine method called once per call, on an event loop.

`app` is a service with a `__mapping__`, as a class made by betterproto's plugin is.
"""

from __future__ import annotations

from typing import Any, Callable

from velodrome.guest.codegen.idioms import TIMEOUT_S, Awaiting
from velodrome.guest.grpc.greeter import betterproto_messages
from velodrome.guest.grpc.servicer import Frame, raising, service, servicer, snake_case
from velodrome.guest.interface import AIOHTTP, GRPCLIB, Interface, lazily
from velodrome.guest.recipe import Recipe, served_here

interface = Interface(
    "grpclib",
    "a service's coroutine method called once per gRPC call, which awaits; HTTP/2 and messages in pure Python",
    requires=(*GRPCLIB, AIOHTTP),
    chats=True,
    awaits=True,
    protocol="grpc",
)

FRAME = Frame("grpclib", "", snake_case, raising("raise GRPCError(Status.%s, %r)"))


class GrpclibAwaiting(Awaiting):
    """Calls over gRPC with grpclib's own client; all else as any coroutine."""

    def ask_grpc(self, peer: str) -> Callable[[int], Any]:
        """Return a coroutine function over one grpclib channel, made at the first call."""
        from velodrome.guest.grpc.peers import GrpclibPeer

        return GrpclibPeer(peer, TIMEOUT_S).ask


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the service of a recipe. Needs grpclib and betterproto installed."""
    from grpclib.const import Status
    from grpclib.exceptions import GRPCError

    messages = betterproto_messages()
    names = {"GRPCError": GRPCError, "Status": Status}
    made = servicer(recipe, upstream, GrpclibAwaiting(), FRAME, messages, **names)
    return service(made(), messages)


def make_app() -> Any:
    """Return the service of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())

"""A servicer as grpclib is given it: with a `__mapping__` of paths, written as betterproto's plugin writes it."""

from __future__ import annotations

from typing import Any, Awaitable, Callable, Dict

from velodrome.guest.grpc.descriptor import Messages
from velodrome.guest.grpc.greeter import METHODS, Method

Rpc = Callable[[Any], Awaitable[None]]


def snake_case(method: Method) -> str:
    """Return the name of a method as betterproto writes it, e.g. `say_hello`."""
    parts = ("_" + letter.lower() if letter.isupper() else letter for letter in method.name)
    return "".join(parts).lstrip("_")


def service(servicer: Any, messages: Messages) -> Any:
    """Return what `grpclib.server.Server` serves. Needs grpclib and betterproto installed."""
    from betterproto.grpc.grpclib_server import ServiceBase
    from grpclib.const import Cardinality, Handler

    class GreeterBase(ServiceBase):  # type: ignore[misc]  # it is Any where it is not installed
        def __mapping__(self) -> Dict[str, Any]:
            mapping = {}
            for method in METHODS:
                behaviour = getattr(servicer, snake_case(method), None)
                rpc = _unimplemented if behaviour is None else _rpc(method, behaviour, self)
                cardinality = Cardinality[method.kind.upper()]
                mapping[method.path] = Handler(rpc, cardinality, messages.request, messages.reply)
            return mapping

    return GreeterBase()


async def _unimplemented(stream: Any) -> None:
    # As the plugin's base class does: grpclib's own refusal lacks a header, and its client cannot read it.
    from grpclib.const import Status
    from grpclib.exceptions import GRPCError

    raise GRPCError(Status.UNIMPLEMENTED)


def _rpc(method: Method, behaviour: Any, base: Any) -> Rpc:
    """Return what grpclib calls with a stream: it takes requests off it and puts replies on it."""

    async def one_to_one(stream: Any) -> None:
        await stream.send_message(await behaviour(await stream.recv_message()))

    async def one_to_many(stream: Any) -> None:
        request = await stream.recv_message()
        await base._call_rpc_handler_server_stream(behaviour, stream, request)

    async def many_to_one(stream: Any) -> None:
        await stream.send_message(await behaviour(stream.__aiter__()))

    async def many_to_many(stream: Any) -> None:
        await base._call_rpc_handler_server_stream(behaviour, stream, stream.__aiter__())

    if method.takes_stream:
        return many_to_many if method.gives_stream else many_to_one
    return one_to_many if method.gives_stream else one_to_one

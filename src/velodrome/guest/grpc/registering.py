"""How grpcio is told of a servicer, blocking or awaiting: as its generated `add_GreeterServicer_to_server` does."""

from __future__ import annotations

from typing import Any, Callable

from velodrome.guest.grpc.descriptor import Messages
from velodrome.guest.grpc.greeter import METHODS, SERVICE


def adds(servicer: Any, messages: Messages) -> Callable[[Any], None]:
    """Return `add(server)`, for `grpc.server` and `grpc.aio.server` alike. Needs grpcio installed."""
    import grpc

    handlers = {}
    for method in METHODS:
        behaviour = getattr(servicer, method.name, None)
        if behaviour is not None:
            made = getattr(grpc, method.kind + "_rpc_method_handler")
            handlers[method.name] = made(
                behaviour,
                request_deserializer=messages.request.FromString,
                response_serializer=messages.reply.SerializeToString,
            )

    def add(server: Any) -> None:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        if hasattr(server, "add_registered_method_handlers"):  # since 1.63
            server.add_registered_method_handlers(SERVICE, handlers)

    return add

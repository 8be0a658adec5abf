"""The client's half of grpcio's generated code: one stub, blocking or awaitable as the channel is it was made on."""

from __future__ import annotations

import inspect
from typing import Any

from velodrome.guest.grpc.descriptor import Messages
from velodrome.guest.grpc.greeter import METHODS


class GreeterStub:
    """A callable for each method of the service, by its name: `stub.SayHello(request, timeout=1)`."""

    SayHello: Any
    SayHelloStream: Any
    CollectHellos: Any
    Chat: Any

    def __init__(self, channel: Any, messages: Messages) -> None:
        """Make it on a `grpc.Channel` or a `grpc.aio.Channel`."""
        # Since 1.63, as generated code says it there: the core need not look the method up with each call.
        registered = "_registered_method" in inspect.signature(channel.unary_unary).parameters
        for method in METHODS:
            made = getattr(channel, method.kind)(
                method.path,
                request_serializer=messages.request.SerializeToString,
                response_deserializer=messages.reply.FromString,
                **({"_registered_method": True} if registered else {}),
            )
            setattr(self, method.name, made)

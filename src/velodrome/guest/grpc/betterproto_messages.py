"""The messages as betterproto's plugin writes them: dataclasses whose fields know their numbers."""

from __future__ import annotations

from dataclasses import dataclass

from velodrome.guest.grpc.descriptor import Messages


def betterproto_messages() -> Messages:
    """Return betterproto's classes of the messages. Needs betterproto installed."""
    import betterproto

    @dataclass(eq=False, repr=False)
    class HelloRequest(betterproto.Message):  # type: ignore[misc]  # Any where it is not installed
        name: str = betterproto.string_field(1)
        sleep_millisecond: int = betterproto.int32_field(2)
        body: bytes = betterproto.bytes_field(3)

    @dataclass(eq=False, repr=False)
    class HelloReply(betterproto.Message):  # type: ignore[misc]  # Any where it is not installed
        message: str = betterproto.string_field(1)
        body: bytes = betterproto.bytes_field(2)

    return Messages(HelloRequest, HelloReply)

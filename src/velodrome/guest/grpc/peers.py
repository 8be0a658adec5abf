"""The third party that is called over gRPC, as each idiom's own client asks it; all over one channel a process.

ask = blocking_peer("127.0.0.1:50051", 30)
ask(200)            0 (OK) after 200 ms, or the number of the status it failed with
"""

from __future__ import annotations

from typing import Any, Callable, Optional

from velodrome.guest.grpc.betterproto_messages import betterproto_messages
from velodrome.guest.grpc.descriptor import protobuf_messages
from velodrome.guest.grpc.gevent_mode import enter_if_patched
from velodrome.guest.grpc.greeter import NAME, SAY_HELLO
from velodrome.guest.grpc.stub import GreeterStub
from velodrome.guest.weave.loop_end import at_loop_end

UNAVAILABLE = 14


def blocking_peer(address: str, timeout_s: float) -> Callable[[int], int]:
    """Return what asks over a channel made now, which must be after any fork; under gevent, in its mode.

    Needs grpcio installed.
    """
    enter_if_patched()
    import grpc

    messages = protobuf_messages()
    stub = GreeterStub(grpc.insecure_channel(address), messages)

    def ask(milliseconds: int) -> int:
        request = messages.request(name=NAME, sleep_millisecond=milliseconds)
        try:
            stub.SayHello(request, timeout=timeout_s)
        except grpc.RpcError as error:
            return int(error.code().value[0])
        return 0

    return ask


class AioPeer:
    """A `grpc.aio` channel: it belongs to a loop, so a start-up event opens it, or else the first call."""

    def __init__(self, address: str, timeout_s: float) -> None:
        """Open nothing yet. Needs grpcio installed."""
        import grpc

        self._failure = grpc.RpcError
        self._address, self._timeout_s = address, timeout_s
        self._messages = protobuf_messages()
        self._stub: Optional[GreeterStub] = None

    def open(self) -> GreeterStub:
        """Open the channel on the running loop, with whose end it closes."""
        from grpc import aio

        channel = aio.insecure_channel(self._address)
        self._stub = GreeterStub(channel, self._messages)
        at_loop_end(channel.close)
        return self._stub

    async def ask(self, milliseconds: int) -> int:
        """Ask, and return the number of the status."""
        stub = self._stub or self.open()
        request = self._messages.request(name=NAME, sleep_millisecond=milliseconds)
        try:
            await stub.SayHello(request, timeout=self._timeout_s)
        except self._failure as error:
            return int(error.code().value[0])
        return 0


class GrpclibPeer:
    """A grpclib channel, asked as betterproto's stub asks; the first call opens it on the running loop."""

    def __init__(self, address: str, timeout_s: float) -> None:
        """Open nothing yet. Needs grpclib and betterproto installed."""
        self._host, _, port = address.rpartition(":")
        self._port, self._timeout_s = int(port), timeout_s
        self._messages = betterproto_messages()
        self._method: Optional[Any] = None

    def _open(self) -> Any:
        from grpclib.client import Channel, UnaryUnaryMethod

        channel = Channel(self._host, self._port)
        self._method = UnaryUnaryMethod(channel, SAY_HELLO.path, self._messages.request, self._messages.reply)

        async def close() -> None:
            channel.close()

        at_loop_end(close)
        return self._method

    async def ask(self, milliseconds: int) -> int:
        """Ask, and return the number of the status; one for a server that cannot be reached as well."""
        from asyncio import TimeoutError as Late

        from grpclib.exceptions import GRPCError, StreamTerminatedError

        method = self._method or self._open()
        request = self._messages.request(name=NAME, sleep_millisecond=milliseconds)
        try:
            await method(request, timeout=self._timeout_s)
        except GRPCError as error:
            return int(error.status.value)
        except (OSError, Late, StreamTerminatedError):
            return UNAVAILABLE
        return 0

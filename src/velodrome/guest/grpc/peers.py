"""Clients of the gRPC third party: a stub, and for each idiom what calls it, over one channel a process.

    call = blocking_peer("127.0.0.1:50051", 30)
    call(200)            0 (OK) after 200 ms, or the number of the status it failed with

As a program, `python -m velodrome.guest.grpc.peers HOST:PORT SECONDS` calls a server until it answers. On failure the
exit status is 1 and the last line of standard error says why. Needs grpcio installed.
"""

from __future__ import annotations

import inspect
import sys
import time
from typing import Any, Callable, List, Optional

from velodrome.guest.grpc.greeter import (
    METHODS,
    NAME,
    SAY_HELLO,
    Messages,
    betterproto_messages,
    protobuf_messages,
)
from velodrome.guest.workers import at_loop_end

_entered: List[bool] = []


def enter() -> None:
    """Enter grpcio's gevent compatibility mode, once per process.

    To be called after the standard library was patched, before any object of gRPC is made.

    Its core then waits on threads of gevent's pool and calls back into greenlets. Without the mode every wait of grpcio
    stops the whole process, event loop of gevent and all.
    """
    if not _entered:
        from grpc.experimental.gevent import init_gevent

        init_gevent()
        _entered.append(True)


def enter_if_patched() -> None:
    """Enter the mode where gevent has patched the standard library; else do nothing."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("socket"):
        enter()


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
    """A grpclib channel, called as betterproto's stub calls; the first call opens it on the running loop."""

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
        """Call, and return the number of the status, also for a server that cannot be reached."""
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


PAUSE_S = 0.03
CALL_S = 2.0


def main(argv: List[str]) -> int:
    """Run the program."""
    until = time.monotonic() + float(argv[1])
    while True:
        # Each time on a channel of its own: a channel that was refused waits a second before it tries again.
        status = blocking_peer(argv[0], CALL_S)(0)
        if status == 0:
            return 0
        if time.monotonic() > until:
            sys.stderr.write("its calls end with status %d\n" % status)
            return 1
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

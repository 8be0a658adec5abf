"""Run inside an environment that has grpcio or grpclib: call a server by any method, and print what came.

    python -P client.py [together] < calls.json

A call is {"address", "method", "bodies": [bytes…], "name", "sleep_millisecond", "each"}; its answer is one
line {"code", "message", "messages", "bodies", "right", "started", "seconds", "times"}: code and message of the
status, greetings and lengths of the replies' bodies, whether all are filler, when it began by the monotonic
clock, how long it took, and when each came. Bodies of requests are given as lengths of filler. In a chat the next
request is sent when the one before got its `each` replies.
Each call has a connection of its own; `together` makes all at once.
"""

import asyncio
import json
import queue
import sys
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from velodrome.guest.grpc.greeter import METHODS, Method
from velodrome.guest.recipe import filler

DEADLINE_S = 20.0
UNAVAILABLE = 14


class Log:
    """What came, as it comes."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.replies: list[Any] = []
        self.times: list[float] = []

    def add(self, reply: Any) -> None:
        self.replies.append(reply)
        self.times.append(time.monotonic() - self.started)

    def report(self, code: int, message: str) -> dict[str, Any]:
        return {
            "code": code,
            "message": message,
            "messages": [reply.message for reply in self.replies],
            "bodies": [len(reply.body) for reply in self.replies],
            "right": all(reply.body == filler(len(reply.body)) for reply in self.replies),
            "started": self.started,
            "seconds": time.monotonic() - self.started,
            "times": self.times,
        }


def over_grpcio(address: str, method: Method, requests: list[dict[str, Any]], size: int) -> dict[str, Any]:
    """Call by grpcio, blocking; `each` is how many replies a message of a conversation gets."""
    import grpc  # noqa: PLC0415 - only in its environment

    from velodrome.guest.grpc.greeter import protobuf_messages  # noqa: PLC0415 - only in its environment
    from velodrome.guest.grpc.peers import GreeterStub  # noqa: PLC0415 - only in its environment

    messages, answered, log = protobuf_messages(), queue.Queue[None](), Log()

    def outgoing() -> Iterator[Any]:
        for number, fields in enumerate(requests):
            if number and method.gives_stream:
                for _ in range(size):
                    answered.get(timeout=DEADLINE_S)
            yield messages.request(**fields)

    # Else all channels of a process share one connection.
    with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        call = getattr(GreeterStub(channel, messages), method.name)
        argument = outgoing() if method.takes_stream else messages.request(**requests[0])
        try:
            replies = call(argument, timeout=DEADLINE_S, wait_for_ready=True)
            for reply in replies if method.gives_stream else [replies]:
                log.add(reply)
                answered.put(None)
        except grpc.RpcError as error:
            return log.report(error.code().value[0], error.details())
    return log.report(0, "")


def over_grpclib(address: str, method: Method, requests: list[dict[str, Any]], size: int) -> dict[str, Any]:
    """Call by grpclib, as betterproto's stub does."""
    return asyncio.run(_over_grpclib(address, method, requests, size))


async def _over_grpclib(
    address: str, method: Method, requests: list[dict[str, Any]], size: int
) -> dict[str, Any]:
    from grpclib.client import Channel  # noqa: PLC0415 - only in its environment
    from grpclib.const import Cardinality  # noqa: PLC0415 - only in its environment
    from grpclib.exceptions import GRPCError, StreamTerminatedError  # noqa: PLC0415 - as above

    from velodrome.guest.grpc.greeter import betterproto_messages  # noqa: PLC0415

    messages, log = betterproto_messages(), Log()
    host, _, port = address.rpartition(":")
    cardinality = Cardinality[method.kind.upper()]
    async with Channel(host, int(port)) as channel:
        try:
            async with channel.request(
                method.path, cardinality, messages.request, messages.reply, timeout=DEADLINE_S
            ) as stream:
                async for reply in _talk(stream, [messages.request(**f) for f in requests], method, size):
                    log.add(reply)
        except GRPCError as error:
            return log.report(error.status.value, error.message or "")
        except StreamTerminatedError as error:  # grpcio tells it as this status
            return log.report(UNAVAILABLE, str(error))
    return log.report(0, "")


async def _talk(stream: Any, requests: list[Any], method: Method, size: int) -> AsyncIterator[Any]:
    for number, request in enumerate(requests):
        await stream.send_message(request, end=number == len(requests) - 1)
        if method.takes_stream and method.gives_stream and number < len(requests) - 1:
            for _ in range(size):
                yield await stream.recv_message()
    if method.gives_stream:
        async for reply in stream:
            yield reply
    elif (reply := await stream.recv_message()) is not None:
        yield reply


def answer(call: dict[str, Any]) -> dict[str, Any]:
    """Call once, by whichever library is installed."""
    method = next(method for method in METHODS if method.name == call["method"])
    requests = [
        {"name": call["name"], "sleep_millisecond": call["sleep_millisecond"], "body": filler(length)}
        for length in call["bodies"]
    ]
    try:
        import grpc  # noqa: F401, PLC0415 - is it there?
    except ImportError:
        return over_grpclib(call["address"], method, requests, call["each"])
    return over_grpcio(call["address"], method, requests, call["each"])


def main() -> None:
    calls = json.load(sys.stdin)
    with ThreadPoolExecutor(len(calls) if sys.argv[1:] == ["together"] else 1) as pool:
        for reply in pool.map(answer, calls):
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()

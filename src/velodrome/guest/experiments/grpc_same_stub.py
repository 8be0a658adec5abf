"""One stub class on a blocking and on an awaiting channel of grpcio, and whether their options do the same.

python -m velodrome.guest.experiments.grpc_same_stub

Prints one line of JSON, of `blocking` and of `aio` each

    {"awaitable": false, "reply": "Hello, world!", "servers_pick_first": 1, "servers_round_robin": 2,
     "ended_with_retries": "OK", "ended_without_retries": "UNAVAILABLE",
     "stalled_keepalive_timeout": "DEADLINE_EXCEEDED", "stalled_s_keepalive_timeout": 3.0,
     "stalled_ping_timeout": "UNAVAILABLE", "stalled_s_ping_timeout": 1.5}

That an option is *taken* says nothing: grpcio takes any name. So each is recognised by what it does.
`grpc.lb_policy_name`: how many of two servers get calls. `grpc.enable_retries`: how a call to a server that
refuses twice ends, where the service config allows three attempts. `grpc.keepalive_timeout_ms`: how and when a
call ends to a server that has stopped (SIGSTOP); as grpcio 1.60 to 1.85 leave it without effect where it is shorter
than a minute, `grpc.http2.ping_timeout_ms`, which has a default, stands beside it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Awaitable, Callable, Dict, Iterator, Sequence, Tuple

from velodrome.guest.grpc.greeter import NAME, greeting, protobuf_messages
from velodrome.guest.grpc.peers import GreeterStub
from velodrome.guest.grpc.servicer import adds

PROGRAM = "velodrome.guest.experiments.grpc_same_stub"
REFUSED = "refused-twice"
"""A request with a name that begins so is refused twice before it is answered."""
STALLS = "stalls"
"""A request with this name stops (SIGSTOP) the server."""
CALLS = 25
DEADLINE_S = 3.0
RETRYING = json.dumps(
    {
        "methodConfig": [
            {
                "name": [{}],
                "retryPolicy": {
                    "maxAttempts": 3,
                    "initialBackoff": "0.01s",
                    "maxBackoff": "0.05s",
                    "backoffMultiplier": 1,
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            }
        ]
    }
)

PAUSE_S = 0.02
"""Between calls: the connection to the second server takes a moment."""
PINGING = ("grpc.keepalive_time_ms", 1000)
NOTICING = {
    "keepalive_timeout": (PINGING, ("grpc.keepalive_timeout_ms", 500)),
    "ping_timeout": (PINGING, ("grpc.http2.ping_timeout_ms", 500)),
}

Options = Sequence[Tuple[str, Any]]
Ask = Callable[[str, Options, str, int], Awaitable[Sequence[str]]]
"""Address, options, name, times: makes a channel, calls that often, returns replies or names of statuses."""


class Counting:
    """A servicer that says which server answers, and counts the calls by each name."""

    def __init__(self) -> None:
        """No call has come yet."""
        self.messages = protobuf_messages()
        self.calls: Dict[str, int] = {}

    def SayHello(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name for it
        """Greet, with this process's id; refuse twice, or stop the whole process, where the name says so."""
        import grpc

        count = self.calls[request.name] = self.calls.get(request.name, 0) + 1
        if request.name.startswith(REFUSED) and count < 3:
            context.abort(grpc.StatusCode.UNAVAILABLE, "refused")
        if request.name == STALLS:
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(60)  # the signal may go to another thread first, and this thread would answer
        return self.messages.reply(message=greeting(request.name), body=b"%d" % os.getpid())


def serve() -> None:
    """Serve on a port of the system's choice, print it, and stay."""
    import grpc

    server = grpc.server(ThreadPoolExecutor(8))
    servicer = Counting()
    adds(servicer, servicer.messages)(server)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    server.wait_for_termination()


@contextmanager
def servers(count: int) -> Iterator[Sequence[str]]:
    """Start servers, give their addresses, and end them."""
    started = [
        subprocess.Popen([sys.executable, "-m", PROGRAM, "serve"], stdout=subprocess.PIPE)
        for _ in range(count)
    ]
    try:
        yield ["127.0.0.1:%d" % int(process.stdout.readline()) for process in started if process.stdout]
    finally:
        for process in started:
            process.kill()  # SIGKILL: some are stopped
            process.wait()


async def blocking(address: str, options: Options, name: str, times: int) -> Sequence[str]:
    """Ask on a `grpc.Channel`."""
    import grpc

    messages, replies = protobuf_messages(), []
    with grpc.insecure_channel(address, options) as channel:
        stub = GreeterStub(channel, messages)
        for _ in range(times):
            try:
                reply = stub.SayHello(messages.request(name=name), timeout=DEADLINE_S)
                replies.append(reply.body.decode())
            except grpc.RpcError as error:
                replies.append(str(error.code().name))
            time.sleep(PAUSE_S)
    return replies


async def awaiting(address: str, options: Options, name: str, times: int) -> Sequence[str]:
    """Ask on a `grpc.aio.Channel`."""
    import grpc
    from grpc import aio

    messages, replies = protobuf_messages(), []
    async with aio.insecure_channel(address, options) as channel:
        stub = GreeterStub(channel, messages)
        for _ in range(times):
            try:
                reply = await stub.SayHello(messages.request(name=name), timeout=DEADLINE_S)
                replies.append(reply.body.decode())
            except grpc.RpcError as error:
                replies.append(str(error.code().name))
            await asyncio.sleep(PAUSE_S)
    return replies


async def stub_on(channel: Any) -> Dict[str, Any]:
    """Return whether a call on a channel is awaitable, and what it comes to in the end."""
    messages = protobuf_messages()
    called = GreeterStub(channel, messages).SayHello(messages.request(name=NAME), timeout=DEADLINE_S)
    awaitable = inspect.isawaitable(called)
    reply = (await called) if awaitable else called
    return {"awaitable": awaitable, "reply": reply.message}


async def effects(ask: Ask) -> Dict[str, Any]:
    """Return what each option does on one kind of channel."""
    found: Dict[str, Any] = {}
    with servers(4) as (first, second, third, fourth):
        for policy in ("pick_first", "round_robin"):
            replies = await ask(
                "ipv4:%s,%s" % (first, second), [("grpc.lb_policy_name", policy)], NAME, CALLS
            )
            found["servers_" + policy] = len(set(replies))
        for word, enabled in (("with_retries", 1), ("without_retries", 0)):
            options = [("grpc.enable_retries", enabled), ("grpc.service_config", RETRYING)]
            (ended,) = await ask(first, options, REFUSED + word, 1)
            found["ended_" + word] = "OK" if ended.isdigit() else ended
        for server, (word, noticing) in zip((third, fourth), NOTICING.items()):
            began = time.monotonic()
            (found["stalled_" + word],) = await ask(server, noticing, STALLS, 1)
            found["stalled_s_" + word] = time.monotonic() - began
    return found


async def both_kinds() -> Dict[str, Any]:
    """Return what there is to tell of a blocking and of an awaiting channel."""
    import grpc
    from grpc import aio

    found: Dict[str, Any] = {}
    with servers(1) as (address,):
        with grpc.insecure_channel(address) as channel:
            found["blocking"] = await stub_on(channel)
        async with aio.insecure_channel(address) as channel:
            found["aio"] = await stub_on(channel)
    found["blocking"].update(await effects(blocking))
    found["aio"].update(await effects(awaiting))
    return found


def main() -> None:
    """Do what the command line says."""
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        print(json.dumps(asyncio.run(both_kinds())), flush=True)


if __name__ == "__main__":
    main()

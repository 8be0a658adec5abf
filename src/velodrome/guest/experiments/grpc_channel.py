"""A Starlette app on uvicorn that calls a gRPC server over one `grpc.aio` channel, made at a moment of choice.

python -m velodrome.guest.experiments.grpc_channel --made before-loop --host 127.0.0.1 --port 8000 --loop uvloop

`before-loop` makes it as a program does that imports its app and then runs uvicorn: no loop runs yet. `on-import`
makes it as a module does that uvicorn itself imports, given as `module:app`. `start-up` makes it in the start-up
event (lifespan). The peer is known by VELODROME_GRPC. Each request is one call; what a call raises is the body of
a status 500. Of uvicorn's own options these three are heeded, others passed over.
"""

from __future__ import annotations

import argparse
import os
from contextlib import asynccontextmanager
from typing import Any, AsyncIterator, Dict

from velodrome.guest.grpc.greeter import protobuf_messages
from velodrome.guest.grpc.peers import GreeterStub
from velodrome.guest.interface import lazily
from velodrome.guest.recipe import GRPC_VARIABLE

PROGRAM = "velodrome.guest.experiments.grpc_channel"
MADE = ("before-loop", "on-import", "start-up")
CALL_S = 2.0
"""Deadline of a call; longer than it takes by far, shorter than anybody would wait."""


def make_app(at_start_up: bool = False) -> Any:
    """Return the app; its channel is made now, or at start-up. Needs Starlette and grpcio installed."""
    from grpc import aio
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    messages = protobuf_messages()
    stubs: Dict[str, GreeterStub] = {}

    def open_channel() -> None:
        stubs["peer"] = GreeterStub(aio.insecure_channel(os.environ[GRPC_VARIABLE]), messages)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        if at_start_up:
            open_channel()
        yield

    async def endpoint(request: Any) -> Any:
        try:
            reply = await stubs["peer"].SayHello(messages.request(name="world"), timeout=CALL_S)
        except Exception as error:
            return PlainTextResponse("%s: %s" % (type(error).__name__, error), 500)
        return PlainTextResponse(reply.message)

    if not at_start_up:
        open_channel()
    return Starlette(routes=[Route("/", endpoint)], lifespan=lifespan)


def main() -> None:
    """Run uvicorn as the command line says."""
    import uvicorn

    parser = argparse.ArgumentParser(prog="python -m " + PROGRAM)
    parser.add_argument("--made", choices=MADE, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), required=True)
    options, _ = parser.parse_known_args()
    app = PROGRAM + ":app" if options.made == "on-import" else make_app(options.made == "start-up")
    uvicorn.run(
        app,
        host=options.host,
        port=options.port,
        loop=options.loop,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=2,
    )


__getattr__ = lazily(globals())

if __name__ == "__main__":
    main()

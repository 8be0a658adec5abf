"""grpclib's server: HTTP/2 in pure Python on an event loop, with betterproto's messages.

python -m velodrome.guest.stacks.grpclib --app MODULE:ATTRIBUTE --port PORT [--workers N] [--loop uvloop]
"""

from __future__ import annotations

import asyncio
from argparse import Namespace

from velodrome.guest.grpc.processes import GRACE_S, command, serve_in_each, shares_port, until_signalled
from velodrome.guest.interface import GRPCLIB
from velodrome.guest.stack import Launch, Process, Stack, Variant
from velodrome.guest.workers import LOOPS, UVLOOP, UVLOOP_WHERE_IT_RUNS, arguments, load, run

PROGRAM = "velodrome.guest.stacks.grpclib"


def _command(launch: Launch) -> Process:
    return command(PROGRAM, launch)


stack = Stack(
    name="grpclib",
    title="grpclib",
    about="gRPC in pure Python on the standard event loop, a task for each call, at most 100 on a connection; "
    "while one awaits the others run.",
    interface="grpclib",
    concurrency="tasks",
    command=_command,
    requires=(*GRPCLIB, UVLOOP_WHERE_IT_RUNS),
    knobs={"workers": 1, "loop": "asyncio", "backlog": 2048},
    choices={"loop": LOOPS},
    python=(3, 10),
    variants=(
        Variant(
            "grpclib-uvloop",
            "grpclib · uvloop",
            "gRPC in pure Python on an event loop in C, a task for each call, at most 100 on a connection; "
            "while one awaits the others run.",
            {"loop": "uvloop"},
            (UVLOOP,),
        ),
    ),
)


async def serve(options: Namespace) -> None:
    """Serve until SIGTERM or SIGINT; calls in flight are cancelled."""
    from grpclib.server import Server

    server = Server([load(options.app)])
    await server.start(
        options.host, options.port, backlog=options.backlog, reuse_port=shares_port(options) or None
    )
    await until_signalled()
    server.close()
    await asyncio.wait_for(server.wait_closed(), GRACE_S)


def main() -> None:
    """Run the program."""
    parser = arguments(PROGRAM)
    parser.add_argument("--loop", choices=LOOPS, default="asyncio")
    options = parser.parse_args()
    serve_in_each(options, lambda: run(serve(options), options.loop))


if __name__ == "__main__":
    main()

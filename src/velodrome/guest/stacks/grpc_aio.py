"""grpcio's asyncio server.

python -m velodrome.guest.stacks.grpc_aio --app MODULE:ATTRIBUTE --port PORT [--workers N] [--loop uvloop]
"""

from __future__ import annotations

from argparse import Namespace

from velodrome.guest.grpc.processes import (
    GRACE_S,
    command,
    on_loop,
    serve_in_each,
    shares_port,
    until_signalled,
)
from velodrome.guest.interface import GRPCIO
from velodrome.guest.stack import Launch, Process, Stack, Variant
from velodrome.guest.workers import LOOPS, UVLOOP, UVLOOP_WHERE_IT_RUNS, arguments, load, run

PROGRAM = "velodrome.guest.stacks.grpc_aio"


def _command(launch: Launch) -> Process:
    return command(PROGRAM, launch)


stack = Stack(
    name="grpc-aio",
    title="grpc.aio",
    about="grpcio's C core under the standard event loop, a task for each call; while one awaits others run.",
    interface="grpc_aio",
    concurrency="tasks",
    command=_command,
    requires=(*GRPCIO, UVLOOP_WHERE_IT_RUNS),
    knobs={"workers": 1, "loop": "asyncio"},
    choices={"loop": LOOPS},
    python=(3, 10),
    script=on_loop,
    variants=(
        Variant(
            "grpc-aio-uvloop",
            "grpc.aio · uvloop",
            "grpcio's C core under an event loop in C, a task for each call; while one awaits others run.",
            {"loop": "uvloop"},
            (UVLOOP,),
        ),
    ),
)


async def serve(options: Namespace) -> None:
    """Serve until SIGTERM or SIGINT, and let calls in flight end."""
    from grpc import aio

    server = aio.server(options=(("grpc.so_reuseport", int(shares_port(options))),))
    load(options.app)(server)
    server.add_insecure_port("%s:%d" % (options.host, options.port))
    await server.start()
    await until_signalled()
    await server.stop(GRACE_S)


def main() -> None:
    """Run the program."""
    parser = arguments(PROGRAM)
    parser.add_argument("--loop", choices=LOOPS, default="asyncio")
    options = parser.parse_args()
    serve_in_each(options, lambda: run(serve(options), options.loop))


if __name__ == "__main__":
    main()

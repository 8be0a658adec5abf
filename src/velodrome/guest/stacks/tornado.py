"""Tornado: framework and server in one.

python -m velodrome.guest.stacks.tornado --app MODULE:ATTRIBUTE --port PORT [--workers N] [--loop uvloop]
"""

from __future__ import annotations

import asyncio
import signal
import socket
from typing import Any

from velodrome.guest.interfaces.tornado import TORNADO
from velodrome.guest.stack import Launch, Process, Server, Stack, Variant, Written
from velodrome.guest.workers import (
    LOOPS,
    UVLOOP,
    UVLOOP_WHERE_IT_RUNS,
    arguments,
    listen,
    load,
    run,
    with_workers,
)

PROGRAM = "velodrome.guest.stacks.tornado"
SERVER = Server(
    PROGRAM,
    supervises=False,  # the program that is pasted only forks
    keeps_idle_s=lambda knobs: 3600.0,  # HTTPServer's idle_connection_timeout
    parts={
        "driver": ("tornado/httpclient", "tornado/simple_httpclient", "tornado/curl_httpclient"),
        "HTTP": (
            "tornado/http1connection",
            "tornado/httputil",
            "tornado/httpserver",
            "tornado/iostream",
        ),
        "event loop": ("tornado/ioloop", "tornado/platform", "tornado/gen", "tornado/concurrent"),
        "framework": ("tornado",),
    },
    never_blocks=("tornado/",),
)


def command(launch: Launch) -> Process:
    """Return the command line: this file is the program, as an app of Tornado's has to bring its own."""
    return Process(
        (
            "-m",
            PROGRAM,
            "--app=%s" % launch.app,
            "--host=%s" % launch.host,
            "--port=%d" % launch.port,
            "--workers=%s" % launch.text("workers"),
            "--backlog=%s" % launch.text("backlog"),
            "--loop=%s" % launch.text("loop"),
        )
    )


def script(launch: Launch, app: Written) -> str:
    """Return a program that serves an app so."""
    workers = launch.number("workers")
    lines = [
        "import asyncio",
        "",
        "from tornado.httpserver import HTTPServer",
        "from tornado.netutil import bind_sockets",
        *(["from tornado.process import fork_processes"] if workers > 1 else []),
        *(["import uvloop"] if launch.text("loop") == "uvloop" else []),
        "",
        'sockets = bind_sockets(%d, "%s", backlog=%s)' % (launch.port, launch.host, launch.text("backlog")),
        *(["fork_processes(%d)" % workers] if workers > 1 else []),
        app.imports,
        "",
        "",
        "async def main():",
        "    server = HTTPServer(%s)" % app.expression,
        "    server.add_sockets(sockets)",
        "    await asyncio.Event().wait()",
        "",
        "",
        "%s.run(main())" % launch.text("loop"),
    ]
    return "\n".join(lines)


stack = Stack(
    name="tornado",
    title="Tornado",
    about="Framework and server in Python on the standard event loop; while a handler awaits the others run.",
    interface="tornado",
    concurrency="tasks",
    command=command,
    requires=(TORNADO, UVLOOP_WHERE_IT_RUNS),
    knobs={"workers": 1, "loop": "asyncio", "backlog": 2048},
    choices={"loop": LOOPS},
    python=(3, 11),
    script=script,
    variants=(
        Variant(
            "tornado-uvloop",
            "Tornado · uvloop",
            "Framework and server in Python on an event loop in C; while a handler awaits the others run.",
            {"loop": "uvloop"},
            (UVLOOP,),
        ),
    ),
    server=SERVER,
    usual=True,
)


async def serve(app: Any, listener: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT, then end the connections."""
    from tornado.httpserver import HTTPServer

    server = HTTPServer(app)
    server.add_sockets([listener])
    stopped = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stopped.set)
    await stopped.wait()
    server.stop()
    await server.close_all_connections()


def main() -> None:
    """Run the program."""
    parser = arguments(PROGRAM)
    parser.add_argument("--loop", choices=LOOPS, default="asyncio")
    options = parser.parse_args()
    listener = listen(options.host, options.port, options.backlog)
    # The app is loaded in the worker: it may hold an event loop, which must not be shared by a fork.
    with_workers(options.workers, lambda: run(_work(options.app, listener), options.loop))


async def _work(app: str, listener: socket.socket) -> None:
    await serve(load(app), listener)


if __name__ == "__main__":
    main()

"""Tornado: framework and server in one, on the standard event loop.

python -m velodrome.guest.stacks.tornado --app MODULE:ATTRIBUTE --port PORT [--workers N] [--loop uvloop]
"""

from __future__ import annotations

import asyncio
import signal
import socket
from typing import Any, Callable

from velodrome.guest.interfaces.tornado import TORNADO
from velodrome.guest.stack import Launch, Process, Server, Stack, Written
from velodrome.guest.workers import arguments, listen, load, run, with_workers

PROGRAM = "velodrome.guest.stacks.tornado"
SERVER = Server(
    PROGRAM,
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
    """Return the command line: this file is the program, as an app of Tornado's has to bring one."""
    return serve_on("asyncio", launch)


def serve_on(loop: str, launch: Launch) -> Process:
    """Return the command line on a given event loop."""
    return Process(
        (
            "-m",
            PROGRAM,
            "--app=%s" % launch.app,
            "--host=%s" % launch.host,
            "--port=%d" % launch.port,
            "--workers=%s" % launch.text("workers"),
            "--backlog=%s" % launch.text("backlog"),
            "--loop=%s" % loop,
        )
    )


def script_on(loop: str) -> Callable[[Launch, Written], str]:
    """Return what writes the program that serves an app so on a given event loop."""

    def script(launch: Launch, app: Written) -> str:
        workers = launch.number("workers")
        lines = [
            "import asyncio",
            "",
            "from tornado.httpserver import HTTPServer",
            "from tornado.netutil import bind_sockets",
            *(["from tornado.process import fork_processes"] if workers > 1 else []),
            *(["import uvloop"] if loop == "uvloop" else []),
            "",
            'sockets = bind_sockets(%d, "%s", backlog=%s)'
            % (launch.port, launch.host, launch.text("backlog")),
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
            "%s.run(main())" % loop,
        ]
        return "\n".join(lines)

    return script


stack = Stack(
    name="tornado",
    title="Tornado",
    about="Framework and server in Python on the standard event loop; while a handler awaits the others run.",
    interface="tornado",
    concurrency="tasks",
    command=command,
    requires=(TORNADO,),
    knobs={"workers": 1, "backlog": 2048},
    python=(3, 11),
    script=script_on("asyncio"),
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
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio")
    options = parser.parse_args()
    listener = listen(options.host, options.port, options.backlog)
    # The app is loaded in the worker: it may hold an event loop, which must not be shared by a fork.
    with_workers(options.workers, lambda: run(_work(options.app, listener), options.loop))


async def _work(app: str, listener: socket.socket) -> None:
    await serve(load(app), listener)


if __name__ == "__main__":
    main()

"""aiohttp: framework and server in one.

python -m velodrome.guest.stacks.aiohttp --app MODULE:ATTRIBUTE --port PORT [--workers N] [--loop uvloop]
"""

from __future__ import annotations

import asyncio
import socket
from inspect import signature
from typing import Any, Dict

from velodrome.guest.stack import Launch, Process, Server, Stack, Variant, Written
from velodrome.guest.workers import (
    LOOPS,
    UVLOOP,
    UVLOOP_WHERE_IT_RUNS,
    arguments,
    listen,
    load,
    new_loop,
    with_workers,
)

PROGRAM = "velodrome.guest.stacks.aiohttp"
SERVER = Server(
    PROGRAM,
    supervises=False,  # the program that is pasted only forks
    keeps_idle_s=lambda knobs: 75.0,
    parts={
        "driver": ("aiohttp/client", "aiohttp/connector"),
        "HTTP": (
            "aiohttp/http",
            "aiohttp/web_protocol",
            "aiohttp/streams",
            "aiohttp/base_protocol",
            "aiohttp/helpers",
        ),
        "server": ("aiohttp/web_runner",),
        "framework": ("aiohttp",),
    },
)


def command(launch: Launch) -> Process:
    """Return the command line: this file is the program, as an app of aiohttp's has to bring its own."""
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
    on = ", loop=uvloop.new_event_loop()" if launch.text("loop") == "uvloop" else ""
    address = (launch.host, launch.port, launch.text("backlog"))
    more = launch.number("workers") - 1
    own = [*(["import uvloop"] if on else []), "from aiohttp import web"]
    serve = "web.run_app(%s, %s, access_log=None%s)"
    if not more:
        where = 'host="%s", port=%d, backlog=%s' % address
        return "\n".join([*own, app.imports, "", serve % (app.expression, where, on)])
    lines = ["import os", "import socket", "", *own, ""]
    lines += ['listener = socket.create_server(("%s", %d), backlog=%s)' % address]
    lines += ["for _ in range(%d):" % more, "    if not os.fork():", "        break"]
    return "\n".join([*lines, app.imports, "", serve % (app.expression, "sock=listener", on)])


stack = Stack(
    name="aiohttp",
    title="aiohttp",
    about="Framework and server on the standard event loop; while a handler awaits the others run.",
    interface="aiohttp",
    concurrency="tasks",
    command=command,
    requires=("aiohttp==3.14.5", UVLOOP_WHERE_IT_RUNS),
    knobs={"workers": 1, "loop": "asyncio", "backlog": 2048},
    choices={"loop": LOOPS},
    python=(3, 10),
    script=script,
    variants=(
        Variant(
            "aiohttp-uvloop",
            "aiohttp · uvloop",
            "Framework and server on an event loop in C; while a handler awaits the others run.",
            {"loop": "uvloop"},
            (UVLOOP,),
        ),
    ),
    server=SERVER,
    usual=True,
)


def serve(app: str, listener: socket.socket, backlog: int, loop: str) -> None:
    """Serve until SIGTERM or SIGINT, as aiohttp's own `run_app` does."""
    from aiohttp import web

    chosen = new_loop(loop)
    more: Dict[str, Any] = {}
    if "loop" in signature(web.run_app).parameters:
        more["loop"] = chosen
    else:  # before 3.8 it takes the loop that is set
        asyncio.set_event_loop(chosen)
    web.run_app(
        load(app),
        sock=listener,
        backlog=backlog,
        access_log=None,
        print=None,
        shutdown_timeout=5,
        **more,
    )


def main() -> None:
    """Run the program."""
    parser = arguments(PROGRAM)
    parser.add_argument("--loop", choices=LOOPS, default="asyncio")
    options = parser.parse_args()
    listener = listen(options.host, options.port, options.backlog)
    with_workers(options.workers, lambda: serve(options.app, listener, options.backlog, options.loop))


if __name__ == "__main__":
    main()

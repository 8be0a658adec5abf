"""Sanic: framework and server in one, on uvloop with a parser in C."""

from velodrome.guest.interfaces.sanic import SANIC
from velodrome.guest.stack import Launch, Process, Server, Stack

SERVER = Server(
    "sanic",
    keeps_idle_s=lambda knobs: 120.0,  # KEEP_ALIVE_TIMEOUT
    parts={
        "HTTP": ("sanic/http", "sanic/headers", "sanic/compat"),
        "server": ("sanic/server", "sanic/worker"),
        "framework": ("sanic", "sanic_routing"),
    },
    never_blocks=("sanic/",),
)


def command(launch: Launch) -> Process:
    """Return the command line; a single worker needs no manager beside it."""
    workers = launch.number("workers")
    return Process(
        (
            "-m",
            "sanic",
            "--host=%s" % launch.host,
            "--port=%d" % launch.port,
            "--single-process" if workers == 1 else "--workers=%d" % workers,
            "--no-access-logs",
            "--no-motd",
            launch.app,
        )
    )


stack = Stack(
    name="sanic",
    title="Sanic",
    about="Framework and server on an event loop in C with a parser in C, a listen queue of 100; while a handler "
    "awaits the others run.",
    interface="sanic",
    concurrency="tasks",
    command=command,
    requires=(SANIC, "uvloop==0.23.0", "httptools==0.9.0"),
    knobs={"workers": 1},
    python=(3, 10),
    server=SERVER,
)

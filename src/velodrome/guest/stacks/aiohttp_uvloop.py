"""aiohttp on uvloop."""

from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks.aiohttp import script_on, serve_on


def command(launch: Launch) -> Process:
    """Return the command line."""
    return serve_on("uvloop", launch)


stack = Stack(
    name="aiohttp-uvloop",
    title="aiohttp · uvloop",
    about="Framework and server on an event loop in C; while a handler awaits the others run.",
    interface="aiohttp",
    concurrency="tasks",
    command=command,
    requires=("aiohttp==3.14.5", "uvloop==0.23.0"),
    knobs={"workers": 1, "backlog": 2048},
    python=(3, 10),
    script=script_on("uvloop"),
)

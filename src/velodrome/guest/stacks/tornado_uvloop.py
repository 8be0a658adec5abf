"""Tornado on uvloop."""

from velodrome.guest.interfaces.tornado import TORNADO
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks.tornado import script_on, serve_on


def command(launch: Launch) -> Process:
    """Return the command line."""
    return serve_on("uvloop", launch)


stack = Stack(
    name="tornado-uvloop",
    title="Tornado · uvloop",
    about="Framework and server in Python on an event loop in C; while a handler awaits the others run.",
    interface="tornado",
    concurrency="tasks",
    command=command,
    requires=(TORNADO, "uvloop==0.23.0"),
    knobs={"workers": 1, "backlog": 2048},
    python=(3, 11),
    script=script_on("uvloop"),
)

"""Tornado with handlers made of generators, on uvloop."""

from velodrome.guest.interfaces.tornado import TORNADO
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks.tornado import serve_on


def command(launch: Launch) -> Process:
    """Return the command line."""
    return serve_on("uvloop", launch)


stack = Stack(
    name="tornado-gen-uvloop",
    title="Tornado · gen.coroutine · uvloop",
    about="As tornado-gen, on an event loop in C.",
    interface="tornado_gen",
    concurrency="tasks",
    command=command,
    requires=(TORNADO, "uvloop==0.23.0"),
    knobs={"workers": 1, "backlog": 2048},
    python=(3, 11),
)

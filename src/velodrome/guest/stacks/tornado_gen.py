"""Tornado with handlers made of generators, as before `async def`."""

from velodrome.guest.interfaces.tornado import TORNADO
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks.tornado import serve_on


def command(launch: Launch) -> Process:
    """Return the command line."""
    return serve_on("asyncio", launch)


stack = Stack(
    name="tornado-gen",
    title="Tornado · gen.coroutine",
    about="As tornado, with handlers of the old school: generators that yield futures to a runner.",
    interface="tornado_gen",
    concurrency="tasks",
    command=command,
    requires=(TORNADO,),
    knobs={"workers": 1, "backlog": 2048},
    python=(3, 11),
)

"""Tornado with handlers made of generators, as before `async def`."""

from velodrome.guest.interfaces.tornado import TORNADO
from velodrome.guest.stack import Stack, Variant
from velodrome.guest.stacks import tornado
from velodrome.guest.workers import LOOPS, UVLOOP, UVLOOP_WHERE_IT_RUNS

stack = Stack(
    name="tornado-gen",
    title="Tornado · gen.coroutine",
    about="As tornado, with handlers of the old school: generators that yield futures to a runner.",
    interface="tornado_gen",
    concurrency="tasks",
    command=tornado.command,
    requires=(TORNADO, UVLOOP_WHERE_IT_RUNS),
    knobs={"workers": 1, "loop": "asyncio", "backlog": 2048},
    choices={"loop": LOOPS},
    python=(3, 11),
    server=tornado.SERVER,
    variants=(
        Variant(
            "tornado-gen-uvloop",
            "Tornado · gen.coroutine · uvloop",
            "As tornado-gen, on an event loop in C.",
            {"loop": "uvloop"},
            (UVLOOP,),
        ),
    ),
)

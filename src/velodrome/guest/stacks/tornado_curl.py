"""Tornado whose calls to a third party go through libcurl."""

from velodrome.guest.interfaces.tornado import TORNADO
from velodrome.guest.stack import Stack
from velodrome.guest.stacks import tornado
from velodrome.guest.workers import LOOPS, UVLOOP_WHERE_IT_RUNS

stack = Stack(
    name="tornado-curl",
    title="Tornado · curl",
    about="As tornado, with a client over libcurl for the third party instead of the default client in Python.",
    interface="tornado_curl",
    concurrency="tasks",
    command=tornado.command,
    requires=(TORNADO, UVLOOP_WHERE_IT_RUNS),
    knobs={"workers": 1, "loop": "asyncio", "backlog": 2048},
    choices={"loop": LOOPS},
    python=(3, 11),
    server=tornado.SERVER,
)

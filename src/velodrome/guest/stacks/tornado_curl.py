"""Tornado whose calls to a third party go through libcurl."""

from velodrome.guest.interfaces.tornado import TORNADO
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks.tornado import serve_on


def command(launch: Launch) -> Process:
    """Return the command line."""
    return serve_on("asyncio", launch)


stack = Stack(
    name="tornado-curl",
    title="Tornado · curl",
    about="As tornado, with a client over libcurl for the third party instead of the default one in Python.",
    interface="tornado_curl",
    concurrency="tasks",
    command=command,
    requires=(TORNADO,),
    knobs={"workers": 1, "backlog": 2048},
    python=(3, 11),
)

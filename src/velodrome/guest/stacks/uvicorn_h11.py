"""uvicorn as plain `pip install uvicorn` runs it: asyncio and h11, all Python."""

from velodrome.guest.interfaces.websockets_asyncio import WEBSOCKETS
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks import _uvicorn


def command(launch: Launch) -> Process:
    """Return the command line."""
    return _uvicorn.serve(launch, "asyncio", "h11")


stack = Stack(
    name="uvicorn-h11",
    title="uvicorn · asyncio, h11",
    about="The standard event loop with a parser in Python; while a request awaits the other tasks run.",
    interface="asgi",
    concurrency="tasks",
    command=command,
    requires=("uvicorn==0.54.0", "h11==0.16.0", WEBSOCKETS),
    knobs={"workers": 1, "backlog": 2048},
    python=_uvicorn.OLDEST_PYTHON,
    needs=_uvicorn.NEEDS,
    server=_uvicorn.SERVER,
)

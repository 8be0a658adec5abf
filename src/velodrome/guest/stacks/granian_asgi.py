"""granian, a server in Rust, calling Python by ASGI."""

from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks import _granian


def command(launch: Launch) -> Process:
    """Return the command line."""
    return _granian.serve(
        launch,
        "asgi",
        "--loop=%s" % launch.text("loop"),
        _granian.runtime_threads(launch),
    )


stack = Stack(
    name="granian-asgi",
    title="granian · asgi",
    about="HTTP in Rust threads, handlers on an event loop; while one awaits the others run.",
    interface="asgi",
    concurrency="tasks",
    command=command,
    requires=_granian.REQUIRES,
    knobs={
        "workers": 1,
        "threads": 1,
        "loop": "uvloop",
        "backlog": 2048,
        "connections": _granian.CONNECTIONS,
    },
    choices={"loop": ("uvloop", "asyncio")},
    python=_granian.OLDEST_PYTHON,
    needs=_granian.NEEDS,
    server=_granian.SERVER,
)

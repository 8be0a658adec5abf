"""gunicorn's own ASGI worker."""

from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks import _gunicorn


def command(launch: Launch) -> Process:
    """Return the command line; the parser is that which comes with gunicorn, in Python."""
    # Before 25.2 it has no other parser.
    parser = () if launch.older("gunicorn", 25, 2) else ("--http-parser=python",)
    return _gunicorn.serve(launch, "asgi", "--asgi-loop=%s" % launch.text("loop"), *parser)


stack = Stack(
    name="gunicorn-asgi",
    title="gunicorn · asgi",
    about="Forked workers, each an event loop with gunicorn's own parser in Python; awaiting frees it.",
    interface="asgi",
    concurrency="tasks",
    command=command,
    requires=(*_gunicorn.REQUIRES, "uvloop==0.23.0"),
    knobs={"workers": 1, "loop": "uvloop", "backlog": 2048, "preload": 0, **_gunicorn.RECYCLED},
    choices={"loop": ("uvloop", "asyncio")},
    python=_gunicorn.OLDEST_PYTHON,
    needs={"gunicorn": (24,)},  # has no such worker before
    server=_gunicorn.SERVER,
)

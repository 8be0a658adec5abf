"""granian, a server in Rust, calling Python by WSGI from a pool of threads."""

from velodrome.guest.stack import Launch, Process, Stack, one_per_thread
from velodrome.guest.stacks import _granian


def command(launch: Launch) -> Process:
    """Return the command line; `threads` are those that call Python, started as they are needed."""
    return _granian.serve(launch, "wsgi", "--blocking-threads=%s" % launch.text("threads"))


stack = Stack(
    name="granian-wsgi",
    title="granian · wsgi",
    about="HTTP in Rust, handlers in up to `threads` threads; a handler that waits holds its thread.",
    interface="wsgi",
    concurrency="threads",
    command=command,
    requires=("granian==2.8.7",),
    # granian itself takes 512 for one worker, half its backlog. On one CPU they fight for the GIL: a request that
    # computes for 0.6 ms costs 690 to 760 µs with them and 650 with 16, with p99 410 to 930 ms and 330 (64 connections,
    # two runs each, Python 3.11). A handler that waits wants as many threads as requests wait at once.
    knobs={"workers": 1, "threads": 16, "backlog": 2048, "connections": _granian.CONNECTIONS},
    slots=one_per_thread,
    python=_granian.OLDEST_PYTHON,
    needs=_granian.NEEDS,
    server=_granian.SERVER,
)

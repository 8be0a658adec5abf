"""granian, a server in Rust, calling Python by WSGI from a pool of threads."""

from velodrome.guest.stack import Launch, Process, Stack, one_per_thread
from velodrome.guest.stacks import _granian


def command(launch: Launch) -> Process:
    """Return the command line; `threads` are those that call Python, started as they are needed."""
    return _granian.serve(launch, "wsgi", "--blocking-threads=%s" % launch.text("threads"))


stack = Stack(
    name="granian-wsgi",
    title="granian · wsgi",
    about="HTTP in Rust, handlers in up to `threads` threads; one that waits holds its thread.",
    interface="wsgi",
    concurrency="threads",
    command=command,
    requires=("granian==2.8.7",),
    # 512 is what granian itself takes for one worker: half its default backlog of 1024.
    knobs={"workers": 1, "threads": 512, "backlog": 2048, "connections": 10000},
    slots=one_per_thread,
    python=_granian.OLDEST_PYTHON,
    needs=_granian.NEEDS,
    server=_granian.SERVER,
)

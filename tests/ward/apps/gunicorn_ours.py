"""A stack of the ward: gunicorn as somebody's own configuration has it, which races do not read.

`preload` imports the app before the fork. Workers that `end` at once answer nothing any more when they are replaced.
"""

import os

from velodrome.guest.stack import Process, Stack, one_per_thread
from velodrome.guest.stacks import _gunicorn


def _command(launch):
    ending = {"in order": "gthread", "at once": "gunicorn_ours.AtOnce"}[launch.text("ends")]
    process = _gunicorn.serve(launch, ending, f"--threads={launch.text('threads')}")
    here = os.path.dirname(os.path.abspath(__file__))
    return Process((*process.argv[:-1], f"--pythonpath={here}", launch.app), laboratory=process.laboratory)


stack = Stack(
    name="gunicorn-ours",
    title="gunicorn · ours",
    about="gunicorn's threads with a configuration of somebody's own.",
    interface="wsgi",
    concurrency="threads",
    command=_command,
    requires=_gunicorn.REQUIRES,
    knobs={
        "workers": 1,
        "threads": 4,
        "backlog": 2048,
        "keepalive": 75,
        "preload": 0,
        "ends": "in order",
    },
    choices={"ends": ("in order", "at once")},
    slots=one_per_thread,
    python=_gunicorn.OLDEST_PYTHON,
    server=_gunicorn.SERVER,
)

try:
    from gunicorn.workers.gthread import ThreadWorker
except ImportError:  # where the stack is only described
    ThreadWorker = object


class AtOnce(ThreadWorker):
    """A worker that is gone as soon as it is to go."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "alive" and not value:
            os._exit(0)

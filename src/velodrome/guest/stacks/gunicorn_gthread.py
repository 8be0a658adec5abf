"""gunicorn with a pool of threads in each worker."""

from velodrome.guest.stack import Stack, one_per_thread
from velodrome.guest.stacks import _gunicorn

stack = Stack(
    name="gunicorn-gthread",
    title="gunicorn · gthread",
    about="Forked workers with a pool of threads each; a request that waits holds one thread.",
    interface="wsgi",
    concurrency="threads",
    command=_gunicorn.gthread,
    requires=_gunicorn.REQUIRES,
    knobs={
        "workers": 1,
        "threads": 4,
        "backlog": 2048,
        "connections": _gunicorn.CONNECTIONS,
        "keepalive": 75,
        "preload": 0,
        **_gunicorn.RECYCLED,
    },
    slots=one_per_thread,
    python=_gunicorn.OLDEST_PYTHON,
    server=_gunicorn.SERVER,
    usual=True,
)

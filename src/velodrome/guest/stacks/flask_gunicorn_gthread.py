"""Flask on gunicorn's threaded worker."""

from velodrome.guest.stack import Stack, one_per_thread
from velodrome.guest.stacks import _gunicorn

stack = Stack(
    name="flask-gunicorn-gthread",
    title="Flask · gunicorn gthread",
    about="Flask with a pool of threads in each worker; a view that waits holds one thread.",
    interface="flask",
    concurrency="threads",
    command=_gunicorn.gthread,
    requires=_gunicorn.REQUIRES,
    knobs={"workers": 1, "threads": 4, "backlog": 2048, "connections": _gunicorn.CONNECTIONS},
    slots=one_per_thread,
    python=(3, 10),
    server=_gunicorn.SERVER,
)

"""gunicorn with its default worker: one process, one request."""

from velodrome.guest.stack import Stack, one_per_worker
from velodrome.guest.stacks import _gunicorn

stack = Stack(
    name="gunicorn-sync",
    title="gunicorn · sync",
    about="Forked workers, one request and no keep-alive each; a request that waits holds its worker.",
    interface="wsgi",
    concurrency="processes",
    command=_gunicorn.sync,
    requires=_gunicorn.REQUIRES,
    knobs={"workers": 1, "backlog": 2048, "preload": 0, **_gunicorn.RECYCLED},
    slots=one_per_worker,
    keeps_alive=False,
    python=_gunicorn.OLDEST_PYTHON,
    server=_gunicorn.SERVER,
)

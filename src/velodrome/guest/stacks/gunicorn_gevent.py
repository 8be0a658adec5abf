"""gunicorn with greenlets: blocking code that yields when it waits, by a patched standard library."""

from velodrome.guest.stack import Stack
from velodrome.guest.stacks import _gevent, _gunicorn

stack = Stack(
    name="gunicorn-gevent",
    title="gunicorn · gevent",
    about="Forked workers, a greenlet for each connection; while one waits the others run.",
    interface="wsgi",
    concurrency="greenlets",
    command=_gevent.command,
    requires=_gevent.REQUIRES,
    knobs={
        "workers": 1,
        "backlog": 2048,
        "connections": _gevent.CONNECTIONS,
        "keepalive": 75,
        "preload": 0,
        **_gunicorn.RECYCLED,
    },
    python=_gevent.OLDEST_PYTHON,
    server=_gevent.SERVER,
)

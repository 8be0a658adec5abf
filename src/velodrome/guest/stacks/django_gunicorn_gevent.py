"""Django (WSGI) on gunicorn's gevent worker."""

from velodrome.guest.stack import Stack
from velodrome.guest.stacks import _gevent

stack = Stack(
    name="django-gunicorn-gevent",
    title="Django · gunicorn gevent",
    about="Django with a greenlet for each connection; while a view waits the others run.",
    interface="django_wsgi",
    concurrency="greenlets",
    command=_gevent.command,
    requires=_gevent.REQUIRES,
    knobs={"workers": 1, "backlog": 2048, "connections": _gevent.CONNECTIONS},
    python=(3, 10),
    server=_gevent.SERVER,
)

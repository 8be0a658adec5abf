"""Flask on gunicorn's gevent worker, as a client of gRPC: grpcio in gevent compatibility mode.

The worker patches the standard library; the handler enters the mode before it makes its channel
(`guest/grpc/gevent_mode.py`). Without it each call would stop all the others of its process.
"""

from velodrome.guest.interface import GRPCIO
from velodrome.guest.stack import Stack
from velodrome.guest.stacks import _gevent

stack = Stack(
    name="flask-gunicorn-gevent-grpc",
    title="Flask · gunicorn gevent · gRPC client",
    about="Flask, a greenlet for each connection, with grpcio in gevent compatibility mode for calls over gRPC.",
    interface="flask",
    concurrency="greenlets",
    command=_gevent.command,
    requires=(*_gevent.REQUIRES, *GRPCIO),
    knobs={"workers": 1, "backlog": 2048, "connections": _gevent.CONNECTIONS},
    python=_gevent.OLDEST_PYTHON,
    server=_gevent.SERVER,
)

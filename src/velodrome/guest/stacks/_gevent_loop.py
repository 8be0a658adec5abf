"""What the servers over gevent's two event loops share: a watcher for each connection, and its callback.

`gevent.libev.corecext.loop` and `gevent.libuv.loop.loop` are used as the event loops they are; no greenlet
runs, and nothing of the standard library is patched.
"""

from __future__ import annotations

import os
import signal
from typing import Any, Dict

from velodrome.guest.codegen.wire import LINGER_S
from velodrome.guest.raw.connection import GONE, LINGER, READ, WRITE, Connection, Reception

READABLE, WRITABLE = 1, 2
"""What watchers of both loops take for events."""

EVENTS = {READ: READABLE, LINGER: READABLE, WRITE: WRITABLE}


def serve(loop: Any, reception: Reception) -> None:
    """Serve till SIGTERM."""
    watchers: Dict[int, Any] = {}

    def watch(connection: Connection, event: int) -> None:
        watcher = watchers[connection.fd] = loop.io(connection.fd, event)
        watcher.start(ready, connection)

    def unwatch(connection: Connection) -> None:
        watcher = watchers.pop(connection.fd)
        watcher.stop()
        watcher.close()

    def follow(connection: Connection, want: int) -> None:
        unwatch(connection)
        if want == GONE:
            reception.dismiss(connection)
            return
        watch(connection, EVENTS[want])
        if want == LINGER:
            reception.linger(connection)
            loop.timer(LINGER_S).start(sweep)

    def sweep() -> None:
        for connection in reception.overdue():
            follow(connection, GONE)

    def ready(connection: Connection) -> None:
        if connection.unsent:
            follow(connection, connection.writable())
            return
        want = connection.readable()
        if want != READ:
            follow(connection, want)

    def arrive() -> None:
        accepted = reception.accept()
        if accepted is not None:
            watch(accepted, READABLE)

    # The loop's own signals: a loop at rest in C code would not come to run a handler of Python's.
    ending = loop.signal(signal.SIGTERM)
    ending.start(os._exit, 0)
    arriving = loop.io(reception.fd, READABLE)
    arriving.start(arrive)
    loop.run()

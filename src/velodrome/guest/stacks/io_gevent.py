"""gevent's `StreamServer`: a greenlet for each connection; sockets and sleeps switch where they would wait."""

from __future__ import annotations

from typing import Any

from velodrome.guest.raw.process import arguments, command, open_listener
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.workers import load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.io_gevent", launch)


stack = Stack(
    name="io-gevent",
    title="I/O model · gevent",
    about="one thread, a greenlet for each connection, which it keeps (keep-alive); code is written as if it "
    "blocked, and gevent switches wherever it would; SQLite blocks all",
    interface="socket_blocking",
    concurrency="greenlets",
    command=_command,
    requires=("gevent==26.9.0",),
    knobs={"backlog": 1000},
    python=(3, 10),  # the oldest that the interface's client runs on
)


def main() -> None:
    """Serve till SIGTERM."""
    from gevent import monkey

    monkey.patch_all()  # before the handler and its client are loaded
    import signal

    import gevent
    from gevent.server import StreamServer

    options = arguments("backlog")
    converse = load(options.app)

    def attend(connection: Any, address: Any) -> None:
        converse(connection, True)

    server = StreamServer(open_listener(options), attend)
    gevent.signal_handler(signal.SIGTERM, server.stop, 0)  # those still connected are not waited for
    server.serve_forever(0)


if __name__ == "__main__":
    main()

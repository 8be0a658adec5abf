"""libev, through gevent's own binding to it and without gevent's greenlets: callbacks on a loop written in C."""

from __future__ import annotations

from velodrome.guest.raw.connection import open_reception
from velodrome.guest.raw.process import arguments, command
from velodrome.guest.stack import Launch, Process, Stack, exactly_one
from velodrome.guest.stacks._gevent_loop import serve


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.io_libev", launch)


stack = Stack(
    name="io-libev",
    title="I/O model · libev",
    about="one thread; libev waits (with epoll, on Linux) and calls back for each ready connection; while a "
    "request waits, all wait",
    interface="socket_events",
    concurrency="events",
    command=_command,
    requires=("gevent==26.9.0",),
    knobs={"backlog": 1000},
    slots=exactly_one,
    python=(3, 10),  # the oldest that the interface's client runs on
)


def main() -> None:
    """Serve till SIGTERM."""
    from gevent.libev.corecext import loop

    serve(loop(default=True), open_reception(arguments("backlog")))


if __name__ == "__main__":
    main()

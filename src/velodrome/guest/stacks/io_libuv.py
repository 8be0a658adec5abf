"""libuv, through gevent's own binding to it and without gevent's greenlets: callbacks on a loop written in C."""

from __future__ import annotations

from velodrome.guest.raw.connection import open_reception
from velodrome.guest.raw.process import arguments, command
from velodrome.guest.stack import Launch, Process, Stack, exactly_one
from velodrome.guest.stacks._gevent_loop import serve


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.io_libuv", launch)


stack = Stack(
    name="io-libuv",
    title="I/O model · libuv",
    about="one thread; libuv waits (with epoll, on Linux) and calls back for each ready connection; while a "
    "request waits, all wait",
    interface="socket_events",
    concurrency="events",
    command=_command,
    requires=("cffi==2.1.1", "gevent==26.9.0"),
    knobs={"backlog": 1000},
    slots=exactly_one,
    python=(3, 10),  # the oldest that the interface's client runs on
)


def main() -> None:
    """Serve till SIGTERM."""
    from gevent.libuv.loop import loop  # its binding needs cffi at run time, libev's does not

    serve(loop(default=True), open_reception(arguments("backlog")))


if __name__ == "__main__":
    main()

"""Non-blocking sockets and no more: it polls every connection in turn, for ever."""

from __future__ import annotations

from velodrome.guest.raw.connection import GONE, LINGER, Reception, open_reception
from velodrome.guest.raw.process import arguments, command
from velodrome.guest.stack import Launch, Process, Server, Stack, exactly_one

PROGRAM = "velodrome.guest.stacks.io_nonblocking"


def _command(launch: Launch) -> Process:
    return command(PROGRAM, launch)


stack = Stack(
    name="io-nonblocking",
    title="I/O model · non-blocking, polled",
    about="one thread asks every connection in turn whether something has come and never waits: it uses a "
    "whole CPU with nothing to do; while a request waits, all wait",
    interface="socket_events",
    concurrency="events",
    command=_command,
    knobs={"backlog": 1000},
    slots=exactly_one,
    python=(3, 10),  # the oldest that the interface's client runs on
    server=Server(PROGRAM, never_blocks=("velodrome/guest/stacks/io_nonblocking.py",)),
)


def serve(reception: Reception) -> None:
    """Serve for ever."""
    while True:
        while reception.accept() is not None:  # all that wait: one a round would keep them waiting for rounds
            pass
        for connection in list(reception.connections.values()):
            want = connection.writable() if connection.unsent else connection.readable()
            if want == GONE:
                reception.dismiss(connection)
            elif want == LINGER:
                reception.linger(connection)
        for connection in reception.overdue():
            reception.dismiss(connection)


if __name__ == "__main__":
    serve(open_reception(arguments("backlog")))

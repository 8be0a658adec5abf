"""epoll(7), level-triggered: the kernel keeps the list and tells only who is ready, as long as they are."""

from __future__ import annotations

import select

from velodrome.guest.raw.connection import GONE, LINGER, READ, WRITE, Connection, Reception, open_reception
from velodrome.guest.raw.process import arguments, command
from velodrome.guest.stack import Launch, Process, Stack, exactly_one


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.io_epoll_level", launch)


stack = Stack(
    name="io-epoll-level",
    title="I/O model · epoll, level-triggered",
    about="one thread waits for all connections with epoll, which tells those that are ready and does not "
    "look at the others; while a request waits, all wait",
    interface="socket_events",
    concurrency="events",
    command=_command,
    knobs={"backlog": 1000},
    slots=exactly_one,
    python=(3, 10),  # the oldest that the interface's client runs on
    systems=("linux",),
)

IN, OUT = 0x001, 0x004  # EPOLLIN, EPOLLOUT: the module has them on Linux only
EVENTS = {READ: IN, LINGER: IN, WRITE: OUT}


def serve(reception: Reception) -> None:
    """Serve for ever."""
    connections = reception.connections
    waiting = select.epoll()
    waiting.register(reception.fd, IN)

    def follow(connection: Connection, want: int) -> None:
        if want == GONE:
            reception.dismiss(connection)  # closing takes it off the list
            return
        waiting.modify(connection.fd, EVENTS[want])
        if want == LINGER:
            reception.linger(connection)

    while True:
        for fd, event in waiting.poll(reception.patience):
            if fd == reception.fd:
                accepted = reception.accept()
                if accepted is not None:
                    waiting.register(accepted.fd, IN)
                continue
            connection = connections[fd]
            if event & OUT:
                follow(connection, connection.writable())
                continue
            want = connection.readable()  # also of an error or the end: reading tells which
            if want != READ:
                follow(connection, want)
        for connection in reception.overdue():
            follow(connection, GONE)


if __name__ == "__main__":
    serve(open_reception(arguments("backlog")))

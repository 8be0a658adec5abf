"""poll(2): as select, without its limit; the list is kept between calls, and still looked through each time."""

from __future__ import annotations

import select

from velodrome.guest.raw.connection import GONE, LINGER, READ, WRITE, Connection, Reception, open_reception
from velodrome.guest.raw.process import arguments, command
from velodrome.guest.stack import Launch, Process, Stack, exactly_one


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.io_poll", launch)


stack = Stack(
    name="io-poll",
    title="I/O model · poll",
    about="one thread waits for all connections with poll, which looks at every one of them each time; while "
    "a request waits, all wait",
    interface="socket_events",
    concurrency="events",
    command=_command,
    knobs={"backlog": 1000},
    slots=exactly_one,
    python=(3, 10),  # the oldest that the interface's client runs on
)

EVENTS = {READ: select.POLLIN, LINGER: select.POLLIN, WRITE: select.POLLOUT}


def serve(reception: Reception) -> None:
    """Serve for ever."""
    connections = reception.connections
    waiting = select.poll()
    waiting.register(reception.fd, select.POLLIN)

    def follow(connection: Connection, want: int) -> None:
        if want == GONE:
            waiting.unregister(connection.fd)
            reception.dismiss(connection)
            return
        waiting.modify(connection.fd, EVENTS[want])
        if want == LINGER:
            reception.linger(connection)

    while True:
        patience = reception.patience
        for fd, event in waiting.poll(None if patience is None else patience * 1000):
            if fd == reception.fd:
                accepted = reception.accept()
                if accepted is not None:
                    waiting.register(accepted.fd, select.POLLIN)
                continue
            connection = connections[fd]
            if event & select.POLLOUT:
                follow(connection, connection.writable())
                continue
            want = connection.readable()  # also of an error or the end: reading tells which
            if want != READ:
                follow(connection, want)
        for connection in reception.overdue():
            follow(connection, GONE)


if __name__ == "__main__":
    serve(open_reception(arguments("backlog")))

"""select(2): the kernel is handed the list of all connections each time, and looks at every one."""

from __future__ import annotations

import select
from typing import Dict

from velodrome.guest.raw.connection import GONE, LINGER, READ, WRITE, Connection, Reception, open_reception
from velodrome.guest.raw.process import arguments, command
from velodrome.guest.stack import Launch, Process, Stack, exactly_one


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.io_select", launch)


stack = Stack(
    name="io-select",
    title="I/O model · select",
    about="one thread waits for all connections with select, which looks at every one of them each time and "
    "dies of the first descriptor over 1023; while a request waits, all wait",
    interface="socket_events",
    concurrency="events",
    command=_command,
    knobs={"backlog": 1000},
    slots=exactly_one,
    python=(3, 10),  # the oldest that the interface's client runs on
)


def serve(reception: Reception) -> None:
    """Serve for ever. Raises ValueError once a descriptor is too high for select: that is its end."""
    connections = reception.connections
    reading: Dict[int, None] = {reception.fd: None}
    writing: Dict[int, None] = {}

    def follow(connection: Connection, want: int) -> None:
        reading.pop(connection.fd, None)
        writing.pop(connection.fd, None)
        if want == GONE:
            reception.dismiss(connection)
            return
        (writing if want == WRITE else reading)[connection.fd] = None
        if want == LINGER:
            reception.linger(connection)

    while True:
        readable, writable, _ = select.select(reading, writing, (), reception.patience)
        for fd in readable:
            if fd == reception.fd:
                accepted = reception.accept()
                if accepted is not None:
                    follow(accepted, READ)
                continue
            connection = connections[fd]
            want = connection.readable()
            if want != READ:
                follow(connection, want)
        for fd in writable:
            follow(connections[fd], connections[fd].writable())
        for connection in reception.overdue():
            follow(connection, GONE)


if __name__ == "__main__":
    serve(open_reception(arguments("backlog")))

"""epoll(7), edge-triggered: the kernel reports once that something has come; what was not read is not reported
again."""

from __future__ import annotations

import select

from velodrome.guest.raw.connection import GONE, LINGER, READ, Connection, Reception, open_reception
from velodrome.guest.raw.process import arguments, command
from velodrome.guest.stack import Launch, Process, Stack, exactly_one


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.io_epoll_edge", launch)


stack = Stack(
    name="io-epoll-edge",
    title="I/O model · epoll, edge-triggered",
    about="one thread waits for all connections with epoll, which tells each change once, so that a "
    "connection is read to its end then; registered once, never changed; while a request waits, all wait",
    interface="socket_events",
    concurrency="events",
    command=_command,
    knobs={"backlog": 1000},
    slots=exactly_one,
    python=(3, 10),  # the oldest that the interface's client runs on
    systems=("linux",),
)

# The module has these on Linux only.
IN, OUT, RDHUP, EDGE = 0x001, 0x004, 0x2000, 1 << 31


def serve(reception: Reception) -> None:
    """Serve for ever."""
    connections = reception.connections
    waiting = select.epoll()
    waiting.register(reception.fd, IN | EDGE)

    def follow(connection: Connection, want: int) -> None:
        if want == LINGER:
            reception.linger(connection)
            want = connection.read_on(True)
        if want == GONE:
            reception.dismiss(connection)

    while True:
        for fd, event in waiting.poll(reception.patience):
            if fd == reception.fd:
                for accepted in iter(reception.accept, None):
                    # What has come before this counts as a change as well, so nothing is missed.
                    waiting.register(accepted.fd, IN | OUT | RDHUP | EDGE)
                continue
            connection = connections[fd]
            # The end makes no second edge if it came with the last data, nor does what came while we wrote.
            to_the_end = event & RDHUP or connection.unsent
            want = connection.writable() if connection.unsent else READ
            if want == READ:
                want = connection.read_on(bool(to_the_end))
            if want != READ:
                follow(connection, want)
        for connection in reception.overdue():
            follow(connection, GONE)


if __name__ == "__main__":
    serve(open_reception(arguments("backlog")))

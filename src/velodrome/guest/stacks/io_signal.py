"""Signal-driven: the kernel sends a realtime signal for each change of a connection, read through signalfd."""

from __future__ import annotations

import signal

from velodrome.guest.raw.connection import Connection
from velodrome.guest.raw.dialogue import GONE, LINGER, READ
from velodrome.guest.raw.process import arguments, command
from velodrome.guest.raw.reception import Reception, open_reception
from velodrome.guest.stack import Launch, Process, Stack, exactly_one
from velodrome.guest.weave.wire import LINGER_S


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.io_signal", launch)


stack = Stack(
    name="io-signal",
    title="I/O model · signals",
    about="one thread reads realtime signals (F_SETSIG, signalfd), one for each change of a connection; when "
    "their queue is full it asks all connections once; while a request waits, all wait",
    interface="socket_events",
    concurrency="events",
    command=_command,
    knobs={"backlog": 1000},
    slots=exactly_one,
    python=(3, 10),  # the oldest that the interface's client runs on
    systems=("linux",),
)


def serve(reception: Reception) -> None:
    """Serve for ever."""
    from velodrome.guest.raw import signalfd  # its constants are there on Linux only

    signals = signalfd.Signals()
    signalfd.watch(reception.listener)
    connections = reception.connections

    def follow(connection: Connection, want: int) -> None:
        if want == LINGER:
            reception.linger(connection)
            signal.setitimer(signal.ITIMER_REAL, LINGER_S)  # told by a signal too
            want = connection.read_on(True)
        if want == GONE:
            reception.dismiss(connection)

    def look(connection: Connection, to_the_end: bool) -> None:
        to_the_end = to_the_end or bool(connection.unsent)  # what came while we wrote was signalled then
        want = connection.writable() if connection.unsent else READ
        if want == READ:
            want = connection.read_on(to_the_end)
        if want != READ:
            follow(connection, want)

    def take_in() -> None:
        for accepted in iter(reception.accept, None):
            signalfd.watch(accepted.socket)
            look(accepted, True)  # what came before was not signalled

    take_in()
    while True:
        for number, fd in signals.wait():
            if number == signalfd.READY:
                if fd == reception.fd:
                    take_in()
                elif fd in connections:  # else closed since it was signalled
                    look(connections[fd], False)
            elif number == signalfd.LOST:
                take_in()
                for connection in list(connections.values()):
                    look(connection, True)
            else:
                overdue = reception.overdue()
                for connection in overdue:
                    reception.dismiss(connection)
                if reception.patience is not None:
                    signal.setitimer(signal.ITIMER_REAL, max(0.001, reception.patience))


if __name__ == "__main__":
    serve(open_reception(arguments("backlog")))

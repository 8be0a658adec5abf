"""Signal-driven: the kernel sends a realtime signal for each change of a connection, read through signalfd.

signalfd(2) and F_SETSIG of fcntl(2), Linux only. A handler of Python's would be called between two bytecodes of
anything, itself included: under load it re-enters itself till the stack is full. So the signals are blocked and read
like data, many at once.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import threading
from typing import Iterator, Tuple

from velodrome.guest.codegen.wire import LINGER_S
from velodrome.guest.raw.connection import GONE, LINGER, READ, Connection, Reception, open_reception
from velodrome.guest.raw.process import arguments, command
from velodrome.guest.stack import Launch, Process, Stack, exactly_one

READY = signal.SIGRTMIN + 1 if hasattr(signal, "SIGRTMIN") else 0
"""A realtime signal: each is queued, and tells of which descriptor it is."""

LOST = signal.SIGIO
"""Sent instead when the queue of realtime signals is full: some have been lost, all must be polled."""

_F_SETOWN_EX, _F_OWNER_TID = 15, 0
_SFD_CLOEXEC = 0o2000000
_INFO = struct.Struct("=IiiIIi104x")
"""signalfd_siginfo, 128 bytes: signal, errno, code, pid, uid, descriptor."""
_AT_ONCE = 256
"""Signals read at once."""


def watch(connected: socket.socket) -> None:
    """Have READY sent to this thread whenever the socket becomes ready for anything, from now on."""
    fd = connected.fileno()
    fcntl.fcntl(fd, _F_SETOWN_EX, struct.pack("=ii", _F_OWNER_TID, threading.get_native_id()))
    fcntl.fcntl(fd, fcntl.F_SETSIG, READY)
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_ASYNC | os.O_NONBLOCK)


class Signals:
    """READY, LOST and SIGALRM of this thread, as a stream. Raises OSError where the system gives none."""

    def __init__(self) -> None:
        wanted = {READY, LOST, signal.SIGALRM}
        signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
        mask = (ctypes.c_uint8 * 128)()  # sigset_t: bit n - 1 is signal n
        for number in wanted:
            mask[(number - 1) // 8] |= 1 << (number - 1) % 8
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.signalfd(-1, ctypes.byref(mask), _SFD_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "signalfd")

    def wait(self) -> Iterator[Tuple[int, int]]:
        """Wait for signals; yield the number and the descriptor of each."""
        for number, _, _, _, _, fd in _INFO.iter_unpack(os.read(self.fd, _INFO.size * _AT_ONCE)):
            yield number, fd


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

    signals = Signals()
    watch(reception.listener)
    connections = reception.connections

    def follow(connection: Connection, want: int) -> None:
        if want == LINGER:
            reception.linger(connection)
            signal.setitimer(signal.ITIMER_REAL, LINGER_S)  # a signal reports this too
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
            watch(accepted.socket)
            look(accepted, True)  # what came before was not signalled

    take_in()
    while True:
        for number, fd in signals.wait():
            if number == READY:
                if fd == reception.fd:
                    take_in()
                elif fd in connections:  # else closed since it was signalled
                    look(connections[fd], False)
            elif number == LOST:
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

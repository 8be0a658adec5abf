"""io_uring: operations are handed to the kernel in a queue, and it tells in another which of them are done.

Over the package `liburing`, Linux only. Its calls hold the GIL while they wait: one ring, one thread.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from functools import partial
from typing import Any, Deque, Iterator, Optional, Tuple

from velodrome.guest.raw.connection import GONE, LINGER, WRITE, Dialogue, Handler, Reception
from velodrome.guest.raw.process import arguments, command, end_on_sigterm, open_listener
from velodrome.guest.stack import Launch, Process, Stack, exactly_one
from velodrome.guest.workers import load

Completion = Tuple[int, int, int, bool]
"""Operation, descriptor, result (a count, a descriptor, or minus an errno), and whether more of it follow."""

ACCEPT, RECEIVE, SEND, SEND_IN_CHAIN = range(4)

_ENTRIES = 1024


class Ring:
    """One submission queue and one completion queue. Needs liburing installed; OSError where it is forbidden.

    ring.receive(fd, buffer)
    for operation, fd, result, more in ring.completed(None): …
    """

    def __init__(self) -> None:
        import liburing

        self._uring = liburing
        self._ring = liburing.Ring()
        self._one = liburing.Cqe()
        # Work is done when we wait for it, not whenever an interrupt finds us: the largest gain there is.
        flags = liburing.IORING_SETUP_SINGLE_ISSUER | liburing.IORING_SETUP_DEFER_TASKRUN
        liburing.io_uring_queue_init(_ENTRIES, self._ring, flags)
        self._kept: Deque[Completion] = deque()

    def accept(self, fd: int) -> None:
        """Accept on a listening socket for ever; completed once for each connection."""
        self._uring.io_uring_prep_multishot_accept(self._entry(ACCEPT, fd), fd)

    def receive(self, fd: int, buffer: bytearray) -> None:
        """Receive into `buffer`, which has to live till this is completed."""
        self._uring.io_uring_prep_recv(self._entry(RECEIVE, fd), fd, buffer)

    def send(self, fd: int, data: bytes) -> None:
        """Send all of `data`, which has to live till this is completed."""
        self._uring.io_uring_prep_send(self._entry(SEND, fd), fd, data, socket.MSG_WAITALL)

    def send_then_receive(self, fd: int, data: bytes, buffer: bytearray) -> None:
        """Send all of `data`, then receive; of the sending only a failure is reported, and then both fail.

        Both `data` and `buffer` have to live till the receive is completed.
        """
        uring = self._uring
        entry = self._entry(SEND_IN_CHAIN, fd)
        uring.io_uring_prep_send(entry, fd, data, socket.MSG_WAITALL)
        uring.io_uring_sqe_set_flags(entry, uring.IOSQE_IO_LINK | uring.IOSQE_CQE_SKIP_SUCCESS)
        self.receive(fd, buffer)

    def send_now(self, fd: int, data: bytes) -> None:
        """Send all of `data` and wait for it; what else is completed meanwhile is kept. Raises OSError."""
        self.send(fd, data)
        kept: Deque[Completion] = deque()
        while True:
            for completion in self._reap(None):
                if completion[:2] != (SEND, fd):
                    kept.append(completion)
                    continue
                self._kept.extend(kept)
                if completion[2] < len(data):
                    raise OSError(-min(0, completion[2]), "send")
                return

    def completed(self, patience: Optional[float]) -> Iterator[Completion]:
        """Submit what is queued, wait for at least one completion, or so many seconds, and yield all."""
        if self._kept:
            yield from self._all_kept()
            patience = 0.0
        yield from self._reap(patience)
        yield from self._all_kept()  # of those that were completed while the last were answered

    def _all_kept(self) -> Iterator[Completion]:
        while self._kept:
            yield self._kept.popleft()

    def _reap(self, patience: Optional[float]) -> Iterator[Completion]:
        uring, ring = self._uring, self._ring
        try:
            if patience is None:
                uring.io_uring_submit_and_wait(ring, 1)
            else:
                uring.io_uring_submit_and_wait_timeout(ring, self._one, 1, uring.timespec(patience))
        except OSError as error:
            if error.errno not in (errno.EINTR, errno.ETIME):
                raise
        # All are taken off before the first is answered: answering may wait on the ring itself.
        found = []
        every = uring.io_uring_cqe_iter_init(ring)
        while uring.io_uring_cqe_iter_next(every, self._one):
            entry = self._one[0]
            found.append((entry.user_data, entry.res, entry.flags))
        uring.io_uring_cq_advance(ring, len(found))
        more = uring.IORING_CQE_F_MORE
        return ((tag >> 32, tag & 0xFFFFFFFF, result, bool(flags & more)) for tag, result, flags in found)

    def _entry(self, operation: int, fd: int) -> Any:
        uring = self._uring
        entry = uring.io_uring_get_sqe(self._ring)
        if not entry:  # the queue is full
            uring.io_uring_submit(self._ring)
            entry = uring.io_uring_get_sqe(self._ring)
        uring.io_uring_sqe_set_data64(entry, operation << 32 | fd)
        return entry


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.io_uring", launch)


stack = Stack(
    name="io-uring",
    title="I/O model · io_uring",
    about="one thread hands sends and receives to the kernel and is notified when they are done, many with one "
    "system call; each answer and the next receive are one chain; while a request waits, all wait",
    interface="socket_events",
    concurrency="events",
    command=_command,
    requires=("liburing==2026.3.30",),
    knobs={"backlog": 1000},
    slots=exactly_one,
    python=(3, 10),  # the oldest that the interface's client and liburing run on
    systems=("linux",),
    cpu_features=("avx512bw",),  # liburing's wheel is killed by SIGILL on others
)

SMALL, LARGE = 4 * 1024, 256 * 1024
"""Each connection holds a buffer, also when idle; in the midst of an upload it may be larger."""


class Pending(Dialogue):
    """A connection of which at any time one thing is pending: a receive, a send, or a send and then a receive."""

    __slots__ = ("_buffer", "_going", "_ring", "fd", "socket")

    def __init__(self, ring: Ring, connected: socket.socket, handler: Handler) -> None:
        super().__init__(handler)
        self.socket = connected
        self.fd = connected.fileno()
        self._ring = ring
        self._buffer = bytearray(SMALL)
        self._going = b""
        """What the kernel reads from: it must not be freed before the kernel says that it has gone."""

    def sendall(self, data: bytes) -> None:
        """Gather what is to be sent; a piece of a stream goes out at once, and whoever sends it waits."""
        if self.in_pieces:
            self._ring.send_now(self.fd, data)
        else:
            self.unsent = b"".join((self.unsent, data)) if self.unsent else data

    def shut(self) -> None:
        """End our half."""
        self.socket.shutdown(socket.SHUT_WR)

    def received(self, length: int) -> int:
        """So much is in the buffer; also, what was to be sent before has been. Return what to wait for."""
        self.unsent = b""
        try:
            return self.arrived(bytes(memoryview(self._buffer)[:length])) if length > 0 else GONE
        except OSError:
            return GONE

    def sent(self, length: int) -> int:
        """So much went out; return what to wait for."""
        if length <= 0:
            return GONE
        self.unsent = self.unsent[length:]
        return self.go_on()

    def ask(self, want: int) -> None:
        """Hand the kernel what this waits for."""
        size = LARGE if self.in_body else SMALL
        if len(self._buffer) != size:
            self._buffer = bytearray(size)
        if want != WRITE:
            self._ring.receive(self.fd, self._buffer)
            return
        self._going = bytes(self.unsent)
        if self.hears_next:
            self._ring.send_then_receive(self.fd, self._going, self._buffer)
        else:
            self._ring.send(self.fd, self._going)


def serve(ring: Ring, reception: Reception) -> None:
    """Serve for ever. Raises OSError when connections cannot be accepted any more."""
    connections = reception.connections

    def follow(connection: Pending, want: int) -> None:
        if want == GONE:
            reception.dismiss(connection)
            return
        if want == LINGER:
            reception.linger(connection)
        connection.ask(want)

    def accepted(fd: int, more: bool) -> None:
        if not more:
            ring.accept(reception.fd)
        if fd >= 0:
            connected = socket.socket(reception.listener.family, socket.SOCK_STREAM, fileno=fd)
            connected.setblocking(False)
            reception.admit(connected).ask(LINGER)
        elif -fd != errno.ECONNABORTED:
            raise OSError(-fd, os.strerror(-fd))

    ring.accept(reception.fd)
    while True:
        for operation, fd, result, more in ring.completed(reception.patience):
            if operation == RECEIVE:
                follow(connections[fd], connections[fd].received(result))
            elif operation == SEND:
                follow(connections[fd], connections[fd].sent(result))
            elif operation == ACCEPT:
                accepted(result, more)
            # else a send in a chain that failed: the receive behind it fails too and is reported next
        for connection in reception.overdue():
            connection.socket.shutdown(socket.SHUT_RDWR)  # its pending receive ends by that


def main() -> None:
    """Serve till SIGTERM."""
    options = arguments("backlog")
    end_on_sigterm()
    ring = Ring()
    connected: Any = partial(Pending, ring)
    serve(ring, Reception(open_listener(options), load(options.app), connected))


if __name__ == "__main__":
    main()

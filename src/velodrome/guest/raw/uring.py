"""io_uring(7) as far as a server needs it: operations are handed to the kernel, which tells when they are done.

    ring = Ring()
    ring.receive(fd, buffer)
    for operation, fd, result, more in ring.completed(None): …

Over the package `liburing`, Linux only. Its calls hold the GIL while they wait: one ring, one thread.
"""

from __future__ import annotations

import errno
import socket
from collections import deque
from typing import Any, Deque, Iterator, Optional, Tuple

Completion = Tuple[int, int, int, bool]
"""Operation, descriptor, result (a count, a descriptor, or minus an errno), and whether more of it follow."""

ACCEPT, RECEIVE, SEND, SEND_IN_CHAIN = range(4)

_ENTRIES = 1024


class Ring:
    """One submission queue and one completion queue. Needs liburing installed; OSError where it is forbidden."""

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
        """Send all of `data`, then receive; of the sending only a failure is told, and then both fail.

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
        """Hand over what was asked, wait for at least one completion, or so many seconds, and yield all."""
        if self._kept:
            yield from self._all_kept()
            patience = 0.0
        yield from self._reap(patience)
        yield from self._all_kept()  # of those that were completed while the last ones were answered

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

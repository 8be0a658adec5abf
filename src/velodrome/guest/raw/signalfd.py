"""Signals of readiness, read from a descriptor: signalfd(2) and F_SETSIG of fcntl(2), Linux only.

A handler of Python's would be called between two bytecodes of anything, itself included: under load it
re-enters itself till the stack is full. So the signals are blocked and read like data, many at once.
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

READY = signal.SIGRTMIN + 1 if hasattr(signal, "SIGRTMIN") else 0
"""A realtime signal: each is queued, and tells of which descriptor it is."""

LOST = signal.SIGIO
"""Sent instead when the queue of realtime signals is full: some have been lost, all must be asked."""

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

"""Network namespaces: made, and entered by the thread that asks (namespaces(7), setns(2)).

    with entered(namespace):
        server = subprocess.Popen(...)      # sockets, /proc/thread-self/net and children are those of the namespace

Only the calling thread is moved; what it starts stays there. A namespace has no name and no mount: it lives as
long as a process or a descriptor holds it, so that a killed velodrome leaves none behind.
"""

import ctypes
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from velodrome.model.errors import LinkRefusedError

CLONE_NEWNET = 0x4000_0000
OWN = "/proc/thread-self/ns/net"


class Namespace:
    """A network of its own, without any device but a loopback that is down. Close it to let go of it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def close(self) -> None:
        """Let go of it; may be called again."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def make() -> Namespace:
    """Return a new namespace. Raises LinkRefusedError where that is not allowed."""
    if sys.platform != "linux":
        raise LinkRefusedError("system", 0)
    own = os.open(OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # First the way back: in a user namespace it may be closed although the way out is open.
        _call("setns", own, CLONE_NEWNET)
        _call("unshare", CLONE_NEWNET)
        try:
            return Namespace(os.open(OWN, os.O_RDONLY | os.O_CLOEXEC))
        finally:
            _call("setns", own, CLONE_NEWNET)
    except OSError as error:
        raise LinkRefusedError("namespace", error.errno or errno.EPERM) from error
    finally:
        os.close(own)


@contextmanager
def entered(namespace: Namespace | None) -> Iterator[None]:
    """Be in a namespace while the context lasts; None: stay where this thread is."""
    if namespace is None:
        yield
        return
    before = os.open(OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call("setns", namespace.descriptor, CLONE_NEWNET)
        try:
            yield
        finally:
            _call("setns", before, CLONE_NEWNET)
    finally:
        os.close(before)


def _call(name: str, *arguments: int) -> None:
    """Call a function of the C library: `os` has these two from Python 3.12 on only. Raises OSError."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

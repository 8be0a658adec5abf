"""Network namespaces: made, set up as the machine's own is, and entered by one thread (namespaces(7), setns(2)).

    with entered(namespace):
        server = subprocess.Popen(...)      # sockets, /proc/thread-self/net and children are those of the namespace

Only the calling thread is moved; what it starts stays there. A namespace has no name and no mount: it lives as
long as a process or a descriptor holds it, so that a killed velodrome leaves none behind.

A server behind a link shall differ from one on loopback by the link and by nothing else, so a new namespace gets the
machine's settings where the kernel would begin with its defaults.
"""

import ctypes
import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from velodrome.model.errors import LinkRefusedError

CLONE_NEWNET = 0x4000_0000
OWN = "/proc/thread-self/ns/net"
SETTINGS = Path("/proc/sys/net")
"""Shows and sets those of the namespace of the thread that looks."""
INHERITED = (
    "core/somaxconn",
    "ipv4/ip_local_port_range",
    "ipv4/tcp_abort_on_overflow",
    "ipv4/tcp_ecn",
    "ipv4/tcp_fastopen",
    "ipv4/tcp_fin_timeout",
    "ipv4/tcp_max_syn_backlog",
    "ipv4/tcp_max_tw_buckets",
    "ipv4/tcp_notsent_lowat",
    "ipv4/tcp_rmem",
    "ipv4/tcp_sack",
    "ipv4/tcp_slow_start_after_idle",
    "ipv4/tcp_syncookies",
    "ipv4/tcp_timestamps",
    "ipv4/tcp_tw_reuse",
    "ipv4/tcp_window_scaling",
    "ipv4/tcp_wmem",
)
ADDED = {"ipv4/tcp_no_metrics_save": "1"}
"""Else a connection begins with what the kernel learnt from the last one to the same address: the second load of a
server would be faster than the first.
"""
SNMP = "/proc/thread-self/net/snmp"
DEVICES = "/proc/thread-self/net/dev"
_RECEIVED_DROPPED, _SENT_DROPPED = 3, 11
"""Columns of /proc/net/dev behind the name."""


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


def settings() -> Mapping[str, str]:
    """Return the settings of the present namespace that another is to have."""
    found = {}
    for name in INHERITED:
        with suppress(OSError):  # an older kernel has it for the whole machine, or not at all
            found[name] = (SETTINGS / name).read_text().strip()
    return found


def apply_settings(inherited: Mapping[str, str]) -> None:
    """Give the present namespace these settings, and those that are ours; a kernel without one has its reasons."""
    for name, value in {**inherited, **ADDED}.items():
        with suppress(OSError):
            if (SETTINGS / name).read_text().strip() != value:
                (SETTINGS / name).write_text(value)


def forward(devices: Iterable[str]) -> None:
    """Make the present namespace a router between devices that have no addresses. Raises OSError."""
    (SETTINGS / "ipv4/ip_forward").write_text("1")
    for device in ("all", *devices):
        # Else what comes back by a way of which the router has no address is taken for a forgery.
        (SETTINGS / f"ipv4/conf/{device}/rp_filter").write_text("0")


def without_ipv6(device: str) -> None:
    """Keep a device free of IPv6, whose router solicitations would be packets of nobody's in the link."""
    with suppress(OSError):
        (SETTINGS / f"ipv6/conf/{device}/disable_ipv6").write_text("1")


@dataclass(frozen=True)
class Counted:
    """Of one namespace, since it was made."""

    retransmitted: int
    """Segments that TCP sent again."""
    overrun: int
    """Packets that the device could not take or hand on."""


def counted(device: str) -> Counted:
    """Read the counters of the present namespace (proc_net_snmp in nstat(8), proc_net_dev in proc(5))."""
    with open(SNMP) as file:
        names, values = [line.split() for line in file if line.startswith("Tcp:")]
    with open(DEVICES) as file:
        (line,) = [line for line in file if line.split(":")[0].strip() == device]
    columns = [int(column) for column in line.split(":")[1].split()]
    return Counted(
        retransmitted=int(values[names.index("RetransSegs")]),
        overrun=columns[_RECEIVED_DROPPED] + columns[_SENT_DROPPED],
    )


def _call(name: str, *arguments: int) -> None:
    """Call a function of the C library: `os` has these two from Python 3.12 on only. Raises OSError."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

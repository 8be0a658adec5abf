"""TCP sockets as the kernel sees them, over netlink (sock_diag(7)): what `ss` uses, without starting it.

Asking for listening sockets alone costs 50 us however many connections are open, where /proc/net/tcp is read
and formatted whole; and it tells what that file does not: the limit of the accept queue, and drops per
socket.
"""

import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
ESTABLISHED, LISTEN = 1, 10
INET_DIAG_SKMEMINFO = 7
SK_MEMINFO_DROPS = 8
_HEADER = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, port."""
_REQUEST = struct.Struct("=BBBBI48s")
"""inet_diag_req_v2: family, protocol, extensions, pad, states, id."""
_FIXED_BYTES = 72
"""sizeof(struct inet_diag_msg); attributes follow."""


@dataclass(frozen=True)
class TcpSocket:
    """One socket whose local port was asked for."""

    address: str
    port: int
    inode: int
    """As in the link /proc/PID/fd/N -> socket:[inode]; 0: not accepted yet, no process holds it."""
    receive: int
    """Of a listening socket: connections that wait to be accepted. Of another: bytes unread."""
    send: int
    """Of a listening socket: how many may wait. Of another: bytes unsent or unacknowledged."""
    drops: int | None
    """Of a listening socket: connections turned away since it was opened."""


def listening(port: int) -> tuple[TcpSocket, ...] | None:
    """Return the sockets that listen on `port`, IPv4 and IPv6; None where the kernel cannot be asked."""
    return _ask(port, 1 << LISTEN)


def established(port: int) -> tuple[TcpSocket, ...] | None:
    """Return the established connections whose local port is `port` (the server's ends)."""
    return _ask(port, 1 << ESTABLISHED)


def _ask(port: int, states: int) -> tuple[TcpSocket, ...] | None:
    if sys.platform != "linux":
        return None
    found: list[TcpSocket] = []
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as netlink:
            netlink.settimeout(1.0)
            for family in (socket.AF_INET, socket.AF_INET6):
                extensions = 1 << (INET_DIAG_SKMEMINFO - 1)
                # Bytes 0-1 of the id are the source port; a dump filters by it, network byte order.
                identity = struct.pack("!H", port).ljust(48, b"\0")
                body = _REQUEST.pack(family, socket.IPPROTO_TCP, extensions, 0, states, identity)
                header = _HEADER.pack(
                    _HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0
                )
                netlink.send(header + body)
                found += (sock for sock in _answers(netlink) if sock.port == port)
    except OSError:
        return None
    return tuple(found)


def _answers(netlink: socket.socket) -> Iterator[TcpSocket]:
    """Yield what a dump returns, to its end. Raises OSError when the kernel refuses."""
    while True:
        data = netlink.recv(1 << 18)
        at = 0
        while at < len(data):
            length, kind, *_ = _HEADER.unpack_from(data, at)
            if kind == NLMSG_DONE:
                return
            if kind == NLMSG_ERROR:
                raise OSError(-struct.unpack_from("=i", data, at + _HEADER.size)[0], "sock_diag")
            yield _socket(data[at + _HEADER.size : at + length])
            at += (length + 3) & ~3


def _socket(message: bytes) -> TcpSocket:
    family = message[0]
    (port,) = struct.unpack_from("!H", message, 4)
    raw = message[8:12] if family == socket.AF_INET else message[8:24]
    receive, send, _uid, inode = struct.unpack_from("=IIII", message, 56)
    drops, at = None, _FIXED_BYTES
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if kind == INET_DIAG_SKMEMINFO and length >= 4 + 4 * (SK_MEMINFO_DROPS + 1):
            (drops,) = struct.unpack_from("=I", message, at + 4 + 4 * SK_MEMINFO_DROPS)
        at += max(4, (length + 3) & ~3)
    return TcpSocket(socket.inet_ntop(family, raw), port, inode, receive, send, drops)

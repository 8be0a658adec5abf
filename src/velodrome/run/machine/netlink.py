"""The kernel by netlink: what `ip`, `tc` and `ss` do, without their being installed.

    with Netlink() as net:                              # of the network namespace that this thread is in
        net.bring_up("lo")
        net.add_address("velodrome0", "198.18.0.1", 30)
    listening(8000)                                     # TCP sockets as the kernel sees them

Devices, addresses, routes and queueing disciplines are rtnetlink(7), sockets sock_diag(7). A request for listening
sockets alone costs 50 us however many connections are open, where /proc/net/tcp is read and formatted whole; and it
reports what that file does not: the limit of the accept queue, and drops per socket.
"""

import os
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

NETLINK_ROUTE, NETLINK_SOCK_DIAG = 0, 4
NLMSG_ERROR, NLMSG_DONE = 2, 3
REQUEST, ACK, DUMP, EXCLUSIVE, CREATE = 1, 4, 0x300, 0x200, 0x400
NEWLINK, NEWADDR, NEWROUTE, NEWQDISC, GETQDISC = 16, 20, 24, 36, 38
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_TXQLEN = 1, 3, 4, 13
IFLA_LINKINFO, IFLA_NET_NS_FD, IFLA_GSO_MAX_SEGS = 18, 28, 40
INFO_KIND, INFO_DATA, VETH_PEER = 1, 2, 1
IFA_ADDRESS, IFA_LOCAL = 1, 2
RTA_DST, RTA_OIF, RTA_PREFSRC, RTA_METRICS, RTAX_CC_ALGO = 1, 4, 7, 8, 16
TABLE_MAIN, PROTOCOL_STATIC, SCOPE_LINK, UNICAST = 254, 4, 253, 1
IFF_UP, IFF_NOARP = 1, 0x80
HARDWARE = bytes.fromhex("020000000001")
"""An address of the range that everybody may give out (IEEE 802c)."""
TC_ROOT = 0xFFFF_FFFF
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
_HEADER = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, port."""
_LINK = struct.Struct("=BxHiII")
"""ifinfomsg: family, type, index, flags, mask of the flags that are meant."""
_ADDRESS = struct.Struct("=BBBBI")
"""ifaddrmsg: family, prefix, flags, scope, index."""
_ROUTE = struct.Struct("=BBBBBBBBI")
"""rtmsg: family, prefixes of destination and source, type of service, table, protocol, scope, type, flags."""
_TRAFFIC = struct.Struct("=BxxxiIII")
"""tcmsg: family, index, handle, parent, info."""
SOCK_DIAG_BY_FAMILY = 20
ESTABLISHED, LISTEN = 1, 10
INET_DIAG_SKMEMINFO = 7
SK_MEMINFO_DROPS = 8
_SOCKETS = struct.Struct("=BBBBI48s")
"""inet_diag_req_v2: family, protocol, extensions, pad, states, id."""
_FIXED_BYTES = 72
"""sizeof(struct inet_diag_msg); attributes follow."""


def attribute(kind: int, value: bytes | int | str) -> bytes:
    """Return one attribute, padded: bytes as they are, a number as 32 bits, a text with its final zero."""
    if isinstance(value, int):
        value = struct.pack("=I", value)
    elif isinstance(value, str):
        value = value.encode() + b"\0"
    length = 4 + len(value)
    return struct.pack("=HH", length, kind) + value + bytes(-length % 4)


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and value of each attribute."""
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += max(4, (length + 3) & ~3)


class Wire:
    """A socket to the kernel; of the namespace of the thread that makes it."""

    def __init__(self, protocol: int, timeout_s: float) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self._socket.settimeout(timeout_s)
        self._sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, kind: int, flags: int, body: bytes) -> None:
        """Send one message."""
        self._sequence += 1
        header = _HEADER.pack(_HEADER.size + len(body), kind, flags, self._sequence, 0)
        self._socket.send(header + body)

    def answers(self) -> Iterator[tuple[int, bytes]]:
        """Yield type and body of each message of an answer, to its end. Raises OSError when it is a refusal."""
        while True:
            data = self._socket.recv(1 << 18)
            at = 0
            while at < len(data):
                length, kind, *_ = _HEADER.unpack_from(data, at)
                body = data[at + _HEADER.size : at + length]
                at += (length + 3) & ~3
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    (number,) = struct.unpack_from("=i", body)
                    if number:
                        raise OSError(-number, os.strerror(-number))
                    return
                yield kind, body


class Netlink(Wire):
    """Devices, addresses, routes, queueing disciplines. Each request waits for the kernel; a refusal is an OSError."""

    def __init__(self) -> None:
        super().__init__(NETLINK_ROUTE, timeout_s=5.0)

    def bring_up(self, device: str, mtu: int = 0, queue: int = 0, gso_segments: int = 0) -> None:
        """Set a device up; `queue`: packets it holds for whoever sends them on; zeroes leave as is."""
        body = _LINK.pack(socket.AF_UNSPEC, 0, socket.if_nametoindex(device), IFF_UP, IFF_UP)
        body += attribute(IFLA_MTU, mtu) if mtu else b""
        body += attribute(IFLA_TXQLEN, queue) if queue else b""
        body += attribute(IFLA_GSO_MAX_SEGS, gso_segments) if gso_segments else b""
        self._request(NEWLINK, 0, body)

    def add_address(self, device: str, address: str, prefix: int) -> None:
        """Give a device an IPv4 address."""
        raw = socket.inet_aton(address)
        body = _ADDRESS.pack(socket.AF_INET, prefix, 0, 0, socket.if_nametoindex(device))
        body += attribute(IFA_LOCAL, raw) + attribute(IFA_ADDRESS, raw)
        self._request(NEWADDR, CREATE | EXCLUSIVE, body)

    def add_route(self, device: str, to: str, source: str = "", congestion: str = "") -> None:
        """Reach one address through a device; `congestion`: control of TCP that goes there."""
        body = _ROUTE.pack(socket.AF_INET, 32, 0, 0, TABLE_MAIN, PROTOCOL_STATIC, SCOPE_LINK, UNICAST, 0)
        body += attribute(RTA_DST, socket.inet_aton(to))
        body += attribute(RTA_OIF, socket.if_nametoindex(device))
        body += attribute(RTA_PREFSRC, socket.inet_aton(source)) if source else b""
        body += attribute(RTA_METRICS, attribute(RTAX_CC_ALGO, congestion)) if congestion else b""
        self._request(NEWROUTE, CREATE | EXCLUSIVE, body)

    def add_pair(self, here: str, there: str, namespace: int) -> None:
        """Make a veth pair: one end here, the other in the namespace of that descriptor.

        Nobody asks for neighbours on it: whatever leaves one end is for the other, and both have one address.
        """
        both = _LINK.pack(socket.AF_UNSPEC, 0, 0, IFF_NOARP, IFF_NOARP) + attribute(IFLA_ADDRESS, HARDWARE)
        peer = both + attribute(IFLA_IFNAME, there) + attribute(IFLA_NET_NS_FD, namespace)
        info = attribute(INFO_KIND, "veth") + attribute(INFO_DATA, attribute(VETH_PEER, peer))
        body = both + attribute(IFLA_IFNAME, here) + attribute(IFLA_LINKINFO, info)
        self._request(NEWLINK, CREATE | EXCLUSIVE, body)

    def add_discipline(self, device: str, kind: str, options: bytes) -> None:
        """Make a queueing discipline the root of what a device sends."""
        body = _TRAFFIC.pack(socket.AF_UNSPEC, socket.if_nametoindex(device), 0, TC_ROOT, 0)
        body += attribute(TCA_KIND, kind) + attribute(TCA_OPTIONS, options)
        self._request(NEWQDISC, CREATE | EXCLUSIVE, body)

    def discipline(self, device: str) -> bytes:
        """Return the statistics (TCA_STATS2) of the discipline at the root of a device; empty: none reported."""
        index = socket.if_nametoindex(device)
        self.send(GETQDISC, REQUEST | DUMP, _TRAFFIC.pack(socket.AF_UNSPEC, index, 0, 0, 0))
        found = b""
        for kind, body in self.answers():
            _, its_index, _, parent, _ = _TRAFFIC.unpack_from(body)
            if kind == NEWQDISC and its_index == index and parent == TC_ROOT:
                found = dict(attributes(body[_TRAFFIC.size :])).get(TCA_STATS2, b"")
        return found

    def _request(self, kind: int, flags: int, body: bytes) -> None:
        self.send(kind, REQUEST | ACK | flags, body)
        for _ in self.answers():
            pass


@dataclass(frozen=True)
class TcpSocket:
    """A socket whose local port was looked up."""

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
    """Return the sockets that listen on `port`, IPv4 and IPv6; None where the kernel does not report them."""
    return _ask(port, 1 << LISTEN)


def established_sockets(port: int) -> tuple[TcpSocket, ...] | None:
    """Return the established connections whose local port is `port` (the server's ends)."""
    return _ask(port, 1 << ESTABLISHED)


def _ask(port: int, states: int) -> tuple[TcpSocket, ...] | None:
    if sys.platform != "linux":
        return None
    found: list[TcpSocket] = []
    try:
        with Wire(NETLINK_SOCK_DIAG, timeout_s=1.0) as wire:
            for family in (socket.AF_INET, socket.AF_INET6):
                extensions = 1 << (INET_DIAG_SKMEMINFO - 1)
                # Bytes 0-1 of the id are the source port; a dump filters by it, network byte order.
                identity = struct.pack("!H", port).ljust(48, b"\0")
                body = _SOCKETS.pack(family, socket.IPPROTO_TCP, extensions, 0, states, identity)
                wire.send(SOCK_DIAG_BY_FAMILY, REQUEST | DUMP, body)
                every = (_socket(message) for _, message in wire.answers())
                found += (sock for sock in every if sock.port == port)
    except OSError:
        return None
    return tuple(found)


def _socket(message: bytes) -> TcpSocket:
    family = message[0]
    (port,) = struct.unpack_from("!H", message, 4)
    raw = message[8:12] if family == socket.AF_INET else message[8:24]
    receive, send, _uid, inode = struct.unpack_from("=IIII", message, 56)
    memory = dict(attributes(message[_FIXED_BYTES:])).get(INET_DIAG_SKMEMINFO, b"")
    drops = None
    if len(memory) >= 4 * (SK_MEMINFO_DROPS + 1):
        (drops,) = struct.unpack_from("=I", memory, 4 * SK_MEMINFO_DROPS)
    return TcpSocket(socket.inet_ntop(family, raw), port, inode, receive, send, drops)

"""Requests and answers as they pass the loopback device, stamped by the kernel: what latency really was.

with Wire(port) as wire:
    ... a load ...
print(wire.round_trips_us())

A packet socket keeps what passed with the kernel's time of passing and is read when all is over, so that nothing runs
beside the load. Needs CAP_NET_RAW; `permitted()` tells.
"""

import ctypes
import socket
import struct
from types import TracebackType
from typing import Self

ETH_P_ALL = 3
SO_ATTACH_FILTER = 26
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
KEPT_BYTES = 96
"""Of each packet: both headers, and whether anything follows them."""
ROOM_BYTES = 512 * 1024 * 1024


def permitted() -> bool:
    """Whether this process may watch the loopback device."""
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0).close()
    except (OSError, AttributeError):
        return False
    return True


def _filter(port: int) -> bytes:
    """Classic BPF: what leaves by the device (each packet passes twice), over TCP, from or to the port.

    Of each row: code, rows to skip if so, rows to skip if not, operand. The last row drops, the one before keeps.
    """
    rows = [
        (0x20, 0, 0, 0xFFFFF004),  # A = packet type
        (0x15, 0, 8, 4),  # outgoing
        (0x30, 0, 0, 9),  # A = protocol
        (0x15, 0, 6, 6),  # TCP
        (0xB1, 0, 0, 0),  # X = length of the IP header
        (0x48, 0, 0, 0),  # A = source port
        (0x15, 2, 0, port),
        (0x48, 0, 0, 2),  # A = destination port
        (0x15, 0, 1, port),
        (0x06, 0, 0, KEPT_BYTES),
        (0x06, 0, 0, 0),
    ]
    return b"".join(struct.pack("HBBI", *row) for row in rows)


class Wire:
    """See the module."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        rows = _filter(port)
        kept = ctypes.create_string_buffer(rows, len(rows))
        program = struct.pack("HL", len(rows) // 8, ctypes.addressof(kept))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
        self._socket.setblocking(False)

    def __enter__(self) -> Self:
        self._socket.bind(("lo", ETH_P_ALL))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def round_trips_us(self) -> list[float]:
        """Return the times from each request to its answer, in order of the answers; microseconds.

        Of connections that carry one request at a time, in one segment each way.
        """
        sent: dict[int, int] = {}
        found = []
        for at, source, destination, payload in self._packets():
            if not payload:
                continue
            if destination == self._port:
                sent[source] = at
            elif destination in sent:
                found.append((at - sent.pop(destination)) / 1000)
        return found

    def _packets(self) -> list[tuple[int, int, int, bool]]:
        """What passed: nanoseconds, ports, and whether it carried anything."""
        seen = []
        while True:
            try:
                packet, control, _, _ = self._socket.recvmsg(KEPT_BYTES, 64)
            except BlockingIOError:
                return seen
            seconds, nanos = struct.unpack("qq", control[0][2][:16])
            header = (packet[0] & 15) * 4
            source, destination = struct.unpack("!HH", packet[header : header + 4])
            length = struct.unpack("!H", packet[2:4])[0]
            payload = length > header + (packet[header + 12] >> 4) * 4
            seen.append((seconds * 10**9 + nanos, source, destination, payload))

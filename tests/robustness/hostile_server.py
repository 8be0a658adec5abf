"""Servers that mean harm, each a few lines: what they say to whoever connects, over sockets, on their own threads."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

Talk = Callable[[socket.socket], None]
ESCAPES = "\x1b]0;OWNED\x07\x9b2J\u202e\r\n"
"""Text that a terminal obeys: a window's title, a cleared screen, another direction."""
PIECE = 1 << 16
HEAD = b"HTTP/1.1 200 OK\r\n"


@dataclass
class Peer:
    """A server that runs."""

    port: int
    connected: threading.Event
    sent: int = 0
    """Bytes, to all who connected."""


@contextmanager
def serving(talk: Talk, family: int = socket.AF_INET, place: object = ("127.0.0.1", 0)) -> Iterator[Peer]:
    """Have `talk` held on each connection until the block ends."""
    with socket.socket(family) as listener:
        listener.bind(place)  # type: ignore[arg-type]
        listener.listen(64)
        port = listener.getsockname()[1] if family == socket.AF_INET else 0
        peer, open_ones = Peer(port, threading.Event()), []

        def converse(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                talk(Counted(connection, peer))  # type: ignore[arg-type]

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    open_ones.append(connection)
                    peer.connected.set()
                    threading.Thread(target=converse, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield peer
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            for connection in open_ones:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


class Counted:
    """A socket whose bytes are counted."""

    def __init__(self, connection: socket.socket, peer: Peer) -> None:
        self._connection, self._peer = connection, peer
        self.recv, self.setsockopt, self.close = connection.recv, connection.setsockopt, connection.close

    def sendall(self, data: bytes) -> None:
        self._connection.sendall(data)
        self._peer.sent += len(data)


def read_request(connection: socket.socket) -> bytes:
    """Read the request: whatever comes first."""
    return connection.recv(PIECE)


def stay(connection: socket.socket) -> None:
    """Read on and say nothing until the other side leaves."""
    while connection.recv(PIECE):
        pass


def once(answer: bytes) -> Talk:
    """Answer once, and stay."""

    def talk(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(answer)
        stay(connection)

    return talk


def again(answer: bytes) -> Talk:
    """Answer each piece that comes."""

    def talk(connection: socket.socket) -> None:
        while read_request(connection):
            connection.sendall(answer)

    return talk


def forever(beginning: bytes, what: bytes) -> Talk:
    """Say the same without an end, whoever listens."""
    many = what * (PIECE // len(what) + 1)

    def talk(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(beginning)
        while True:
            connection.sendall(many)

    return talk


def slowly(answer: bytes, pause_s: float) -> Talk:
    """Say a byte at a time."""

    def talk(connection: socket.socket) -> None:
        read_request(connection)
        for byte in answer:
            connection.sendall(bytes([byte]))
            time.sleep(pause_s)
        stay(connection)

    return talk


def resetting(answer: bytes) -> Talk:
    """Break off in the middle of an answer, with a reset."""

    def talk(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(answer)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    return talk


# HTTP/2 (RFC 9113), by hand: a library would not do wrong.

DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS = 1, 4
OK_HEAD = b"\x88"
GRPC_HEAD = OK_HEAD + b"\x5f\x10application/grpc"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return a frame."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


GREETING = frame(SETTINGS, 0, 0)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Frames:
    """The frames that come on a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._heard, self._begun = connection, b"", False

    def __iter__(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield kind, stream and payload of each, until the other side leaves."""
        while True:
            if not self._begun and len(self._heard) >= len(PREFACE):
                self._begun, self._heard = True, self._heard[len(PREFACE) :]
            while self._begun and len(self._heard) >= 9:
                length = int.from_bytes(self._heard[:3], "big")
                if len(self._heard) < 9 + length:
                    break
                kind, stream = self._heard[3], int.from_bytes(self._heard[5:9], "big")
                payload, self._heard = self._heard[9 : 9 + length], self._heard[9 + length :]
                yield kind, stream, payload
            more = self._connection.recv(PIECE)
            if not more:
                return
            self._heard += more


def on_request(beginning: bytes, what: bytes = b"") -> Talk:
    """Greet, wait for the head of a request on stream 1, and say `beginning` and then `what` without an end."""
    many = what * (PIECE // len(what) + 1) if what else b""

    def talk(connection: socket.socket) -> None:
        connection.sendall(GREETING)
        for kind, _, _ in Frames(connection):
            if kind == HEADERS:
                connection.sendall(beginning)
                while many:
                    connection.sendall(many)

    return talk


HPACK_BOMB = b"\x40\x01a\x7f\xa1\x1e" + b"b" * 4000 + b"\xbe" * 12_000
"""A field of 4 kB that goes into the table, and is then named by a byte, 12,000 times: 48 MB of 16 kB."""


# Messages of gRPC reflection, by hand.


def varint(number: int) -> bytes:
    """Return a number as protocol buffers write it."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, content: bytes) -> bytes:
    """Return a field that holds bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def files(*found: bytes) -> bytes:
    """Return an answer with these files."""
    return field(4, b"".join(field(1, chunk) for chunk in found))


def failure(code: int, message: str) -> bytes:
    """Return an answer that is an error."""
    return field(7, b"\x08" + varint(code) + field(2, message.encode()))


def reflecting(*answers: bytes) -> Talk:
    """Answer questions of reflection in turn, the last one again and again, as the client's windows allow."""

    def talk(connection: socket.socket) -> None:
        room, left, turn = 65_535, memoryview(b""), 0
        connection.sendall(GREETING)
        for kind, stream, payload in Frames(connection):
            if kind == HEADERS:
                connection.sendall(frame(HEADERS, END_HEADERS, 1, GRPC_HEAD))
            elif kind == DATA and payload:
                message = answers[min(turn, len(answers) - 1)]
                left = memoryview(bytes(left) + b"\0" + struct.pack(">I", len(message)) + message)
                turn += 1
            elif kind == WINDOW and stream == 0:
                room += int.from_bytes(payload, "big")
            while left and room:
                piece = left[: min(room, 16_384)]
                left, room = left[len(piece) :], room - len(piece)
                connection.sendall(frame(DATA, 0, 1, bytes(piece)))

    return talk

"""A WebSocket client of a few lines, on a plain socket, written from RFC 6455 alone."""

import base64
import hashlib
import os
import socket
import struct
import time
from types import TracebackType
from typing import Self

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
DEADLINE_S = 10.0


class Member:
    """One connection; connecting is tried until the server listens."""

    def __init__(self, port: int, deadline_s: float = DEADLINE_S) -> None:
        until = time.monotonic() + deadline_s
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=deadline_s)
                break
            except ConnectionRefusedError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)
        self._stream = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16))
        self.socket.sendall(
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n"
        )
        head = [self._stream.readline().rstrip()]
        while head[-1]:
            head.append(self._stream.readline().rstrip())
        wanted = base64.b64encode(hashlib.sha1(key + GUID).digest())  # RFC 6455, section 4.2.2
        accepts = [line for line in head if line.lower().startswith(b"sec-websocket-accept:")]
        assert head[0].startswith(b"HTTP/1.1 101"), head
        assert accepts, head
        assert accepts[0].endswith(wanted), head

    def send(self, opcode: int, data: bytes) -> None:
        """Send one frame, masked as a client must."""
        mask = os.urandom(4)
        size = len(data)
        if size < 126:
            length = bytes([0x80 | size])
        elif size < 65_536:
            length = bytes([0x80 | 126]) + struct.pack(">H", size)
        else:
            length = bytes([0x80 | 127]) + struct.pack(">Q", size)
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        self.socket.sendall(bytes([0x80 | opcode]) + length + mask + masked)

    def receive(self) -> tuple[int, bytes]:
        """Return opcode and data of the next whole message; pings are answered."""
        opcode, data = 0, b""
        while True:
            first, second = self._stream.read(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", self._stream.read(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self._stream.read(8))
            piece = self._stream.read(size)
            if first & 0xF == PING:
                self.send(PONG, piece)
                continue
            opcode, data = opcode or first & 0xF, data + piece
            if first & 0x80:
                return opcode, data

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()
        self.socket.close()

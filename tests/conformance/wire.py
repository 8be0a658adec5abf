"""A client that sees every byte: one connection, requests on it one after the other, answers as they came."""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPResponse
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

ANSWER_S = 15.0


@dataclass(frozen=True)
class Answer:
    """An answer, whole."""

    status: int
    body: bytes
    wire_bytes: int
    """Head and body, with the framing of chunks."""
    closes: bool
    """Whether it says that the connection ends with it."""
    took_s: float
    first_byte_s: float


class Wire:
    """A connection to a server on this machine."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S)
        self._file = cast(BinaryIO, self.socket.makefile("rb"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._file.close()
        self.socket.close()

    def request(self, method: str, body: bytes) -> Answer:
        """Send a request and read its answer. Raises OSError or HTTPException if there is none."""
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        # Before it is sent: on a busy machine the server may be at work before this process runs again.
        began = time.monotonic()
        self.socket.sendall(f"{method} / HTTP/1.1\r\nHost: velodrome\r\n{length}\r\n".encode() + body)
        counted = _Counted(self._file)
        response = HTTPResponse(cast(socket.socket, counted), method=method)
        response.begin()
        content = response.read()
        return Answer(
            response.status,
            content,
            counted.bytes,
            response.will_close,
            time.monotonic() - began,
            counted.first - began,
        )

    def ended(self) -> bool:
        """Wait for the server's end of the connection."""
        return self._file.read(1) == b""


class _Counted:
    """A file that counts what is read from it, and outlives the answer that is read from it."""

    def __init__(self, file: BinaryIO) -> None:
        self.bytes, self.first = 0, 0.0
        self._file = file

    def makefile(self, mode: str) -> Self:
        return self

    def _count(self, data: bytes) -> bytes:
        if data and not self.bytes:
            self.first = time.monotonic()
        self.bytes += len(data)
        return data

    def read(self, *size: int) -> bytes:
        return self._count(self._file.read(*size))

    def read1(self, *size: int) -> bytes:
        read1: Callable[..., bytes] = cast(Any, self._file).read1
        return self._count(read1(*size))

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readline(self, *size: int) -> bytes:
        return self._count(self._file.readline(*size))

    def flush(self) -> None:
        """Nothing is written here."""

    def close(self) -> None:
        """Stay open: the connection may serve another request."""

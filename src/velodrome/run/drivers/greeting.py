"""What is said to a gRPC server of `guest/grpc/helloworld.proto`, for tools that take JSON or bytes.

A recipe's upload is in the message's `body`: whole in a unary call, in pieces in a client-streaming one.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import velodrome.guest
from velodrome.run.drivers.driver import Target

PROTO = Path(velodrome.guest.__path__[0]) / "grpc" / "helloworld.proto"
NAME = "world"
PIECE_BYTES = 64 * 1024
CLIENT_STREAMING = ("CollectHellos",)
BOTH_STREAMING = ("Chat",)


def is_grpc(target: Target) -> bool:
    """Whether a server speaks gRPC."""
    return urlsplit(target.url).scheme == "grpc"


def address(target: Target) -> str:
    """Return `host:port`."""
    return urlsplit(target.url).netloc


def call(target: Target) -> str:
    """Return `package.Service/Method`."""
    return urlsplit(target.url).path.strip("/")


def method(target: Target) -> str:
    """Return the name of the method alone."""
    return call(target).rpartition("/")[2]


def _bodies(target: Target) -> Iterator[bytes]:
    if method(target) not in CLIENT_STREAMING or not target.body:
        yield target.body
        return
    for at in range(0, len(target.body), PIECE_BYTES):
        yield target.body[at : at + PIECE_BYTES]


def as_json(target: Target) -> str:
    """Return the message, or for a client-streaming call the list of them, as JSON of its fields."""
    messages = [
        {"name": NAME, **({"body": base64.b64encode(body).decode()} if body else {})}
        for body in _bodies(target)
    ]
    return json.dumps(messages if method(target) in CLIENT_STREAMING else messages[0])


def as_frames(target: Target) -> bytes:
    """Return the messages as they go over the wire: a byte 0 (not compressed), their length, themselves.

    Fields of a message: number and kind in a byte, length as a varint, bytes (protobuf's «length-delimited»).
    """
    found = b""
    for body in _bodies(target):
        message = _field(1, NAME.encode()) + (_field(3, body) if body else b"")
        found += b"\0" + len(message).to_bytes(4, "big") + message
    return found


def _field(number: int, value: bytes) -> bytes:
    length, left = b"", len(value)
    while left > 0x7F:
        length += bytes([left & 0x7F | 0x80])
        left >>= 7
    return bytes([number << 3 | 2]) + length + bytes([left]) + value

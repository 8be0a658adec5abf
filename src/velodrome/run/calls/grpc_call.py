"""A recipe as a gRPC call: its method, the messages it is asked with, and the replies that are right.

    call = of_recipe(recipe)
    call.path, call.kind          "/helloworld.Greeter/SayHello", "unary"

Messages are those of `guest/grpc/helloworld.proto`, encoded here: the host needs no protobuf.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from velodrome.guest.grpc import greeter
from velodrome.guest.recipe import Recipe, Stream, filler

KINDS = {
    "unary_unary": "unary",
    "unary_stream": "server_streaming",
    "stream_unary": "client_streaming",
    "stream_stream": "bidirectional",
}
"""What the engine calls the kinds of calls, by what grpcio calls them."""

CHAT_MESSAGES = 10
"""A conversation is so many messages to and fro: enough that setting up the call does not count for most."""

CHAT_BYTES = 84
"""Of body in each of them, as in the answer of `hello`."""


@dataclass(frozen=True)
class GrpcCall:
    """One call. Messages are encoded and stand without their prefix."""

    path: str
    """`/package.Service/Method`."""
    kind: str
    """`unary`, `server_streaming`, `client_streaming` or `bidirectional`."""
    requests: tuple[bytes, ...]
    replies: tuple[bytes, ...] | None = None
    """All right replies in their order; None: any are right."""

    @property
    def spec(self) -> Mapping[str, Any]:
        """What the engine takes as `grpc`."""
        return {"kind": self.kind}

    @property
    def sent(self) -> bytes:
        """The requests as they stand on the wire."""
        return framed(self.requests)

    @property
    def expected(self) -> bytes | None:
        """The right replies as they stand on the wire."""
        return None if self.replies is None else framed(self.replies)


def of_recipe(recipe: Recipe) -> GrpcCall:
    """Return the call that a recipe is asked by, and its right replies."""
    method, message = greeter.method_of(recipe), greeter.greeting(greeter.NAME)
    if recipe.chats:
        bodies = [filler(CHAT_BYTES)] * CHAT_MESSAGES
        answers = bodies
    else:
        last = recipe.steps[-1]
        bodies = greeter.uploads(recipe)
        answers = [filler(last.chunk_bytes)] * last.chunks if isinstance(last, Stream) else [recipe.answer()]
    return GrpcCall(
        method.path,
        KINDS[method.kind],
        tuple(hello_request(greeter.NAME, body=body) for body in bodies),
        tuple(hello_reply(message, body) for body in answers),
    )


def hello_request(name: str, sleep_millisecond: int = 0, body: bytes = b"") -> bytes:
    """Encode a HelloRequest."""
    return _bytes(1, name.encode()) + _number(2, sleep_millisecond) + _bytes(3, body)


def hello_reply(message: str, body: bytes = b"") -> bytes:
    """Encode a HelloReply."""
    return _bytes(1, message.encode()) + _bytes(2, body)


def framed(messages: Sequence[bytes]) -> bytes:
    """Return messages as they stand on the wire: uncompressed, each with its length before it."""
    return b"".join(b"\0" + len(message).to_bytes(4, "big") + message for message in messages)


# The wire format of protobuf (https://protobuf.dev/programming-guides/encoding/): a key, which is the number of
# the field and a type, then a number as seven bits a byte, or a length and so many bytes. A field that has its
# default value is left out.


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value if value else b""


def _number(field: int, value: int) -> bytes:
    # A negative int32 is written as the 64 bits of its two's complement.
    return _varint(field << 3) + _varint(value & (1 << 64) - 1) if value else b""


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])

"""What is sent to a server in one request of its protocol where that is not plain HTTP, and which replies are right.

A recipe as a gRPC call (`grpc_of_recipe`) or as a conversation over WebSockets (`chat_of_recipe`), and a gRPC call of a
user's own service (`call_of_request`). Load generators and the check before the load send the same bytes.

Messages of recipes are those of `guest/grpc/helloworld.proto`, encoded here: the host needs no protobuf.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import velodrome.guest
from velodrome.guest.grpc import greeter
from velodrome.guest.grpc.greeter import NAME, PIECE_BYTES
from velodrome.guest.recipe import Recipe, Stream, filler
from velodrome.model.app import App, Request
from velodrome.model.load import Load

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
        return frame_messages(self.requests)

    @property
    def expected(self) -> bytes | None:
        """The right replies as they stand on the wire."""
        return None if self.replies is None else frame_messages(self.replies)


def grpc_of_recipe(recipe: Recipe) -> GrpcCall:
    """Return the call that a recipe serves, and its right replies."""
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


def frame_messages(messages: Sequence[bytes]) -> bytes:
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


@dataclass(frozen=True)
class DescribedCall:
    """A call as the engine encodes it."""

    path: str
    """`/package.Service/Method`."""
    proto: str
    """Path of the file."""
    data: str
    """The message, or a list of them."""
    expected_data: str | None = None
    """The right answer in the same form; None: any is right."""

    kind = ""
    """The file names it."""
    sent = b""
    """What it sends is encoded by the engine."""
    expected = None

    @property
    def spec(self) -> Mapping[str, Any]:
        """What the engine takes as `grpc`."""
        return {
            "proto": [self.proto],
            "include": [str(Path(self.proto).parent)],
            "data": self.data,
            "expect_data": self.expected_data,
        }


def call_of_app(app: App) -> DescribedCall:
    """Return the call that a servicer gets: its only request."""
    return call_of_request(app.requests[0], app.proto)


def call_of_request(request: Request, proto: str) -> DescribedCall:
    """Return a request as a call."""
    right = request.expect_body.text if request.expect_body else None
    return DescribedCall(request.path, proto, request.body.text if request.body else "{}", right)


Mode = Literal["echo", "broadcast", "connect"]

MESSAGE_BYTES = 84
"""Of each message, as in the answer of `hello`."""


@dataclass(frozen=True)
class ChatCall:
    """What is sent to a server that holds WebSockets."""

    room: bool = False
    """Whether a message goes to all who are connected."""
    message_bytes: int = MESSAGE_BYTES

    def mode(self, load: Load) -> Mode:
        """Return what a request of a load is: a connection where none is kept, else a message and all it goes to."""
        if not load.keepalive:
            return "connect"
        return "broadcast" if self.room else "echo"

    def spec(self, load: Load) -> dict[str, Any]:
        """Return the `websocket` field of what the engine takes."""
        mode = self.mode(load)
        return {"mode": mode, "message_bytes": None if mode == "connect" else self.message_bytes}


def chat_of_recipe(recipe: Recipe) -> ChatCall:
    """Return what is sent to a server of `recipe`, which ends in a chat."""
    return ChatCall(room=recipe.to_room)


PROTO = Path(velodrome.guest.__path__[0]) / "grpc" / "helloworld.proto"


def greeting_json(kind: str, body: bytes) -> str:
    """Return what generators that make messages of JSON send: one message, or for `client_streaming` a list of them."""
    if kind != "client_streaming":
        return json.dumps(_message(body))
    pieces = [body[at : at + PIECE_BYTES] for at in range(0, len(body), PIECE_BYTES)]
    return json.dumps([_message(piece) for piece in pieces or [b""]])


def _message(body: bytes) -> dict[str, str]:
    return {"name": NAME, **({"body": base64.b64encode(body).decode()} if body else {})}

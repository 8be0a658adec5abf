"""The service `helloworld.Greeter`: its methods, which of them serves a recipe, and the classes of its messages.

    method_of(recipe).path          /helloworld.Greeter/SayHello
    uploads(recipe)                 the bodies of the requests of one call
    protobuf_messages().request     class HelloRequest

protobuf's classes come from a FileDescriptorProto. Generated code holds the same descriptor, serialized by protoc, adds
it to the same pool and makes the classes from there; so messages cost exactly what generated messages cost, and no
compiler is needed where a server runs. betterproto's are dataclasses, written as its plugin writes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

from velodrome.guest.recipe import Body, Recipe

PROTO = Path(__file__).with_name("helloworld.proto")
"""For generators that take a file: `--proto`."""

SERVICE = "helloworld.Greeter"

PIECE_BYTES = 64 * 1024
"""Most bytes of an upload in one message of a client's stream."""

NAME = "world"
"""Whom requests greet by default."""

PEER = Recipe("grpc-peer", "waits as long as its request says", (Body(84),))
"""What the third party serves that recipes with `call` over gRPC ask."""


@dataclass(frozen=True)
class Method:
    """One method of the service, and which of its two directions are streams."""

    name: str
    takes_stream: bool
    gives_stream: bool

    @property
    def path(self) -> str:
        """What stands in the `:path` of a call."""
        return "/%s/%s" % (SERVICE, self.name)

    @property
    def kind(self) -> str:
        """The kind of call in grpcio's words, e.g. `unary_stream`."""
        words = {False: "unary", True: "stream"}
        return "%s_%s" % (words[self.takes_stream], words[self.gives_stream])

    def supports(self, recipe: Recipe) -> bool:
        """Return whether it can serve the recipe: chunks need a stream of replies, a chat needs both."""
        if recipe.chats:
            return self.takes_stream and self.gives_stream
        return self.gives_stream or not recipe.streams


SAY_HELLO = Method("SayHello", False, False)
SAY_HELLO_STREAM = Method("SayHelloStream", False, True)
COLLECT_HELLOS = Method("CollectHellos", True, False)
CHAT = Method("Chat", True, True)
METHODS: Tuple[Method, ...] = (SAY_HELLO, SAY_HELLO_STREAM, COLLECT_HELLOS, CHAT)


def method_of(recipe: Recipe) -> Method:
    """Return the method by which a recipe is called: that which its steps need."""
    if recipe.chats:
        return CHAT
    if recipe.streams:
        return SAY_HELLO_STREAM
    return COLLECT_HELLOS if recipe.reads_body else SAY_HELLO


def uploads(recipe: Recipe) -> List[bytes]:
    """Return the body of each request of one call, in order: an upload comes in pieces where it can."""
    whole = recipe.upload
    if method_of(recipe) is not COLLECT_HELLOS:
        return [whole]
    return [whole[at : at + PIECE_BYTES] for at in range(0, len(whole), PIECE_BYTES)] or [b""]


def greeting(name: str) -> str:
    """Return the message of every reply to a request with that name."""
    return "Hello, %s!" % name


PACKAGE, _, SERVICE_NAME = SERVICE.rpartition(".")

Fields = Sequence[Tuple[int, str, str]]
"""Number, name and type of each field, as in the `.proto`."""

MESSAGES: Dict[str, Fields] = {
    "HelloRequest": ((1, "name", "string"), (2, "sleep_millisecond", "int32"), (3, "body", "bytes")),
    "HelloReply": ((1, "message", "string"), (2, "body", "bytes")),
}


@dataclass(frozen=True)
class Messages:
    """The classes of the messages; both libraries' take their fields as keywords."""

    request: Any
    """Class `HelloRequest`."""
    reply: Any
    """Class `HelloReply`."""


def file_descriptor() -> Any:
    """Return the descriptor of the file. Needs protobuf installed."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto(name="helloworld.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        _add_message(file, name, fields)
    service = file.service.add(name=SERVICE_NAME)
    for method in METHODS:
        entry = service.method.add(name=method.name)
        entry.input_type, entry.output_type = (".%s.%s" % (PACKAGE, message) for message in MESSAGES)
        # Left unset where false, as protoc does: what is unset is not on the wire.
        if method.takes_stream:
            entry.client_streaming = True
        if method.gives_stream:
            entry.server_streaming = True
    return file


def _add_message(file: Any, name: str, fields: Fields) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    message = file.message_type.add(name=name)
    for number, field, kind in fields:
        message.field.add(
            name=field,
            number=number,
            label=FieldDescriptorProto.LABEL_OPTIONAL,
            type=getattr(FieldDescriptorProto, "TYPE_" + kind.upper()),
        )


def protobuf_messages() -> Messages:
    """Return protobuf's classes of the messages. Needs protobuf installed."""
    from google.protobuf import descriptor_pool, message_factory, symbol_database

    pool = descriptor_pool.Default()
    pool.AddSerializedFile(
        file_descriptor().SerializeToString()
    )  # once more is no fault: it is there already
    found = [pool.FindMessageTypeByName("%s.%s" % (PACKAGE, name)) for name in MESSAGES]
    if hasattr(message_factory, "GetMessageClass"):
        return Messages(*map(message_factory.GetMessageClass, found))
    return Messages(*map(symbol_database.Default().GetPrototype, found))  # protobuf before 4.22


def betterproto_messages() -> Messages:
    """Return betterproto's classes of the messages. Needs betterproto installed."""
    import betterproto

    @dataclass(eq=False, repr=False)
    class HelloRequest(betterproto.Message):  # type: ignore[misc]  # Any where it is not installed
        name: str = betterproto.string_field(1)
        sleep_millisecond: int = betterproto.int32_field(2)
        body: bytes = betterproto.bytes_field(3)

    @dataclass(eq=False, repr=False)
    class HelloReply(betterproto.Message):  # type: ignore[misc]  # Any where it is not installed
        message: str = betterproto.string_field(1)
        body: bytes = betterproto.bytes_field(2)

    return Messages(HelloRequest, HelloReply)

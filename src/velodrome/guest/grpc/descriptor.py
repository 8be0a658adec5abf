"""`helloworld.proto` as protobuf knows it at run time: a FileDescriptorProto, and the classes made from it.

Generated code holds the same descriptor, serialized by protoc, adds it to the same pool and makes the classes
from there; so messages cost exactly what generated ones cost, and no compiler is needed where a server runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Sequence, Tuple

from velodrome.guest.grpc.greeter import METHODS, SERVICE

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
        told = service.method.add(name=method.name)
        told.input_type, told.output_type = (".%s.%s" % (PACKAGE, message) for message in MESSAGES)
        # Left unset where false, as protoc does: what is unset is not on the wire.
        if method.takes_stream:
            told.client_streaming = True
        if method.gives_stream:
            told.server_streaming = True
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

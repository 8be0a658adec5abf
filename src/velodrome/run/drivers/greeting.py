"""What is said to a gRPC server of `guest/grpc/helloworld.proto` by tools that make messages of JSON."""

import base64
import json
from pathlib import Path
from urllib.parse import urlsplit

import velodrome.guest
from velodrome.guest.grpc.greeter import NAME, PIECE_BYTES
from velodrome.run.drivers.driver import Target

PROTO = Path(velodrome.guest.__path__[0]) / "grpc" / "helloworld.proto"


def is_grpc(target: Target) -> bool:
    """Whether a server speaks gRPC."""
    return target.call is not None


def address(target: Target) -> str:
    """Return `host:port`."""
    return urlsplit(target.url).netloc


def as_json(target: Target) -> str:
    """Return the message, or for a client-streaming call the list of them, as JSON of its fields."""
    if target.call is None or target.call.kind != "client_streaming":
        return json.dumps(_message(target.body))
    pieces = [target.body[at : at + PIECE_BYTES] for at in range(0, len(target.body), PIECE_BYTES)]
    return json.dumps([_message(piece) for piece in pieces or [b""]])


def _message(body: bytes) -> dict[str, str]:
    return {"name": NAME, **({"body": base64.b64encode(body).decode()} if body else {})}

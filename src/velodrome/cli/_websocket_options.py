"""The options of `velodrome load ws://…`: its mode and message, and what they say together."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from velodrome.cli._declared import Option
from velodrome.model.errors import UsageError
from velodrome.plan.asked import file_or_text

Mode = Literal["echo", "connect", "broadcast"]
SCHEMES = ("ws", "wss")

WsMode = Annotated[
    Mode | None,
    Option(
        help="ws://: a message until it is back, a connection until it stands, or a message to all (echo)."
    ),
]
Message = Annotated[
    str | None, Option(help="ws://: the message, @file, or its size in bytes; {id} takes a number.")
]
WsAtOnce = Annotated[
    int | None, Option(help="ws://, broadcast: messages on their way at once (1; open loop 1000).")
]


@dataclass(frozen=True)
class Conversation:
    """The `websocket` field of a load's specification, and the message that goes as its body."""

    spec: dict[str, Any]
    message: bytes


def said(
    url: str, mode: Mode | None, message: str | None, at_once: int | None, body: str | None
) -> Conversation | None:
    """Return what is said over WebSockets, or None for another protocol.

    Raises UsageError for options that do not go with the URL.
    """
    if url.partition("://")[0].lower().removesuffix("+unix") not in SCHEMES:
        for option, value in (("--ws-mode", mode), ("--message", message), ("--ws-at-once", at_once)):
            if value is not None:
                raise UsageError(f"{option} is for WebSockets: give a URL that begins with ws://")
        return None
    if body is not None:
        raise UsageError("--body is for HTTP: the message of a WebSocket is --message")
    spec: dict[str, Any] = {"mode": mode or "echo"}
    if at_once is not None:
        spec["at_once"] = at_once
    if message is not None and message.isascii() and message.isdigit():
        spec["message_bytes"] = int(message)
        message = None
    return Conversation(spec, file_or_text.read("--message", message) or b"")

"""The options of `velodrome load ws://…`: its mode and message, and what they say together."""

from __future__ import annotations

from velodrome.cli._declared import Annotated, Option
from velodrome.model.errors import UsageError
from velodrome.plan.asked import file_or_text

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from typing import Any

SCHEMES = ("ws", "wss")

WsMode = Annotated[
    str | None,
    Option(
        one_of=("echo", "connect", "broadcast"),
        help="ws://: a message until it is back, a connection until it stands, or a message to all (echo).",
    ),
]
Message = Annotated[
    str | None, Option(help="ws://: the message, @file, or its size in bytes; {id} takes a number.")
]
WsAtOnce = Annotated[
    int | None, Option(help="ws://, broadcast: messages on their way at once (1; open loop 1000).")
]


class Conversation:
    """The `websocket` field of a load's specification, and the message that goes as its body."""

    def __init__(self, spec: dict[str, Any], message: bytes) -> None:
        self.spec, self.message = spec, message


def said(
    url: str, mode: str | None, message: str | None, at_once: int | None, body: str | None
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

"""One request to a server before any load, and what came back: right, wrong and how, or not yet.

The engine sends it on a fresh connection (`ask_grpc`, `ask_chat`, `ask_mix`). `answer_form` sends a request by hand, to
see the head as the server wrote it: what a library that reads it would forgive and not report.
"""

import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from velodrome.model.app import Request
from velodrome.model.errors import EngineError
from velodrome.model.measurement import AnswerForm
from velodrome.run import engine
from velodrome.run.calls import ChatCall, DescribedCall, GrpcCall
from velodrome.run.drivers import load_document
from velodrome.run.drivers.driver import Target
from velodrome.run.engine import LoadSpec

UNFINISHED = "it takes the connection but does not finish an answer"


@dataclass(frozen=True)
class Wrong:
    """An answer came and it is not the right answer."""

    what: str


@dataclass(frozen=True)
class Partly:
    """Of several requests enough were answered right, and some were not."""

    what: str


@dataclass(frozen=True)
class Words:
    """How a protocol reports a try that failed."""

    foreign: str
    """Before what does not speak it."""
    silent: str
    """In what the engine says of a server that takes the connection and sends nothing: another matter than a
    slow server.
    """
    broken: str
    """What breaks off when the connection does."""


def outcome_of(document: Mapping[str, Any], words: Words) -> str | Wrong | None:
    """Return what a load of one request came to: None for a right answer, a wrong one, or why there is none."""
    outcome = next((name for name, count in document["outcomes"].items() if count), "unfinished")
    examples = document["examples"]
    what = examples[0]["text"] if examples else UNFINISHED
    if outcome == "ok":
        return None
    if outcome in ("timeout", "unfinished"):
        return what if words.silent in what else UNFINISHED
    if outcome == "refused":
        return "nothing listens on its port" if "nothing listens" in what else what
    if outcome == "reset":
        return f"{words.broken} ({what})"
    return Wrong(words.foreign + what if outcome == "bad_protocol" else f"it answers wrongly: {what}")


def once(
    target: Target,
    words: Words,
    timeout_s: float,
    **request: Any,
) -> str | Wrong | None:
    """Send one request: None for a correct response, a wrong one, or why there is none.

    `request` are the fields of `LoadSpec` that say what is sent, beside where it goes.
    """
    spec = LoadSpec(
        url=target.url,
        headers=target.headers,
        connections=1,
        requests=1,
        timeout_s=timeout_s,
        drain_s=0.0,
        transport="epoll",
        allow_target=target.allow,
        **request,
    )
    try:
        return outcome_of(engine.load(spec), words)
    except EngineError as error:  # a machine without a free descriptor has some later
        return str(error)


GRPC_WORDS = Words(foreign="what it answers is not gRPC: ", silent="SETTINGS", broken="the call breaks off")


def ask_grpc(target: Target, call: GrpcCall | DescribedCall, timeout_s: float) -> str | Wrong | None:
    """Make one call on a fresh connection: None for a right answer, a wrong one, or why there is none."""
    return once(target, GRPC_WORDS, timeout_s, grpc=call.spec, body=call.sent, expect_body=call.expected)


CHAT_WORDS = Words(
    foreign="what it answers is no WebSocket: ",
    silent="opening handshake",
    broken="the WebSocket breaks off",
)


def ask_chat(target: Target, chat: ChatCall, timeout_s: float) -> str | Wrong | None:
    """Connect and send one message: None where it comes back, a wrong answer, or why there is none.

    Alone in a room, a member gets its own messages: a room is checked as an echo is.
    """
    echo = {"mode": "echo", "message_bytes": chat.message_bytes}
    return once(target, CHAT_WORDS, timeout_s, websocket=echo)


HTTP_WORDS = Words(
    foreign="what it answers is not HTTP: ", silent="handshake", broken="the connection breaks"
)
ENOUGH = 0.5
"""Share of the mix, by weight, that has to be answered right: below, its load would be one of failures. What fails of
the rest is reported, and counted by the load: an item of a log may be gone from the database that is read.
"""


def ask_mix(target: Target, timeout_s: float) -> str | Wrong | Partly | None:
    """Ask each once: None where all is answered right, what is wrong of it, or why there is no answer."""
    until = time.monotonic() + timeout_s
    wrong: list[tuple[float, str]] = []
    for request in target.mix:
        left_s = until - time.monotonic()
        if left_s <= 0:
            return UNFINISHED
        answer = _answer_to(target, request, left_s)
        if isinstance(answer, str):
            return answer
        if isinstance(answer, Wrong):
            wrong.append((request.weight, f"{request.name}: {answer.what}"))
    if not wrong:
        return None
    most = max(wrong)[1]
    what = most if len(wrong) == 1 else f"{most} ({len(wrong)} of {len(target.mix)} requests are wrong)"
    lost = sum(weight for weight, _ in wrong)
    enough = lost <= (1 - ENOUGH) * sum(request.weight for request in target.mix)
    return Partly(what) if enough else Wrong(what)


def _answer_to(target: Target, request: Request, timeout_s: float) -> str | Wrong | None:
    mix = load_document.mix_document([request])
    return once(target, HTTP_WORDS, timeout_s, mix=mix, template=request.has_templates)


MOST_BYTES = 65_536
"""Of a head; a longer head has been refused as an answer before."""
QUIET_S = 1.0
"""Nothing more comes from a server that has sent nothing for so long behind its head."""
_LENGTH = re.compile(rb"^content-length:[ \t]*(\d{1,15})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)


def answer_form(target: Target, patience_s: float) -> AnswerForm | None:
    """Ask once over HTTP/1.1 and look at the head as it is; None if none came in time."""
    parts = urlsplit(target.url)
    lines = [f"{target.method} {target.path} HTTP/1.1", f"Host: {parts.netloc}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in target.headers]
    lines += [f"Content-Length: {len(target.body)}"] if target.body else []
    request = "\r\n".join([*lines, "", ""]).encode() + target.body
    received = b""
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), patience_s) as connection:
            connection.sendall(request)
            while head_of(received) is None and len(received) < MOST_BYTES:
                piece = connection.recv(MOST_BYTES)
                if not piece:
                    return None
                received += piece
            _read_to_its_end(connection, received)
    except OSError:  # reset behind its head, perhaps: what was seen was seen
        pass
    head = head_of(received)
    return form_of(head) if head is not None else None


def _read_to_its_end(connection: socket.socket, received: bytes) -> None:
    """Read the rest of an answer, because a close with data unread would reset the connection.

    The end is where the head says it is, or the server's close; a server that keeps the connection against our request
    is not waited for long.
    """
    head = head_of(received) or received
    length = _LENGTH.search(head)
    behind = received[len(head) :]
    blank = 2 if behind.startswith(b"\r\n") else 1
    left = int(length[1]) - (len(behind) - blank) if length else None
    connection.settimeout(QUIET_S)
    while left is None or left > 0:
        piece = connection.recv(MOST_BYTES)
        if not piece:
            return
        left = None if left is None else left - len(piece)


def head_of(received: bytes) -> bytes | None:
    """Return the lines of a head with their ends, without the blank line, or None if it is not whole."""
    ends = [at + 1 for mark in (b"\n\r\n", b"\n\n") if (at := received.find(mark)) >= 0]
    return received[: min(ends)] if ends else None


def form_of(head: bytes) -> AnswerForm:
    """Return what a whole head shows."""
    lines = head.split(b"\n")[:-1]
    names = {line.partition(b":")[0].strip().lower() for line in lines[1:]}
    return AnswerForm(
        length_told=bool(names & {b"content-length", b"transfer-encoding"}),
        line_ends="CRLF" if all(line.endswith(b"\r") for line in lines) else "LF",
    )

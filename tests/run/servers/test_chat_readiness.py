"""A server that holds WebSockets is ready when a message came back; anything else is reported as what came."""

import base64
import hashlib
import socket
import time

import pytest
from tests.run.servers.listening import Handler, listening, says

from velodrome.guest import catalog
from velodrome.model.measurement import FailureKind
from velodrome.run.calls import MESSAGE_BYTES
from velodrome.run.drivers.driver import Target
from velodrome.run.servers import NotReady, Ready, await_right_answer, fresh_port

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
RECIPE = catalog.recipe("chat-echo")


def readiness_of(url: str, deadline_s: float = 1.0) -> Ready | NotReady:
    target = Target.of_recipe(url.replace("http", "ws"), RECIPE)
    return await_right_answer(target, lambda: None, time.monotonic(), deadline_s)


def answering(answer: bytes) -> Handler:
    """Shake hands, and send `answer` when a message has come."""

    def handler(connection: socket.socket, head: bytes) -> None:
        (line,) = [line for line in head.split(b"\r\n") if line.startswith(b"Sec-WebSocket-Key: ")]
        accept = base64.b64encode(hashlib.sha1(line.partition(b": ")[2] + GUID).digest())
        connection.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        connection.recv(65536)
        connection.sendall(answer)
        connection.recv(65536)

    return handler


def test_a_message_that_comes_back_is_a_right_answer() -> None:
    with listening(answering(bytes([0x81, MESSAGE_BYTES]) + b"x" * MESSAGE_BYTES)) as url:
        assert isinstance(readiness_of(url), Ready)


@pytest.mark.parametrize(
    ("handler", "sentence"),
    [
        (
            says(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n"),
            "it answers wrongly: cannot connect: the server answers the opening handshake with 'HTTP/1.1 426",
        ),
        (says(b"220 mail.example ESMTP ready\r\n"), "what it answers is no WebSocket"),
        (answering(b"\x81\x02no"), "it answers wrongly: a message of 2 bytes where 84 are right"),
        (answering(b"\xf1\x00"), "an extension that was not agreed upon"),
    ],
)
def test_a_wrong_answer_is_reported_with_what_came(handler: Handler, sentence: str) -> None:
    with listening(handler) as url:
        found = readiness_of(url, deadline_s=2.5)
    assert isinstance(found, NotReady)
    assert sentence in found.reason
    assert found.failure is FailureKind.WRONG_ANSWER


@pytest.mark.parametrize(
    ("handler", "sentence"),
    [
        (lambda connection, head: time.sleep(0.8), "did not answer the opening handshake within"),
        (lambda connection, head: None, "closed the connection during the opening handshake"),
        (answering(b""), "does not finish an answer"),
        (
            answering(b"\x88\x02\x03\xf3"),
            "the WebSocket breaks off (the server closed the WebSocket: code 1011",
        ),
    ],
)
def test_no_answer_in_time_is_reported_as_such(handler: Handler, sentence: str) -> None:
    with listening(handler) as url:
        found = readiness_of(url, deadline_s=0.5)
    assert isinstance(found, NotReady)
    assert sentence in found.reason
    assert found.failure is FailureKind.NEVER_ANSWERED


def test_a_port_where_nobody_listens_is_reported_as_such() -> None:
    found = readiness_of(f"http://127.0.0.1:{fresh_port()}/", deadline_s=0.3)
    assert found == NotReady(
        FailureKind.NEVER_ANSWERED, "no answer within 0.3 s: nothing listens on its port"
    )

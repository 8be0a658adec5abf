"""A gRPC server is ready when it has given a right reply; anything else is reported as what came."""

import socket
import time

import pytest
from tests.run import made
from tests.run.servers.listening import Handler, listening, says

from velodrome.model.measurement import FailureKind
from velodrome.run.drivers.driver import Target
from velodrome.run.servers import NotReady, Ready, await_right_answer, fresh_port
from velodrome.run.supervision.ward import Exit

SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
CLOSED_AS_TOO_MANY = b"\0\0\x19\x07\0\0\0\0\0" + b"\0\0\0\0\0\0\0\x0benhance your calm"


def readiness_of(url: str, deadline_s: float = 1.0) -> Ready | NotReady:
    target = Target.of_recipe(url.replace("http", "grpc") + "helloworld.Greeter/SayHello", made.HELLO)
    return await_right_answer(target, lambda: None, time.monotonic(), deadline_s)


def headers_only(status: bytes, message: bytes) -> bytes:
    """An answer without a message: literal fields, nothing from any table but `:status: 200`."""
    block = b"\x88"
    for name, value in ((b"grpc-status", status), (b"grpc-message", message)):
        block += b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
    return bytes([0, 0, len(block), 1, 5, 0, 0, 0, 1]) + block


def answering(answer: bytes) -> Handler:
    """Say SETTINGS, and `answer` when a call has come."""

    def handler(connection: socket.socket, head: bytes) -> None:
        connection.sendall(SETTINGS)
        heard = head
        while b"world" not in heard:
            heard += connection.recv(65536)
        connection.sendall(answer)
        time.sleep(0.3)

    return handler


@pytest.mark.parametrize(
    ("handler", "sentence"),
    [
        (
            says(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
            "not gRPC: cannot connect: the server answers HTTP/1.1, not HTTP/2: 'HTTP/1.1 400 Bad Request",
        ),
        (
            says(b"220 mail.example ESMTP ready\r\n"),
            "the server does not speak HTTP/2: it begins with '220 mail",
        ),
        (
            answering(headers_only(b"12", b"no%20such")),
            "it answers wrongly: grpc-status 12 UNIMPLEMENTED: no such",
        ),
        (answering(headers_only(b"0", b"")), "it answers wrongly: 0 messages where 1 are right"),
        (
            answering(b"\0\0\x05\x03\0\0\0\0\x01xxxxx"),
            "what it answers is not gRPC: the server sent a bad",
        ),
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
        (lambda connection, head: time.sleep(0.8), "sent no SETTINGS within"),
        (lambda connection, head: None, "closed the connection before its SETTINGS came"),
        (answering(b""), "does not finish an answer"),
        (says(SETTINGS + CLOSED_AS_TOO_MANY), "ENHANCE_YOUR_CALM ('enhance your calm')"),
    ],
)
def test_no_answer_in_time_is_reported_as_such(handler: Handler, sentence: str) -> None:
    with listening(handler) as url:
        began = time.monotonic()
        found = readiness_of(url, deadline_s=0.5)
        assert time.monotonic() - began < 8
    assert isinstance(found, NotReady)
    assert sentence in found.reason
    assert found.failure is FailureKind.NEVER_ANSWERED


def test_a_port_where_nobody_listens_is_reported_as_such() -> None:
    found = readiness_of(f"http://127.0.0.1:{fresh_port()}/", deadline_s=0.3)
    assert found == NotReady(
        FailureKind.NEVER_ANSWERED, "no answer within 0.3 s: nothing listens on its port"
    )


def test_a_dead_child_is_noticed_at_once() -> None:
    target = Target.of_recipe("grpc://127.0.0.1:9/helloworld.Greeter/SayHello", made.HELLO)
    began = time.monotonic()
    found = await_right_answer(target, lambda: Exit(-11, 0, 0), began, 60.0)
    assert time.monotonic() - began < 8
    assert isinstance(found, NotReady)
    assert "SIGSEGV" in found.reason

"""Ready means answered rightly, whole and in time; anything else is reported as what came."""

import socket
import time

import pytest
from tests.run import made
from tests.run.servers.listening import Handler, listening, says

from velodrome.guest.recipe import Recipe, Stream
from velodrome.model.measurement import FailureKind
from velodrome.run.drivers.driver import Target
from velodrome.run.servers import NotReady, Ready, await_right_answer
from velodrome.run.supervision.ward import Exit


def living() -> None:
    return None


def readiness_of(
    url: str, right: bytes = b"right", deadline_s: float = 2.0, **more: object
) -> Ready | NotReady:
    target = Target(url, expect_body=right, expect_status=200, **more)  # type: ignore[arg-type]
    return await_right_answer(target, living, time.monotonic(), deadline_s)


@pytest.mark.parametrize(
    "pieces",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright",),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"ri", b"ght"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"2\r\nri\r\n", b"3\r\nght\r\n0\r\n\r\n"),
        (b"HTTP/1.0 200 OK\r\n\r\nright",),
        (b"HTTP/1.0 200 OK\nContent-Length: 5\n\nright",),
    ],
)
def test_a_right_answer_in_any_form_is_ready(pieces: tuple[bytes, ...]) -> None:
    with listening(says(*pieces)) as url:
        assert isinstance(readiness_of(url), Ready)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nnone", "it answers status 404, not 200: «none»"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nright!", "it answers 6 bytes, not 5: «right!»"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nrig\x00\x1b",
            "its answer differs from byte 3 on: «\\x00\\x1b»",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nright", "its answer breaks off after 5 of 50 bytes"),
        (b"SSH-2.0-OpenSSH\r\n", "what it answers is not HTTP: «SSH-2.0-OpenSSH"),
        (
            b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000 + b"\r\n",
            "what it answers is not HTTP: «got more than 100",
        ),
        (b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 5_000_000, "it answers 65541 bytes, not 5: «xxxx"),
    ],
)
def test_a_wrong_answer_is_reported_with_what_came(answer: bytes, sentence: str) -> None:
    with listening(says(answer)) as url:
        found = readiness_of(url, deadline_s=5.0)
    assert isinstance(found, NotReady)
    assert found.failure is FailureKind.WRONG_ANSWER
    assert sentence in found.reason
    assert len(found.reason) < 600


@pytest.mark.parametrize(
    ("handler", "sentence"),
    [
        (lambda connection, head: None, "closes the connection without an answer"),
        (lambda connection, head: time.sleep(0.6), "does not finish an answer"),
        (says(*[b"HTTP/1.1 200 OK\r\n"] + [b"A: b\r\n"] * 400, pause_s=0.05), "does not finish an answer"),
    ],
)
def test_no_answer_in_time_is_reported_as_such(handler: Handler, sentence: str) -> None:
    with listening(handler) as url:
        began = time.monotonic()
        found = readiness_of(url, deadline_s=0.5)
        assert time.monotonic() - began < 8
    assert isinstance(found, NotReady)
    assert found.failure is FailureKind.NEVER_ANSWERED
    assert sentence in found.reason


def test_a_dead_child_is_noticed_at_once() -> None:
    target = Target("http://127.0.0.1:9/", expect_body=b"")
    ended = Exit(-11, 0, 0)
    began = time.monotonic()
    found = await_right_answer(target, lambda: ended, began, 60.0)
    assert time.monotonic() - began < 8
    assert found == NotReady(FailureKind.START, "its process ended before it answered: killed by SIGSEGV")


def test_an_upload_sends_its_body_and_method() -> None:
    received: list[bytes] = []

    def handler(connection: socket.socket, head: bytes) -> None:
        while len(head.partition(b"\r\n\r\n")[2]) < made.MIXED.upload_bytes:
            head += connection.recv(65536)
        received.append(head)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n" + made.MIXED.answer())

    with listening(handler) as url:
        target = Target.of_recipe(url, made.MIXED)
        assert isinstance(await_right_answer(target, living, time.monotonic(), 5.0), Ready)
    assert received[0].startswith(b"POST / HTTP/1.1\r\n")
    assert received[0].endswith(made.MIXED.upload)


def test_an_answer_that_comes_before_the_upload_was_read_is_an_answer() -> None:
    def handler(connection: socket.socket, head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nright")
        connection.close()  # with most of the body unread, which resets the connection

    with listening(handler) as url:
        found = readiness_of(url, method="POST", body=b"x" * 16_000_000)
    assert isinstance(found, Ready), found


def test_a_stream_is_read_to_its_end() -> None:
    recipe = Recipe("stream", "streams", (Stream(chunks=3, chunk_bytes=4, every_ms=50),))
    chunk = b"4\r\n" + recipe.answer()[:4] + b"\r\n"
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with listening(says(head, chunk, chunk, chunk, b"0\r\n\r\n", pause_s=0.05)) as url:
        found = await_right_answer(Target.of_recipe(url, recipe), living, time.monotonic(), 5.0)
    assert isinstance(found, Ready)
    assert found.boot_s >= 0.2

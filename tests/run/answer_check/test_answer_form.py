"""The head of an answer is reported as it is, though every client forgives it."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from velodrome.model.measurement import AnswerForm
from velodrome.run import answer_check
from velodrome.run.answer_check import answer_form as seen
from velodrome.run.answer_check import head_of
from velodrome.run.drivers.driver import Target

PATIENCE_S = 10.0


@contextmanager
def answering(*pieces: bytes, read: int = 65536, keeps: bool = False) -> Iterator[Target]:
    """A server that answers one request with these pieces and closes, or keeps the connection against the asking."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection = listener.accept()[0]
            with connection:
                connection.recv(read)
                for piece in pieces:
                    connection.sendall(piece)
                if keeps:
                    connection.recv(read)  # until the client closes

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield Target(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        thread.join(PATIENCE_S)


@pytest.mark.parametrize(
    ("pieces", "length_told", "line_ends"),
    [
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",), True, "CRLF"),
        ((b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",), True, "CRLF"),
        ((b"HTTP/1.1 200 OK\nContent-Type: text/html\n\nok",), False, "LF"),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\nok",), True, "LF"),
        ((b"HTTP/1.1 200 OK\r\n\r\nContent-Length: 2\n",), False, "CRLF"),
        ((b"HTTP/1.1 200 OK\r\nConte", b"nt-Length: 1\r\n\r", b"\nx"), True, "CRLF"),
    ],
)
def test_length_and_ends_of_lines_are_seen(
    pieces: tuple[bytes, ...], length_told: bool, line_ends: str
) -> None:
    with answering(*pieces) as target:
        assert seen(target, PATIENCE_S) == AnswerForm(length_told, line_ends)


@pytest.mark.parametrize("length", [b"Content-Length: 2\r\n", b"", b"Content-Length: 2000\r\n"])
def test_a_server_that_keeps_the_connection_is_not_waited_for(
    length: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_check, "QUIET_S", 0.1)
    began = time.monotonic()
    with answering(b"HTTP/1.1 200 OK\r\n" + length + b"\r\nok", keeps=True) as target:
        assert seen(target, PATIENCE_S) == AnswerForm(bool(length), "CRLF")
    assert time.monotonic() - began < PATIENCE_S / 2


def test_no_whole_head_has_no_form() -> None:
    with answering(b"HTTP/1.1 200 OK\r\n") as target:
        assert seen(target, PATIENCE_S) is None
    assert seen(target, PATIENCE_S) is None, "nobody listens"


def test_a_reset_behind_the_head_takes_nothing_away() -> None:
    with answering(b"HTTP/1.1 200 OK\nA: b\n\nbody", read=1) as target:
        form = seen(target, PATIENCE_S)
    assert form in (AnswerForm(False, "LF"), None), "the reset may overtake the head"


def test_a_head_ends_at_the_first_blank_line() -> None:
    assert head_of(b"a\r\nb: c\r\n\r\nd\n\n") == b"a\r\nb: c\r\n"
    assert head_of(b"a\nb: c\n\nd\r\n\r\n") == b"a\nb: c\n"
    assert head_of(b"a\r\nb: c\r\n") is None

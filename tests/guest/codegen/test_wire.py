"""Heads of answers to the byte, and what a request's head says."""

import pytest

from velodrome.guest.codegen.wire import answers, field, head_bytes, parse_head, split_size
from velodrome.guest.recipe import Body, Recipe
from velodrome.guest.services.hello import recipe as hello


def test_hello_is_84_bytes_on_the_wire_whether_the_connection_is_kept_or_not() -> None:
    kept, closing = answers(hello)
    assert (len(kept), len(closing)) == (84, 84)
    assert b"Connection: close" in closing
    assert b"Connection" not in kept


def test_any_size_on_the_wire_comes_out_to_the_byte() -> None:
    for size in (*range(57, 1200), 10_057, 10_058, 10_059, 10_060, 100_061, 100_062, 100_063):
        for whole in answers(Recipe("x", "x", (Body(size, on_wire=True),))):
            head, _, body = whole.partition(b"\r\n\r\n")
            assert len(whole) == size
            assert int(field(head.lower(), b"\r\ncontent-length:")) == len(body), size
            assert head_bytes(size) == size - len(body)


def test_a_size_that_the_head_alone_exceeds_is_refused_with_the_length_of_the_head() -> None:
    with pytest.raises(ValueError, match="56 bytes on the wire; the head alone takes 57"):
        split_size(56)


@pytest.mark.parametrize(
    ("sentence", "head", "says"),
    [
        ("kept by default", b"GET / HTTP/1.1\r\nHost: a", (0, False, False, 0)),
        ("the client closes", b"GET / HTTP/1.1\r\nconnection:close", (0, True, False, 0)),
        ("HTTP/1.0 closes", b"GET / HTTP/1.0\r\nHost: a", (0, True, False, 0)),
        ("a path may say HTTP/1.0", b"GET /?HTTP/1.0 HTTP/1.1\r\nHost: a", (0, False, False, 0)),
        ("a body", b"GET / HTTP/1.1\r\nContent-Length: 12\r\nA: b", (12, False, False, 0)),
        ("no space, odd case", b"GET / HTTP/1.1\r\ncOnTeNt-LeNgTh:12", (12, False, False, 0)),
        (
            "waits for a 100",
            b"GET / HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue",
            (1, False, True, 0),
        ),
        ("another method", b"HEAD / HTTP/1.1\r\nHost: a", (0, True, False, 405)),
        ("a chunked body", b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked", (0, True, False, 411)),
        ("no number", b"GET / HTTP/1.1\r\nContent-Length: -1", (0, True, False, 400)),
        ("absurdly long", b"GET / HTTP/1.1\r\nContent-Length: 99999999999", (0, True, False, 413)),
    ],
)
def test_a_request_head_is_understood(sentence: str, head: bytes, says: tuple[int, bool, bool, int]) -> None:
    assert parse_head(head, b"GET ") == says, sentence

"""Requests heard in pieces are the requests that were sent, wherever the pieces end."""

import random

import pytest

from velodrome.guest.codegen.wire import LONGEST_HEAD
from velodrome.guest.raw.connection import ANSWER, GO_ON, Hearing, Request

PLAIN = b"POST / HTTP/1.1\r\nHost: a\r\n\r\n"
LAST = b"POST / HTTP/1.1\r\nConnection: close\r\n\r\n"


def upload(body: bytes, *lines: bytes) -> bytes:
    head = [b"POST / HTTP/1.1", b"Content-Length: %d" % len(body), *lines, b"", b""]
    return b"\r\n".join(head) + body


def heard(pieces: list[bytes]) -> list[Request]:
    """Return the requests of a stream that comes in these pieces, up to the first refusal."""
    hearing, found = Hearing(b"POST "), []
    for piece in pieces:
        hearing.hear(piece)
        while (request := hearing.next()) is not None:
            found.append(request)
            if request[0] not in (ANSWER, GO_ON):
                return found
    return found


@pytest.mark.parametrize("seed", range(50))
def test_any_stream_of_requests_cut_anywhere_is_heard_as_it_was_sent(seed: int) -> None:
    draw = random.Random(seed)
    bodies = [draw.randbytes(draw.choice([0, 1, 3, 4, 1000])) for _ in range(draw.randint(1, 8))]
    waits = [draw.random() < 0.3 for _ in bodies]
    stream = b"".join(
        upload(body, *([b"Expect: 100-continue"] if wait else []))
        for body, wait in zip(bodies, waits, strict=True)
    )
    cuts = sorted(draw.choices(range(len(stream) + 1), k=draw.randint(0, 40)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    expected: list[Request] = []
    for body, wait in zip(bodies, waits, strict=True):
        expected += [(GO_ON, b"", False)] * wait + [(ANSWER, body, False)]
    assert heard(pieces) == expected


def test_a_body_may_look_like_a_request() -> None:
    assert heard([upload(PLAIN) + PLAIN]) == [(ANSWER, PLAIN, False), (ANSWER, b"", False)]


def test_the_last_request_says_that_it_is() -> None:
    assert heard([PLAIN + LAST]) == [(ANSWER, b"", False), (ANSWER, b"", True)]


@pytest.mark.parametrize(
    ("stream", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 405),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST / HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n", 413),
        (b"x" * (LONGEST_HEAD + 1), 431),
    ],
)
def test_what_cannot_be_served_is_refused_after_what_could_be(stream: bytes, status: int) -> None:
    assert heard([PLAIN + stream]) == [(ANSWER, b"", False), (status, b"", True)]


def test_bytes_of_any_kind_do_no_harm() -> None:
    for seed in range(200):
        draw = random.Random(seed)
        noise = draw.randbytes(draw.randint(0, 300)) + draw.choice([b"", b"\r\n\r\n"])
        assert all(status != GO_ON for status, _, _ in heard([noise]))


def test_whether_anything_is_left_is_known() -> None:
    whole, begun, uploading = (Hearing(b"POST ") for _ in range(3))
    whole.hear(PLAIN)
    begun.hear(PLAIN + b"PO")
    uploading.hear(upload(b"abc")[:-1])
    assert [hearing.next() is None for hearing in (whole, begun, uploading)] == [False, False, True]
    assert [hearing.pending for hearing in (whole, begun, uploading)] == [False, True, True]
    assert [hearing.in_body for hearing in (whole, begun, uploading)] == [False, False, True]

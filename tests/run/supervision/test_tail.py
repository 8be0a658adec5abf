"""The end of what a process printed has no secrets in it, also where it was cut off."""

import os

from velodrome.model import secrets
from velodrome.model.secrets import MARK
from velodrome.run.supervision.ward import KEPT_BYTES, LINE_CHARACTERS, Tail

SECRET = "correct-horse-battery-staple"


def lines_of(printed: bytes) -> tuple[str, ...]:
    read, write = os.pipe()
    tail = Tail(read)
    while printed:
        printed = printed[os.write(write, printed) :]
    os.close(write)
    assert tail.settle(10)
    return tail.lines()


def test_secrets_are_masked_before_a_line_is_cut() -> None:
    secrets.add(SECRET)
    (line,) = lines_of(b"x" * (LINE_CHARACTERS - 10) + SECRET.encode() + b"y" * 50)
    assert line == "x" * (LINE_CHARACTERS - 10) + MARK + "y" * 7 + "…"


def test_what_is_left_of_a_secret_at_the_beginning_is_left_out() -> None:
    secrets.add(SECRET)
    secret = SECRET.encode()
    for whole in (b"\nnext", b""):
        printed = b"begin " + secret + b"z" * (KEPT_BYTES - 10 - len(whole)) + whole
        sentence = "".join(lines_of(printed))
        assert "staple" not in sentence
        assert sentence

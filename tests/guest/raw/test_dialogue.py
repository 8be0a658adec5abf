"""Events are handed to a connection: it answers in order, never more than its client takes, and ends as it should."""

from collections.abc import Callable
from typing import Any

from velodrome.guest.raw.connection import GONE, LINGER, READ, WRITE, Dialogue, Handler

GET = b"GET / HTTP/1.1\r\n\r\n"
LAST = b"GET / HTTP/1.0\r\n\r\n"


class Connection(Dialogue):
    """Its client takes as many bytes as it was given room for."""

    def __init__(self, respond: Callable[[Any, bytes, bool], None], room: int = 1 << 30) -> None:
        super().__init__(Handler(respond, b"GET ", False))
        self.room = room
        self.taken = b""
        self.shuts = 0

    def sendall(self, data: bytes) -> None:
        self.unsent = bytes(self.unsent) + data
        self._push()

    def take(self, room: int) -> int:
        self.room += room
        self._push()
        return WRITE if self.unsent else self.go_on()

    def _push(self) -> None:
        data = bytes(self.unsent)
        self.taken += data[: self.room]
        self.unsent, self.room = data[self.room :], self.room - len(data[: self.room])

    def shut(self) -> None:
        self.shuts += 1


def numbered() -> Callable[[Any, bytes, bool], None]:
    count = iter(range(1000))

    def respond(connection: Any, body: bytes, closing: bool) -> None:
        connection.sendall(b"<%03d>" % next(count))

    return respond


def test_no_more_is_answered_than_the_client_takes() -> None:
    connection = Connection(numbered(), room=7)
    assert connection.arrived(GET * 4) == WRITE
    assert connection.taken == b"<000><0"
    assert connection.take(2) == WRITE
    assert connection.taken == b"<000><001"
    assert connection.take(100) == READ
    assert connection.taken == b"<000><001><002><003>"


def test_a_last_request_ends_it_once_its_answer_is_gone_and_nothing_behind_it_is_answered() -> None:
    connection = Connection(numbered(), room=3)
    assert connection.arrived(LAST + GET) == WRITE
    assert connection.take(2) == GONE
    assert connection.taken == b"<000>"


def test_a_refused_client_is_heard_out_but_not_listened_to() -> None:
    connection = Connection(numbered())
    assert connection.arrived(GET + b"DELETE / HTTP/1.1\r\n\r\n") == LINGER
    assert connection.taken.startswith(b"<000>HTTP/1.1 405 ")
    assert connection.shuts == 1
    assert connection.arrived(GET) == READ
    assert connection.shuts == 1
    assert connection.taken.count(b"<") == 1


def test_whether_it_will_hear_next_is_known() -> None:
    after_one, after_two, after_last = (Connection(numbered(), room=0) for _ in range(3))
    after_one.arrived(GET)
    after_two.arrived(GET + GET)
    after_last.arrived(LAST)
    assert after_one.hears_next
    assert not after_two.hears_next
    assert not after_last.hears_next

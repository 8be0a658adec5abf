"""Clients of a probe: connections that are opened, written to, left alone and ended when the probe says so.

    async with Client(where) as client:
        answer = await client.request()     # Answer(outcome="ok", seconds=0.0004)
        await asyncio.sleep(5.0)
        client.has_ended                    # whether the server has ended it

A load generator sends as its schedule has it; a probe wants one connection to do one odd thing at one moment. These are
for some hundred requests, not for load.
"""

import asyncio
import itertools
import secrets
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from velodrome.model.app import Content
from velodrome.model.diagnosis import Met
from velodrome.model.errors import NoServerError
from velodrome.model.quantity import significant
from velodrome.run import engine
from velodrome.run.drivers.driver import Target

PATIENCE_S = 5.0
MOST_BYTES = 4 * 2**20
"""Read of one answer."""
MOST_HEAD = 65_536
RESET_S = 0.02
"""Until a reset is there."""
SEED = secrets.randbits(63)
"""Of what is drawn for templates: none of the loads has drawn it, so that what has to be new is."""


@dataclass(frozen=True)
class Where:
    """A server, the request that it is sent, and what a right answer is."""

    host: str
    port: int
    path: str = "/"
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    status: int | None = None
    """Of a right answer; None: any 2xx."""
    expected: bytes | None = None
    """Body of a right answer; None: any."""
    patience_s: float = 3.0
    """For how long an answer is waited for that may never come."""
    numbers: Iterator[int] | None = None
    """Of its requests, which its templates are filled in for; None: it has none."""

    def filled(self) -> "Where":
        """Return it with its templates filled in for one request, which is then the same each time."""
        if self.numbers is None:
            return self
        number = next(self.numbers)

        def fill(text: str) -> str:
            return engine.fill(text.encode(), SEED, number).decode()

        return replace(
            self,
            path=fill(self.path),
            headers=tuple((name, fill(value)) for name, value in self.headers),
            body=engine.fill(self.body, SEED, number) if Content.of(self.body).text else self.body,
            numbers=None,
        )

    def with_headers(self, **headers: str) -> "Where":
        """Return it with further headers; of their names `_` is `-`."""
        more = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        return replace(self, headers=self.headers + more)

    def head(self, length: int | None = None) -> bytes:
        """Return the head of the request; `length` is that of a body, where it is not its own."""
        if self.numbers is not None:
            return self.filled().head(length)
        size = len(self.body) if length is None else length
        own = {name.lower() for name, _ in self.headers}
        lines = [f"{self.method} {self.path} HTTP/1.1"]
        lines += [] if "host" in own else [f"Host: {self.host}:{self.port}"]
        lines += [f"{name}: {value}" for name, value in self.headers if name.lower() != "content-length"]
        lines += [f"Content-Length: {size}"] if size or self.method in {"POST", "PUT", "PATCH"} else []
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")

    @property
    def request(self) -> bytes:
        """The whole of it, for a connection that is kept."""
        one = self.filled()
        return one.head() + one.body


def where(target: Target) -> Where | None:
    """Return what a probe sends: of several requests the first that is the same each time, or the first of all.

    None: they are not HTTP/1.1, or encrypted.
    """
    parts = urlsplit(target.url)
    if target.call is not None or target.chat is not None or parts.scheme != "http":
        return None
    host, port = parts.hostname or "", parts.port or 80
    if not target.mix:
        return Where(
            host,
            port,
            target.path,
            target.method,
            target.headers,
            target.body,
            target.expect_status,
            target.expect_body,
        )
    request = min(target.mix, key=lambda request: request.has_templates)
    return Where(
        host,
        port,
        request.path,
        request.method,
        request.headers,
        request.body.data if request.body else b"",
        request.expect_status,
        request.expect_body.data if request.expect_body else None,
        numbers=itertools.count() if request.has_templates else None,
    )


@dataclass(frozen=True)
class Answer:
    """How one request ended."""

    outcome: str
    """As in the glossary: `ok`, `refused`, `reset`, `timeout`, `bad_status`, `wrong_body`, `bad_protocol`."""
    seconds: float
    """From its first byte to the end of the answer, or to what there is in its place."""
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    """By their names in small letters."""
    body: bytes = b""

    @property
    def said(self) -> str:
        """The outcome as people read it."""
        return f"status {self.status}" if self.outcome == "bad_status" else self.outcome


class BadAnswerError(Exception):
    """What came is not HTTP."""


class Client:
    """One connection. It opens with its `with` block, or with `open`."""

    def __init__(self, at: Where, patience_s: float = PATIENCE_S) -> None:
        """`patience_s`: for the connection, and for each answer."""
        self.at, self.patience_s = at, patience_s
        self.refused = ""
        """`refused`, `reset` or `timeout` where it could not be opened."""
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    async def open(self) -> bool:
        """Connect; return whether that worked."""
        try:
            async with asyncio.timeout(self.patience_s):
                self._reader, self._writer = await asyncio.open_connection(
                    self.at.host, self.at.port, limit=MOST_BYTES
                )
        except TimeoutError:
            self.refused = "timeout"
        except ConnectionRefusedError:
            self.refused = "refused"
        except OSError:
            self.refused = "reset"
        return not self.refused

    @property
    def has_ended(self) -> bool:
        """Whether the server has ended it, as far as this side knows."""
        return (
            self._reader is None
            or self._writer is None
            or self._reader.at_eof()
            or self._writer.transport.is_closing()
        )

    async def until_ended(self, seconds: float) -> bool:
        """Wait till the server ends it, so long at most; return whether it did. What it sends meanwhile is lost."""
        if self._reader is None:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                with suppress(OSError):
                    while await self._reader.read(MOST_HEAD):
                        pass
                return True
        return False

    def acknowledge_at_once(self) -> None:
        """Have the kernel acknowledge what comes next without a delay, where it can."""
        option = getattr(socket, "TCP_QUICKACK", None)
        if option is not None and self._writer is not None:
            with suppress(OSError):
                self._writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, option, 1)

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        if self._writer is not None and not self._writer.transport.is_closing():
            self._writer.write(data)

    async def is_reset_by(self, data: bytes) -> bool:
        """Send bytes where the server has ended its side, and return whether it resets the connection for them."""
        if not data or self._writer is None:
            return False
        if self._writer.transport.is_closing():
            return True
        self.send(data)
        await asyncio.sleep(RESET_S)
        if self._writer.transport.is_closing():
            return True
        error = self._writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return bool(error)

    async def request(self, data: bytes | None = None) -> Answer:
        """Send a request, the server's own or `data`, and return how it ended."""
        began = time.monotonic()
        if self.refused:
            return Answer(self.refused, 0.0)
        self.send(self.at.request if data is None else data)
        return await self.answer(began)

    async def answer(self, began: float) -> Answer:
        """Return how the request ended whose first byte was sent then, on the clock of `time.monotonic`."""
        assert self._reader is not None
        try:
            async with asyncio.timeout(self.patience_s):
                status, headers, body = await _read(self._reader, self.at.method)
        except TimeoutError:
            return Answer("timeout", time.monotonic() - began)
        except (OSError, asyncio.IncompleteReadError):
            return Answer("reset", time.monotonic() - began)
        except (BadAnswerError, asyncio.LimitOverrunError, ValueError):
            return Answer("bad_protocol", time.monotonic() - began)
        right = 200 <= status < 300 if self.at.status is None else status == self.at.status
        outcome = "ok" if right else "bad_status"
        if right and self.at.expected is not None and body != self.at.expected:
            outcome = "wrong_body"
        return Answer(outcome, time.monotonic() - began, status, headers, body)

    def abort(self) -> None:
        """End it at once; may be called again."""
        if self._writer is not None:
            self._writer.transport.abort()


async def _read(reader: asyncio.StreamReader, method: str) -> tuple[int, dict[str, str], bytes]:
    """Read one answer to its end (RFC 9112): status, headers, body. Raises OSError, IncompleteReadError, ValueError."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        words = first.split(" ", 2)
        if not words[0].startswith("HTTP/1.") or len(words) < 2:
            raise BadAnswerError(first)
        status = int(words[1])
        if status >= 200:
            break
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    if method == "HEAD" or status in {204, 304}:
        return status, headers, b""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return status, headers, await _chunks(reader)
    if (length := headers.get("content-length")) is not None:
        if int(length) > MOST_BYTES:
            raise BadAnswerError(length)
        return status, headers, await reader.readexactly(int(length))
    return status, headers, await reader.read(MOST_BYTES)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    found = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        if len(found) + size > MOST_BYTES:
            raise BadAnswerError("too long")
        found += await reader.readexactly(size)
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers
    return bytes(found)


async def request_once(at: Where, patience_s: float = PATIENCE_S) -> Answer:
    """Send a request on a connection that is opened for it."""
    async with Client(at, patience_s) as client:
        return await client.request()


USUAL, ENOUGH_S = 3, 0.1
"""Requests one after the other, from which is known how long one takes otherwise; one that takes so long is enough."""
TIMES, SLACK_S = 6.0, 0.3
"""A request is late when it took so many times as long as usual, and so much longer."""
ASKING = 4
"""At once."""


async def usual_s(at: Where, enough_s: float = ENOUGH_S) -> float:
    """Return how long a request takes on a connection of its own, seconds. Raises NoServerError without an answer."""
    answers = await ask_fresh(at, 1, at.patience_s)
    while len(answers) < USUAL and answers[0].seconds < enough_s:
        answers += await ask_fresh(at, 1, at.patience_s)
    right = [answer.seconds for answer in answers if answer.outcome == "ok"]
    if not right:
        raise NoServerError(
            f"{at.host}:{at.port}", f"a plain request is not answered right ({answers[0].said})"
        )
    return max(right)


def late_after_s(at: Where, usual: float) -> float:
    """Return from how many seconds on a request is late that usually takes so many."""
    return min(max(TIMES * usual, usual + SLACK_S), at.patience_s)


async def ask_fresh(at: Where, count: int, patience_s: float) -> list[Answer]:
    """Send so many requests, some at once, each on its own connection; half of them where none is answered."""
    return await some_at_once(count, lambda: request_once(at, patience_s))


async def some_at_once(count: int, send: Callable[[], Awaitable[Answer]]) -> list[Answer]:
    """Send so many requests, some at once; half of them where none is answered right."""
    found: list[Answer] = []
    while len(found) < count and (len(found) < count / 2 or any(answer.outcome == "ok" for answer in found)):
        found += await asyncio.gather(*(send() for _ in range(min(ASKING, count - len(found)))))
    return found


def tally(hits: Sequence[Answer], every: Iterable[Answer], sentence: str, **figures: float) -> Met:
    """Return what was met: so many of every answer, and the first of them before the sentence."""
    answers = list(every)
    first = f"{hits[0].said} after {significant(hits[0].seconds, 2)} s; " if hits else ""
    outcomes = Counter(answer.outcome for answer in answers)
    return Met(len(hits), len(answers), outcomes, figures, first + sentence)

"""What is asked of an app, by its access log: the mix, and how much of it there is.

    read(Path("access.log"))
        -> AccessLog(requests=(Request("GET /items/*", "/items/{{random 1..500}}", weight=812), …),
                     mean_rps=12.4, peak_rps=85.0, …)

The log is read line by line in bounded memory (`logs/`), so it may be of gigabytes; `-` is standard input, and one
that is packed by gzip is unpacked. What a log does not tell cannot be asked: it has neither bodies nor headers.
"""

import gzip
import sys
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from velodrome.model.app import Request
from velodrome.model.errors import AccessLogError, TooLargeError
from velodrome.plan.asked.left_out import LeftOut, sentence
from velodrome.plan.asked.logs import lines, segments, varying
from velodrome.plan.asked.logs.rates import Rates
from velodrome.plan.asked.logs.sample import MOST
from velodrome.plan.asked.logs.tree import Kind, Tree
from velodrome.plan.asked.methods import ALL, SAFE

MOST_REQUESTS = 100
"""Of the mix; each has a line in every report."""
LONGEST_LINE = 65_536
GZIP = b"\x1f\x8b"
MOST_TIMES = 100
"""What is packed may become so many times as large, beside the first; a log becomes ten to thirty times."""
FIRST_BYTES = 4_000_000
SHORTEST_LINE = 50
"""Bytes that each line counts at least, as it takes time though it is empty."""
MOST_UNREADABLE = 64_000_000
"""Bytes in which no line was readable: further ones are hardly meant to be."""


@dataclass(frozen=True)
class AccessLog:
    """What a log tells of what is asked, and how often."""

    requests: tuple[Request, ...]
    """The mix, the most frequent first; a weight is how often it was asked."""
    told: int
    """Requests in the log, those left out among them; the rates are theirs."""
    asked: int
    """Of these, how many the mix stands for."""
    seconds: int
    """From the first to the last; 0: the log has no times."""
    mean_rps: float | None
    peak_rps: float | None
    """In the second that has most."""
    peak_10s_rps: float | None
    """On average in the ten seconds on end that have most; None: the log is shorter."""
    left_out: tuple[LeftOut, ...]
    unreadable: int
    """Lines of no form that is known."""
    drawn: int
    """Requests of the mix whose targets are some of many, drawn at random."""

    def sentences(self) -> Iterator[str]:
        """Yield what it tells, and what is left out of the mix."""
        count = f"{self.told:,} requests"
        if self.mean_rps is None or self.peak_rps is None:
            yield f"{count}; the log says no times, so there are no rates"
        else:
            ten = (
                ""
                if self.peak_10s_rps is None
                else f", {self.peak_10s_rps:.3g} a second in the ten that have most"
            )
            yield (
                f"{count} in {self.seconds:,} s: {self.mean_rps:.3g} a second on average, {self.peak_rps:.0f} in the "
                f"second that has most{ten}"
            )
        if self.drawn:
            yield f"of {self.drawn} of the requests {MOST} targets, drawn at random, stand for all that were asked for"
        for one in self.left_out:
            yield f"left out: {one.what}, {one.requests:,} of them ({one.requests / self.told:.1%}): {one.why}"
        if self.unreadable:
            yield f"left out: {self.unreadable:,} lines that are of no form of access log that is known"


def read(path: Path, methods: Collection[str] = SAFE) -> AccessLog:
    """Return what the log at `path` tells of requests with these methods.

    Raises AccessLogError for a file that cannot be read, is no access log, or leaves nothing to ask, and TooLargeError
    for one that grows too much when it is unpacked.
    """
    reading = _Reading(frozenset(method.upper() for method in methods))
    try:
        with ExitStack() as opened:
            for line in _lines(path, opened):
                reading.add(line)
                if not reading.told and reading.unreadable_bytes > MOST_UNREADABLE:
                    break
    except (OSError, EOFError, zlib.error) as error:
        # A log that is being packed or was cut off has a beginning.
        if not reading.told:
            raise AccessLogError(str(path), f"it cannot be read: {_why(error)}") from error
        reading.left_out["the rest of the file", f"it breaks off: {_why(error)}"] += 1
    return reading.conclude(path)


class _Packed:
    """A file that is unpacked, and how much of it was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.taken = file, 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        found = self._file.read(size)
        self.taken += len(found)
        return found


def _lines(path: Path, opened: ExitStack) -> Iterator[str]:
    """Yield lines; what is longer than a line may be comes in pieces, which are no lines either.

    Raises TooLargeError.
    """
    plain = sys.stdin.buffer if str(path) == "-" else opened.enter_context(path.open("rb"))
    if not isinstance(plain, BufferedReader) or plain.peek(2)[:2] != GZIP:
        yield from (text for line in _pieces(plain) if (text := line.decode("latin-1").strip()))
        return
    packed = _Packed(plain)
    log = opened.enter_context(closing(gzip.GzipFile(fileobj=cast(IO[bytes], packed))))
    unpacked = 0
    for number, line in enumerate(_pieces(log), 1):
        unpacked += max(len(line), SHORTEST_LINE)
        if unpacked > FIRST_BYTES + MOST_TIMES * packed.taken:
            raise TooLargeError(
                str(path), f"line {number}", f"{MOST_TIMES} times its bytes when it is unpacked"
            )
        if text := line.decode("latin-1").strip():
            yield text


def _pieces(log: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    while line := log.readline(LONGEST_LINE):
        yield line


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


@dataclass
class _Reading:
    methods: frozenset[str]
    told: int = 0
    unreadable: int = 0
    unreadable_bytes: int = 0
    tree: Tree = field(default_factory=Tree)
    rates: Rates = field(default_factory=Rates)
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, text: str) -> None:
        line = lines.read(text)
        if line is None:
            self.unreadable += 1
            self.unreadable_bytes += len(text)
            return
        self.told += 1
        self.rates.add(line.second)
        why = self._why_not(line) or self._keep(line)
        if why is not None:
            self.left_out[why] += 1

    def _why_not(self, line: lines.Line) -> tuple[str, str] | None:
        if line.method not in self.methods:
            # Any word in capitals may stand there; only those that are methods are told apart.
            method = line.method if line.method in KNOWN else "other methods"
            return method, "not among the methods asked for; a log has no bodies"
        if line.status == 101:
            return "WebSockets", "a log does not tell what was said"
        if line.status >= 400:
            return f"answers of status {line.status}", "a load asks for what is there"
        return None

    def _keep(self, line: lines.Line) -> tuple[str, str] | None:
        target = segments.target(line.target)
        if target is None:
            return "what is no path, or a very long one", "it cannot be asked again"
        # Asked without If-None-Match or Range, what was 304 or 206 is 200.
        status = 200 if line.status < 300 or line.status == 304 else line.status
        if not self.tree.add(line.method, target, status):
            return "further kinds of requests", "there are too many to tell apart"
        return None

    def conclude(self, path: Path) -> AccessLog:
        if not self.told:
            raise AccessLogError(str(path), _nothing_told(self.unreadable))
        kinds = sorted(self.tree.all(), key=lambda found: (-found[2].sample.seen, *found[:2]))
        # Where the memory for samples was used up before its first, nothing is known to ask.
        kept = [found for found in kinds if found[2].sample.kept]
        kept, rare = (
            kept[:MOST_REQUESTS],
            [*kept[MOST_REQUESTS:], *(one for one in kinds if not one[2].sample.kept)],
        )
        for _, _, kind in rare:
            self.left_out["rare kinds of requests", f"a mix has {MOST_REQUESTS} at most"] += kind.sample.seen
        left_out = tuple(LeftOut(what, count, why) for (what, why), count in self.left_out.most_common())
        if not kept:
            raise AccessLogError(str(path), f"it leaves nothing to ask: {sentence(left_out)}")
        requests = _named(kept)
        return AccessLog(
            requests=requests,
            told=self.told,
            asked=sum(kind.sample.seen for _, _, kind in kept),
            seconds=self.rates.seconds,
            mean_rps=self.rates.mean_rps,
            peak_rps=self.rates.peak_rps,
            peak_10s_rps=self.rates.long_peak_rps,
            left_out=left_out,
            unreadable=self.unreadable,
            drawn=sum("{{pick " in one.path and one.weight > MOST for one in requests),
        )


KNOWN = (*ALL, "CONNECT", "TRACE")


def _nothing_told(unreadable: int) -> str:
    if not unreadable:
        return "it is empty"
    return (
        f"none of its {unreadable:,} lines is one of an access log; those read are of the common and the combined "
        "format, nginx's, uvicorn's, and JSON"
    )


def _named(kinds: list[tuple[str, str, Kind]]) -> tuple[Request, ...]:
    """Return a request for each, by a name that no other has."""
    found: dict[str, Request] = {}
    for method, shape, kind in kinds:
        name, number = f"{method} {shape}", 1
        while name in found:  # a path with a `*` of its own looks like the shape of others
            number += 1
            name = f"{method} {shape} ({number})"
        status = kind.statuses.most_common(1)[0][0]
        found[name] = Request(
            name,
            varying.path(kind),
            method,
            weight=float(kind.sample.seen),
            expect_status=None if status == 200 else status,
        )
    return tuple(found.values())

"""The requests of an access log: the mix, and how many there are per second.

    read(Path("access.log"))
        -> AccessLog(requests=(Request("GET /items/*", "/items/{{random 1..500}}", weight=812), …),
                     mean_rps=12.4, peak_rps=85.0, …)

The log is read line by line in bounded memory, so it may have gigabytes; `-` is standard input, and gzip is unpacked.
A log holds neither bodies nor headers, so the requests have none.
"""

import gzip
import json
import math
import re
import sys
import zlib
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

from velodrome.model.app import Request
from velodrome.model.errors import AccessLogError, TooLargeError
from velodrome.model.quantity import significant
from velodrome.plan.requests import mix
from velodrome.plan.requests.lines import ALL, SAFE, LeftOut, left_out_sentence
from velodrome.plan.requests.mix import MOST, Kind, Tree


@dataclass(frozen=True, slots=True)
class Line:
    """A request, and how it was answered."""

    method: str
    target: str
    """Path and query as they stand, escaped as the log does it."""
    status: int
    second: int | None
    """Of the epoch; None: the line says no time."""


_REQUEST = (
    r'"(?P<method>[A-Z]{1,20}) (?P<target>(?:[^"\\\s]|\\.)+)(?: HTTP/[0-9.]+)?" (?P<status>[1-9][0-9][0-9])\b'
)
_COMMON = re.compile(r"\[(?P<time>[^\]\[]{1,64})\] " + _REQUEST)
_UVICORN = re.compile(r"[A-Z]+: +\S+ - " + _REQUEST)
_REQUEST_LINE = re.compile(r"(?P<method>[A-Z]{1,20}) (?P<target>\S+)(?: HTTP/[0-9.]+)?")
_METHOD = re.compile(r"[A-Z]{1,20}")

_NAMES: Mapping[str, tuple[str, ...]] = {
    "line": ("request", "request_line", "r"),
    "method": ("method", "request_method", "http_method", "requestMethod", "verb", "m"),
    "target": ("uri", "request_uri", "url", "requestUrl", "path", "request_path", "url_path", "U"),
    "query": ("query", "query_string", "request_querystring", "args", "q"),
    "status": ("status", "status_code", "response_code", "response_status", "s"),
    "time": ("ts", "time", "timestamp", "@timestamp", "time_local", "time_iso8601", "msec", "asctime", "t"),
}
"""Where JSON has what: Caddy, nginx ($names), gunicorn (its atoms, and the format most handed around), uvicorn under
structlog, Google's httpRequest.
"""
_WITHIN = ("request", "http", "httpRequest", "response", "scope")
"""Objects in which a line may have them too."""


def read_log_line(text: str) -> Line | None:
    """Return what the line says, or None when it is of no form that is known."""
    if text.startswith("{"):
        return _of_json(text)
    found = _COMMON.search(text) or _UVICORN.match(text)
    if found is None:
        return None
    given = found.groupdict()
    return Line(given["method"], given["target"], int(given["status"]), epoch_seconds(given.get("time")))


def _of_json(text: str) -> Line | None:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(whole, dict):
        return None
    places = [whole, *(whole[name] for name in _WITHIN if isinstance(whole.get(name), dict))]
    line = _REQUEST_LINE.fullmatch(_text(_first(places, "line")))
    method, target = line.groups() if line else (_text(_first(places, "method")), _target(places))
    status = _status(_first(places, "status"))
    if not _METHOD.fullmatch(method) or not target or status is None:
        return None
    return Line(method, target, status, epoch_seconds(_first(places, "time")))


def _target(places: list[dict[str, Any]]) -> str:
    target, query = _text(_first(places, "target")), _text(_first(places, "query"))
    return target if "?" in target or not query else f"{target}?{query.removeprefix('?')}"


def _first(places: list[dict[str, Any]], what: str) -> object:
    """Return the first plain value under one of the names."""
    values = (place.get(name) for place in places for name in _NAMES[what])
    return next((value for value in values if isinstance(value, str | int | float)), None)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _status(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{3}( .*)?", value):
        value = int(value[:3])
    is_one = isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 999
    return int(value) if is_one and isinstance(value, int) else None


MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
"""Not by `strptime`, whose names of months are those of the locale."""
LAST = 253_402_300_800
"""Year 10000: what is later is a finer unit."""
LONGEST = 64
"""Characters of a time."""


def epoch_seconds(value: object) -> int | None:
    """Return the second, or None for what has no time."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _of_number(value)
    return _of_text(value) if isinstance(value, str) and len(value) <= LONGEST else None


def _of_number(value: float) -> int | None:
    if not math.isfinite(value) or value < 0:
        return None
    for unit in (1, 1_000, 1_000_000, 1_000_000_000):
        # Ten digits are seconds until the year 2286; milliseconds have had thirteen since 2001.
        if value / unit < 1e11:
            return int(value / unit)
    return None


@lru_cache(1024)  # lines of a second say the same
def _of_text(text: str) -> int | None:
    text = text.strip().strip("[]")
    try:
        return _of_number(float(text)) if text[:1].isdigit() and _is_number(text) else _of_date(text)
    except (ValueError, KeyError, OverflowError):
        return None


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def _of_date(text: str) -> int:
    if text[2:3] == "/":
        day, month, rest = text.split("/", 2)
        year, hour, minute, second = rest[:4], rest[5:7], rest[8:10], rest[11:13]
        zone = rest.rpartition(" ")[2] if " " in rest else "+0000"
        text = f"{year}-{MONTHS[month]:02}-{int(day):02}T{hour}:{minute}:{second}{zone[:3]}:{zone[3:5]}"
    found = datetime.fromisoformat(text.replace(",", "."))
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)  # one log has one zone, so spans come out right
    return int(found.timestamp())


OPEN_S = 120
"""Apache writes a line when the request has ended, with the time when it began."""
LONG_S = 10


@dataclass
class Rates:
    """Counts as lines come in."""

    timed: int = 0
    """Lines that say a time."""
    first: int | None = None
    last: int | None = None
    _peak: int = 0
    _long_peak: int = 0
    _open: dict[int, int] = field(default_factory=dict)
    _latest: int = 0
    _closed: deque[tuple[int, int]] = field(default_factory=deque)
    """Of the last ten seconds that were closed, and their counts."""

    def add(self, second: int | None) -> None:
        """Count a request."""
        if second is None:
            return
        self.timed += 1
        self.first = second if self.first is None else min(self.first, second)
        self.last = second if self.last is None else max(self.last, second)
        if second not in self._open:
            self._move_to(second)
        self._open[second] = self._open.get(second, 0) + 1

    @property
    def seconds(self) -> int:
        """From the first second to the last, both counted; 0 where no line says a time."""
        return 0 if self.first is None or self.last is None else self.last - self.first + 1

    @property
    def mean_rps(self) -> float | None:
        """Requests per second of the whole span."""
        return self.timed / self.seconds if self.seconds else None

    @property
    def peak_rps(self) -> float | None:
        """In the second that has most."""
        self._close(until=None)
        return float(self._peak) if self.timed else None

    @property
    def long_peak_rps(self) -> float | None:
        """In the ten seconds on end that have most; None for a log that is shorter."""
        self._close(until=None)
        return self._long_peak / LONG_S if self.seconds >= LONG_S else None

    def _move_to(self, second: int) -> None:
        """Make room for a second that has no count yet."""
        if not self._open or second < self._latest - OPEN_S:
            # Another log behind the first, which is older: it is begun anew.
            self._close(until=None)
            self._latest = second
        elif second > self._latest:
            self._latest = second
            if len(self._open) > OPEN_S:
                self._close(until=second - OPEN_S)

    def _close(self, until: int | None) -> None:
        """Count the seconds before `until` for good, all where it is None."""
        for second in sorted(self._open):
            if until is not None and second >= until:
                return
            count = self._open.pop(second)
            self._peak = max(self._peak, count)
            if self._closed and self._closed[-1][0] >= second:
                self._closed.clear()
            self._closed.append((second, count))
            while self._closed[0][0] <= second - LONG_S:
                self._closed.popleft()
            self._long_peak = max(self._long_peak, sum(count for _, count in self._closed))


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
"""Bytes in which no line was readable: further lines are hardly meant to be."""


@dataclass(frozen=True)
class AccessLog:
    """The requests that a log lists, and their rates."""

    requests: tuple[Request, ...]
    """The mix, the most frequent first; a weight is how often the log has it."""
    logged: int
    """Requests in the log, those left out among them; the rates are theirs."""
    covered: int
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
        """Yield sentences on its rates, and on what is left out of the mix."""
        count = f"{self.logged:,} requests"
        if self.mean_rps is None or self.peak_rps is None:
            yield f"{count}; the log has no times, so there are no rates"
        else:
            ten = (
                ""
                if self.peak_10s_rps is None
                else f", {significant(self.peak_10s_rps)} a second in the busiest ten"
            )
            yield (
                f"{count} in {self.seconds:,} s: {significant(self.mean_rps)} a second on average, "
                f"{self.peak_rps:.0f} in the "
                f"busiest second{ten}"
            )
        if self.drawn:
            yield f"{self.drawn} of the requests: {MOST} targets, drawn at random, stand for all in the log"
        for omission in self.left_out:
            share = omission.requests / self.logged
            yield f"left out: {omission.what}, {omission.requests:,} of them ({share:.1%}): {omission.why}"
        if self.unreadable:
            yield f"left out: {self.unreadable:,} lines in no known format of access logs"


def read(path: Path, methods: Collection[str] = SAFE) -> AccessLog:
    """Return what the log at `path` has of requests with these methods.

    Raises AccessLogError for a file that cannot be read, is no access log, or leaves nothing to ask, and TooLargeError
    for a log that grows too much when it is unpacked.
    """
    reading = _Reading(frozenset(method.upper() for method in methods))
    try:
        with ExitStack() as opened:
            for line in _lines(path, opened):
                reading.add(line)
                if not reading.logged and reading.unreadable_bytes > MOST_UNREADABLE:
                    break
    except (OSError, EOFError, zlib.error) as error:
        # A log that is being packed or was cut off has a beginning.
        if not reading.logged:
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
    logged: int = 0
    unreadable: int = 0
    unreadable_bytes: int = 0
    tree: Tree = field(default_factory=Tree)
    rates: Rates = field(default_factory=Rates)
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, text: str) -> None:
        line = read_log_line(text)
        if line is None:
            self.unreadable += 1
            self.unreadable_bytes += len(text)
            return
        self.logged += 1
        self.rates.add(line.second)
        why = self._why_not(line) or self._keep(line)
        if why is not None:
            self.left_out[why] += 1

    def _why_not(self, line: Line) -> tuple[str, str] | None:
        if line.method not in self.methods:
            # Any word in capitals may stand there; only those that are methods stay apart.
            method = line.method if line.method in KNOWN else "other methods"
            return method, "not among --methods; a log has no bodies"
        if line.status == 101:
            return "WebSockets", "a log does not contain their messages"
        if line.status >= 400:
            return f"answers of status {line.status}", "a load requests only what exists"
        return None

    def _keep(self, line: Line) -> tuple[str, str] | None:
        target = mix.target(line.target)
        if target is None:
            return "what is no path, or a very long one", "it cannot be requested again"
        # Requested without If-None-Match or Range, what was 304 or 206 is 200.
        status = 200 if line.status < 300 or line.status == 304 else line.status
        if not self.tree.add(line.method, target, status):
            return "further kinds of requests", "there are too many kinds"
        return None

    def conclude(self, path: Path) -> AccessLog:
        if not self.logged:
            raise AccessLogError(str(path), _nothing_readable(self.unreadable))
        kinds = sorted(self.tree.all(), key=lambda found: (-found[2].sample.seen, *found[:2]))
        # Where the memory for samples was used up before its first, nothing is known to ask.
        kept = [found for found in kinds if found[2].sample.kept]
        kept, rare = (
            kept[:MOST_REQUESTS],
            [*kept[MOST_REQUESTS:], *(kind for kind in kinds if not kind[2].sample.kept)],
        )
        for _, _, kind in rare:
            self.left_out["rare kinds of requests", f"a mix has {MOST_REQUESTS} at most"] += kind.sample.seen
        left_out = tuple(LeftOut(what, count, why) for (what, why), count in self.left_out.most_common())
        if not kept:
            raise AccessLogError(str(path), f"it leaves nothing to request: {left_out_sentence(left_out)}")
        requests = _name_requests(kept)
        return AccessLog(
            requests=requests,
            logged=self.logged,
            covered=sum(kind.sample.seen for _, _, kind in kept),
            seconds=self.rates.seconds,
            mean_rps=self.rates.mean_rps,
            peak_rps=self.rates.peak_rps,
            peak_10s_rps=self.rates.long_peak_rps,
            left_out=left_out,
            unreadable=self.unreadable,
            drawn=sum("{{pick " in request.path and request.weight > MOST for request in requests),
        )


KNOWN = (*ALL, "CONNECT", "TRACE")


def _nothing_readable(unreadable: int) -> str:
    if not unreadable:
        return "it is empty"
    return (
        f"none of its {unreadable:,} lines is a line of an access log; those read are of the common and the combined "
        "format, nginx's, uvicorn's, and JSON"
    )


def _name_requests(kinds: list[tuple[str, str, Kind]]) -> tuple[Request, ...]:
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
            mix.path(kind),
            method,
            weight=float(kind.sample.seen),
            expect_status=None if status == 200 else status,
        )
    return tuple(found.values())

"""When a line of an access log says that it was written, in seconds of the epoch.

[10/Oct/2000:13:55:36 -0700]     common log format (httpd.apache.org/docs/2.4/logs.html)
2026-11-22T01:18:52.173+00:00    ISO 8601, as nginx writes $time_iso8601
2026-11-22 01:18:52,173          Python's logging
1646861401.52                    Caddy; milliseconds, microseconds and nanoseconds are told by their size
"""

import math
from datetime import UTC, datetime
from functools import lru_cache

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


def of(value: object) -> int | None:
    """Return the second, or None for what tells no time."""
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

"""A link as people type it: `rtt=160ms,rate=100mbit,loss=1%`, or as a table of a study file.

    read("rtt=160ms,rate=100mbit")            ->  Link(rtt_ms=160, rate_mbit=100)
    of({"rtt": "160ms", "rate": "100mbit"})   ->  the same

Units must be written, because a bare `160` is milliseconds to one reader and seconds to another.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from velodrome.model.amounts import seconds
from velodrome.model.load import CONGESTION, Link

EXAMPLE = "rtt=160ms,jitter=2ms,rate=100mbit,loss=1%,queue=500,congestion=cubic"
LONGEST_RTT_S = 60.0
"""No path on Earth is longer: TCP itself gives up a connection that takes minutes to open."""
LOWEST_RATE_MBIT, HIGHEST_RATE_MBIT = 0.001, 100_000.0
"""A packet of 1,500 bytes takes 12 s at the one end and 120 ns at the other."""
LONGEST_QUEUE = 1_000_000
"""Packets; 1.5 GB of them."""
_RATE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(k|m|g)bit(?:/s|ps)?", re.ASCII)
_RATE_UNITS = {"k": 1e-3, "m": 1.0, "g": 1e3}
_SPAN = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(us|ms|s)", re.ASCII)
_SHARE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(%?)", re.ASCII)


def read(text: str) -> Link:
    """Return the link that `text` means. Raises ValueError with a sentence that says what is wrong."""
    parts: dict[str, object] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ValueError(f"'{part}' in a link has no value; write one such as {EXAMPLE}")
        if key in parts:
            raise ValueError(f"a link has one {key}, and here it is told twice; leave one out")
        parts[key] = value
    return of(parts)


def of(parts: Mapping[str, object]) -> Link:
    """Return the link of a table whose values are texts (`loss` and `queue` may be numbers).

    Raises ValueError with a sentence that says what is wrong.
    """
    if not parts:
        raise ValueError(f"a link that is empty is no link; write one such as {EXAMPLE}")
    if unknown := [key for key in parts if key not in _KEYS]:
        raise ValueError(f"a link has no '{unknown[0]}'; it has {', '.join(_KEYS)}, as in {EXAMPLE}")
    told = {_KEYS[key][0]: _KEYS[key][1](value) for key, value in parts.items()}
    link = Link(**told)
    if link.jitter_ms > link.rtt_ms / 2:
        raise ValueError(
            f"a jitter of {link.jitter_ms:g} ms is more than the delay of each way, {link.rtt_ms / 2:g} ms (half the "
            "rtt), and no packet arrives before it is sent; lower the jitter or raise the rtt"
        )
    return link


def _milliseconds(name: str) -> Callable[[object], float]:
    def milliseconds(value: object) -> float:
        if not isinstance(value, str) or _SPAN.fullmatch(value) is None:
            raise ValueError(
                f"the {name} of a link, {_shown(value)}, is not a span of time; write 160ms, 1.5ms or 1s"
            )
        if seconds(value) > LONGEST_RTT_S:
            raise ValueError(
                f"the {name} of a link, {value}, is over {LONGEST_RTT_S:g} s; no path on Earth takes that"
            )
        return seconds(value) * 1000

    return milliseconds


def _rate(value: object) -> float:
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"the rate of a link, {_shown(value)}, is not one; write 100mbit, 512kbit or 1gbit")
    rate = float(match[1]) * _RATE_UNITS[match[2]]
    if not LOWEST_RATE_MBIT <= rate <= HIGHEST_RATE_MBIT:
        raise ValueError(f"the rate of a link, {value}, must be from 1kbit to 100gbit")
    return rate


def _loss(value: object) -> float:
    match = _SHARE.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        share = float(match[1]) / (100 if match[2] else 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        share = float(value)
    else:
        raise ValueError(f"the loss of a link, {_shown(value)}, is not a share of packets; write 1% or 0.01")
    if not 0 <= share < 1:
        raise ValueError(
            f"the loss of a link, {_shown(value)}, must be from 0 to below 1 (100%): something must arrive"
        )
    return share


def _queue(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LONGEST_QUEUE:
        raise ValueError(
            f"the queue of a link, {_shown(value)}, is not a number of packets; write one from 1 to {LONGEST_QUEUE}"
        )
    return value


def _congestion(value: object) -> str:
    if value not in CONGESTION:
        raise ValueError(
            f"the congestion control of a link, {_shown(value)}, is none of {', '.join(CONGESTION)}"
        )
    return str(value)


def _shown(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else f"{value!r}"


_KEYS: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "rtt": ("rtt_ms", _milliseconds("rtt")),
    "jitter": ("jitter_ms", _milliseconds("jitter")),
    "rate": ("rate_mbit", _rate),
    "loss": ("loss", _loss),
    "queue": ("queue_packets", _queue),
    "congestion": ("congestion", _congestion),
}
"""Key of the text to field of a Link, and how its value is read."""

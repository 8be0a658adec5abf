"""Requests that a generator reports one by one: percentiles, histogram and figures for each second of them."""

import base64
import math
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from velodrome.model.measurement import UNKNOWN_LATENCY, Latency, LoadSecond

LONGEST_SERIES_S = 86_400
"""A day: clocks that tell more are wrong."""


@dataclass(frozen=True, eq=False)
class RequestLog:
    """One place each, in any order."""

    ended_ns: NDArray[np.int64]
    """By any clock."""
    took_ns: NDArray[np.int64]
    right: NDArray[np.bool_]
    """Whether it was answered right."""
    timed: NDArray[np.bool_]
    """Whether its time counts as a latency: it was answered, or given up at that age."""

    def __post_init__(self) -> None:
        """Raise ValueError for times that no clock tells."""
        if len(self.took_ns) and (self.took_ns.min() < 0 or self.ended_ns.min() < 0):
            raise ValueError("a request took less than no time")

    def latency(self) -> Latency:
        """Return exact percentiles: the time within which so many of 100 were answered."""
        times = np.sort(self.took_ns[self.timed])
        if not len(times):
            return UNKNOWN_LATENCY

        def at(percentile: float) -> float:
            # Rounded first: 99.9 / 100 × 1000 is 999.0000000000001, and the thousandth is not meant.
            rank = max(1, math.ceil(round(percentile / 100 * len(times), 6)))
            return float(times[rank - 1]) / 1e6

        mean = float(times.mean()) / 1e6
        return Latency(mean, at(50), at(75), at(90), at(95), at(99), at(99.9), at(100))

    def histogram(self) -> str:
        """Return the histogram of latencies as text."""
        return histogram_text(self.took_ns[self.timed])

    def series(self, span_s: float) -> tuple[LoadSecond, ...]:
        """Return each second of the load, from when the first request began."""
        if not len(self.took_ns):
            return ()
        began = self.ended_ns - self.took_ns
        ended_ns = self.ended_ns - began.min()
        began = began - began.min()
        if ended_ns.max() > (span_s + LONGEST_SERIES_S) * 1e9:
            raise ValueError("its requests lie days apart")
        found = []
        for second in range(math.ceil(span_s)):
            here = (ended_ns >= second * 10**9) & (ended_ns < (second + 1) * 10**9)
            until = (second + 1) * 10**9
            times = np.sort(self.took_ns[here & self.timed])
            right = int((here & self.right).sum())
            found.append(
                LoadSecond(
                    at_s=float(second),
                    requests=int(here.sum()),
                    ok=right,
                    errors=int(here.sum()) - right,
                    in_flight=int(((began < until) & (ended_ns >= until)).sum()),
                    p50_ms=_rank(times, 0.5),
                    p99_ms=_rank(times, 0.99),
                    max_ms=_rank(times, 1.0),
                )
            )
        return tuple(found)


def _rank(times: NDArray[np.int64], share: float) -> float | None:
    return float(times[max(1, math.ceil(share * len(times))) - 1]) / 1e6 if len(times) else None


DIGITS = 3
"""Significant digits of a value."""
HALF_MAGNITUDE = 10
"""2 × 10³ sub-buckets need eleven bits; the upper half of them is used beyond the first bucket."""
LONGEST_NS = 1 << 40
"""18 minutes; the header says so, and no request takes that long."""
_COOKIE, _COMPRESSED_COOKIE = 0x1C849313, 0x1C849314


def histogram_text(values_ns: NDArray[np.int64]) -> str:
    """Return an HdrHistogram of these values as text, in the form the engine writes: V2, zlib-compressed, base64.

    Source: https://github.com/HdrHistogram/HdrHistogram, AbstractHistogram.java, encodeIntoCompressedByteBuffer.
    """
    values = np.clip(values_ns, 0, LONGEST_NS)
    # frexp gives the number of bits exactly below 2**53
    bits = np.frexp(values.astype(np.float64))[1]
    bucket = np.maximum(bits - (HALF_MAGNITUDE + 1), 0)
    half = 1 << HALF_MAGNITUDE
    indices, counts = np.unique(
        ((bucket + 1) << HALF_MAGNITUDE) + (values >> bucket) - half, return_counts=True
    )
    payload, at = bytearray(), 0
    for index, count in zip(indices.tolist(), counts.tolist(), strict=True):
        if index > at:
            payload += _zigzag(at - index)
        payload += _zigzag(count)
        at = index + 1
    header = struct.pack(">iiiiqqd", _COOKIE, len(payload), 0, DIGITS, 1, LONGEST_NS, 1.0)
    squeezed = zlib.compress(header + bytes(payload))
    return base64.b64encode(struct.pack(">ii", _COMPRESSED_COOKIE, len(squeezed)) + squeezed).decode()


def _zigzag(number: int) -> bytes:
    """Return a number as ZigZag LEB128; counts and gaps are far below 2⁵⁶, where its ninth byte differs."""
    left, found = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])

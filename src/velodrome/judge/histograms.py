"""HdrHistograms of latency: read, merged, and their percentiles. Percentiles are never averaged.

Form: HdrHistogram V2, zlib-compressed, base64, as the engine (and every HdrHistogram library) writes it:
https://github.com/HdrHistogram/HdrHistogram (AbstractHistogram.java, encodeIntoCompressedByteBuffer).
It is read on numpy, all numbers of a histogram at once (docs/decisions/0006-histograms-on-numpy.md).
"""

import base64
import binascii
import math
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from velodrome.judge.statistics import NORMAL, order_statistics

_COOKIE, _COMPRESSED_COOKIE = 0x1C849303, 0x1C849304
_WORD_SIZE_BITS = 0xF0  # a cookie's bits that older versions used; they do not change the form
_HEADER = struct.Struct(">iiiiqqd")
_LARGEST = 64 * 1024 * 1024  # bytes; a histogram of 3 digits over a day has under 1 MB
_TAIL_STEP = 0.1
_LONGEST_NUMBER = 8  # bytes; a ninth would be of a count of 2^55 and more
_MOST = 1 << 53  # values that a count may hold
_TOO_MUCH = "more buckets or counts than any histogram has"


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts over rising values, nanoseconds. A value stands for all that share its bucket."""

    highest: NDArray[np.int64]
    """The highest value of each bucket that has a count: percentiles err on the side of slow."""
    counts: NDArray[np.int64]

    @property
    def total(self) -> int:
        """How many values were recorded."""
        return int(self.counts.sum())

    def percentile_ms(self, percentile: float) -> float | None:
        """Return the milliseconds within which `percentile` of 100 stayed, None when nothing was recorded."""
        if not self.total:
            return None
        # Rounded first: 99.9 / 100 × 1000 is 999.0000000000001, and the thousandth value is not meant.
        rank = max(1, math.ceil(round(percentile / 100 * self.total, 6)))
        return float(self.highest[np.searchsorted(np.cumsum(self.counts), rank)]) / 1e6

    def supported_ms(self, percentile: float) -> float | None:
        """Return a percentile if enough values lie beyond it to mean something (`values_needed`), else None."""
        return self.percentile_ms(percentile) if self.total >= values_needed(percentile) else None

    def interval_ms(self, percentile: float, starts: float = 0.0) -> tuple[float, float | None] | None:
        """Return the 95 % interval of a percentile by its order statistics, where few values lie beyond it.

        How many of n independent requests stay within the true percentile is binomial; so the true percentile lies
        between the values of two ranks, whatever the distribution (H. A. David, «Order Statistics», 1981, section 2.5).
        The end is None where even the slowest request is no upper bound. None: `FEW_BEYOND` values or more lie beyond
        it, or too few to report it at all. Requests that were slow together show less than as many apart.

        `starts` is the standard error, in logarithms, that the starts of the server add: another would be slower or
        faster altogether. It widens both ends, as independent errors add up.
        """
        total, share = self.total, percentile / 100
        if total < values_needed(percentile) or total * (1 - share) >= FEW_BEYOND - 1e-6:
            return None
        low, high = order_statistics(total, share)
        cumulated = np.cumsum(self.counts)
        at_low = self.highest[np.searchsorted(cumulated, max(low, 1))]
        at_high = self.highest[np.searchsorted(cumulated, high)] if high <= total else None
        middle, most = self.percentile_ms(percentile) or 0.0, NORMAL * starts
        below = math.hypot(math.log(middle * 1e6 / max(float(at_low), 1.0)), most)
        if at_high is None:
            return middle * math.exp(-below), None
        above = math.hypot(math.log(float(at_high) / 1e6 / middle), most)
        return middle * math.exp(-below), middle * math.exp(above)

    @property
    def min_ms(self) -> float | None:
        """The fastest, milliseconds, or up to a bucket's width more."""
        return float(self.highest[self.counts > 0][0]) / 1e6 if self.total else None

    @property
    def stdev_ms(self) -> float | None:
        """Standard deviation, milliseconds, of the buckets' highest values."""
        if not self.total:
            return None
        mean = float(np.average(self.highest, weights=self.counts))
        return float(np.sqrt(np.average((self.highest - mean) ** 2, weights=self.counts))) / 1e6

    @property
    def max_ms(self) -> float | None:
        """The slowest, milliseconds."""
        return self.percentile_ms(100)

    def curve(self) -> tuple[tuple[float, float], ...]:
        """Return (percentile, milliseconds) for a log-tail plot, from 0 to where a single value lies beyond."""
        if not self.total:
            return ()
        steps = int(math.log10(self.total) / _TAIL_STEP + 1e-9)
        marks = [100 * (1 - 10 ** (-step * _TAIL_STEP)) for step in range(steps + 1)]
        return tuple((round(mark, 6), self.percentile_ms(mark) or 0.0) for mark in marks)


EMPTY = Histogram(np.zeros(0, np.int64), np.zeros(0, np.int64))


def values_needed(percentile: float) -> int:
    """Return how many values a percentile needs before it is reported at all.

    Three beyond it for p99 and below, ten above: with k values beyond, the rank is uncertain by about 1 ÷ √k.
    """
    beyond = 10 if percentile > 99 else 3
    # Rounded first: 3 × 100 / (100 - 99.9) is 3000.0000000000855.
    return math.ceil(round(beyond * 100 / (100 - percentile), 6))


FEW_BEYOND = 30
"""Values beyond a percentile under which its rank is so uncertain (1 ÷ √30 is 18 %) that its interval is printed."""


def decode(text: str) -> Histogram:
    """Read a histogram. Raises ValueError on anything else, without trusting any length in it."""
    try:
        outer = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", outer)
        if cookie & ~_WORD_SIZE_BITS != _COMPRESSED_COOKIE & ~_WORD_SIZE_BITS or length != len(outer) - 8:
            raise ValueError("its head is that of no compressed V2 histogram")
        inflate = zlib.decompressobj()
        inner = inflate.decompress(outer[8:], _LARGEST)
        cookie, length, _, digits, lowest, _, _ = _HEADER.unpack_from(inner)
    except (binascii.Error, struct.error, zlib.error) as error:
        raise ValueError(f"not a compressed V2 histogram: {error}") from error
    if cookie & ~_WORD_SIZE_BITS != _COOKIE & ~_WORD_SIZE_BITS or not 0 <= digits <= 5 or lowest < 1:
        raise ValueError("its inner head is that of no V2 histogram")
    if length != len(inner) - _HEADER.size:
        raise ValueError(f"{len(inner) - _HEADER.size} bytes of counts, {length} announced")
    indices, counts = _counts(inner[_HEADER.size :])
    return Histogram(_highest(indices, digits, lowest), counts)


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """Add histograms up, of whatever resolution."""
    parts = list(histograms)
    if not parts:
        return EMPTY
    values, where = np.unique(np.concatenate([part.highest for part in parts]), return_inverse=True)
    counts = np.zeros(len(values), np.int64)
    np.add.at(counts, where, np.concatenate([part.counts for part in parts]))
    return Histogram(values, counts)


def _counts(payload: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return buckets and counts of a ZigZag LEB128 payload; a negative number skips that many empty buckets."""
    data = np.frombuffer(payload, np.uint8)
    last = np.flatnonzero(data < 0x80)  # bytes that end a number
    first = np.concatenate([[0], last[:-1] + 1]) if last.size else last
    length = last - first + 1
    if data.size and (not last.size or last[-1] != data.size - 1):
        raise ValueError("the counts end within a number")
    if length.max(initial=0) > _LONGEST_NUMBER:
        raise ValueError(_TOO_MUCH)
    shift = 7 * (np.arange(data.size) - np.repeat(first, length))
    bits = (data & 0x7F).astype(np.int64) << shift
    coded = np.add.reduceat(bits, first) if first.size else np.zeros(0, np.int64)
    numbers = (coded >> 1) ^ -(coded & 1)
    if numbers.max(initial=0) >= _MOST or numbers.min(initial=0) < -_LARGEST:
        raise ValueError(_TOO_MUCH)
    steps = np.where(numbers < 0, -numbers, 1)
    indices = np.cumsum(steps) - steps
    if indices.max(initial=0) + steps[-1:].sum() > _LARGEST:
        raise ValueError(_TOO_MUCH)
    held = numbers > 0
    return indices[held], numbers[held]


def _highest(indices: NDArray[np.int64], digits: int, lowest: int) -> NDArray[np.int64]:
    """Return the highest value of buckets (AbstractHistogram.java: valueFromIndex, highestEquivalent…)."""
    half_magnitude = max(math.ceil(math.log2(2 * 10**digits)), 1) - 1
    half = 1 << half_magnitude
    bucket = (indices >> half_magnitude) - 1
    sub = (indices & (half - 1)) + half
    sub = np.where(bucket < 0, sub - half, sub)
    shift = np.maximum(bucket, 0) + int(math.log2(lowest))
    if indices.size and int(shift.max()) + half_magnitude >= 62:
        raise ValueError("a bucket beyond all 64-bit values")
    result: NDArray[np.int64] = ((sub + 1) << shift) - 1
    return result


# --- Percentiles of blocks: blocks with too few requests beyond it are taken together until they have enough.


def bundle_size(histograms: Iterable[Histogram], percentile: float) -> int:
    """Return how many blocks have enough requests together; 0: not even all of them."""
    counts = [histogram.total for histogram in histograms]
    if not counts or sum(counts) < values_needed(percentile):
        return 0
    return max(1, math.ceil(values_needed(percentile) / max(median(counts), 1)))


def bundle_percentiles(blocks: Mapping[int, Histogram], size: int, percentile: float) -> dict[int, float]:
    """Return a percentile of each bundle of so many blocks; what remains at the end is part of the last."""
    order = sorted(blocks)
    starts = range(0, max(len(order) - size + 1, 0), size)
    bundles = [order[start : start + size] for start in starts]
    if bundles:
        bundles[-1] = order[starts[-1] :]
    found = {}
    for bundle in bundles:
        value = merge(blocks[block] for block in bundle).supported_ms(percentile)
        if value:
            found[bundle[0]] = value
    return found

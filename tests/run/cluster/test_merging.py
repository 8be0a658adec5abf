"""The histogram of a whole load is, bit for bit, that of all its samples, whichever agent had which."""

import base64
import struct
import zlib
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from velodrome.judge.histograms import decode
from velodrome.run import engine

pytestmark = pytest.mark.unit

LONGEST_NS = 3_600_000_000_000
DIGITS, HALF = 3, 10
"""Significant digits, and the power of two that half of a bucket of 2,048 is."""
samples = st.lists(
    st.tuples(st.one_of(st.integers(1, 5000), st.integers(1, LONGEST_NS)), st.integers(0, 3)), min_size=1
)


def index(nanoseconds: int) -> int:
    """Return in which counter of an HdrHistogram a value is (AbstractHistogram.java: countsArrayIndex)."""
    bucket = max(nanoseconds.bit_length() - HALF - 1, 0)
    return ((bucket + 1) << HALF) + (nanoseconds >> bucket) - (1 << HALF)


def encoded(values: Sequence[int]) -> str:
    """Write samples as a compressed histogram, independently of the engine."""
    counts = Counter(map(index, values))
    payload, at = bytearray(), 0
    for where in sorted(counts):
        for number in ([at - where] if where > at else []) + [counts[where]]:
            coded = (number << 1) ^ (number >> 63)
            while coded >= 0x80:
                payload.append(coded & 0x7F | 0x80)
                coded >>= 7
            payload.append(coded)
        at = where + 1
    head = struct.pack(">iiiiqqd", 0x1C849313, len(payload), 0, DIGITS, 1, LONGEST_NS, 1.0)
    packed = zlib.compress(head + payload)
    return base64.b64encode(struct.pack(">ii", 0x1C849314, len(packed)) + packed).decode()


@given(samples)
def test_the_sum_of_the_parts_is_the_histogram_of_all_samples(had: list[tuple[int, int]]) -> None:
    parts = [[value for value, part in had if part == number] for number in range(4)]
    summed = engine.sum_of_histograms([(encoded(part), max(part) / 1e6) for part in parts if part])
    whole = engine.sum_of_histograms([(encoded([value for value, _ in had]), max(had)[0] / 1e6)])
    assert summed == whole
    assert whole is not None
    assert decode(whole[0]).total == len(had)

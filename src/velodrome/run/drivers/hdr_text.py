"""Latencies told one by one, as an HdrHistogram of three digits in the form the engine writes (`judge/histograms`).

Form: HdrHistogram V2, zlib-compressed, base64: https://github.com/HdrHistogram/HdrHistogram
(AbstractHistogram.java, encodeIntoCompressedByteBuffer).
"""

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

DIGITS = 3
HALF_MAGNITUDE = 10
"""2 × 10³ sub-buckets need eleven bits; the upper half of them is used beyond the first bucket."""
LONGEST_NS = 1 << 40
"""18 minutes; the header says so, and no request takes that long."""
_COOKIE, _COMPRESSED_COOKIE = 0x1C849313, 0x1C849314


def encode(values_ns: NDArray[np.int64]) -> str:
    """Return the text of a histogram of these values."""
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

"""`gc-pause`: a large heap that every collection of the oldest generation goes through; and cured."""

import gc
import os

from answering import answering

OBJECTS = int(os.environ.get("OBJECTS", "1_500_000"))
"""Kept for good: a cache, or parsed data."""
EACH = 400
"""Objects in cycles that a request leaves behind."""

_kept = []


def fill():
    _kept.extend({"number": number} for number in range(OBJECTS))


async def leaves_cycles():
    for _ in range(EACH):
        one = {}
        one["itself"] = one


fill()
severe = answering(leaves_cycles)


def healthy():
    gc.collect()
    gc.freeze()
    return answering(leaves_cycles)

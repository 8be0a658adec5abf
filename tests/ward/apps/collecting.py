"""`gc-pause`: a large heap that every collection of the oldest generation goes through; and cured."""

import gc

from answering import answering

OBJECTS = 1_000_000
"""Kept for good: parsed data."""
EACH = 10_000
"""Objects of one request, which live long enough to be taken for old."""

kept = [[number] for number in range(OBJECTS)]


async def reads_rows():
    rows = [[number] for number in range(EACH)]
    rows.clear()


severe = answering(reads_rows)


def cured():
    gc.collect()
    gc.freeze()
    return answering(reads_rows)

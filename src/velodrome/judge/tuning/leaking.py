"""Whether a server's memory rises with every request, and by how much.

A server that was just started grows for a while: threads are made, caches and arenas fill. So the second half of a load
is looked at, and memory leaks where the slope of a straight line through it is clear of its own error (as in
`judge/search/backlog.py`) and worth telling: one that would not double in a day of this is none.
"""

from dataclasses import dataclass

from velodrome.judge.search.backlog import slope
from velodrome.model.measurement import Measurement

SURE = 5.0
"""Standard errors below the slope: of seven values, so few as eight seconds have, one in a thousand is that far off."""
DAY_S = 86_400.0
LEAST_BYTES = 64.0
"""A request. Less is the noise of an allocator's pages."""


@dataclass(frozen=True)
class Leak:
    """Memory that rises."""

    bytes_per_request: float
    at_rps: float

    def seconds_to(self, limit_bytes: int, now_bytes: int, rate: float) -> float:
        """Return how long it takes at a rate until the limit is reached; 0: it is."""
        return max(limit_bytes - now_bytes, 0) / (self.bytes_per_request * rate)


def leak(measured: Measurement) -> Leak | None:
    """Return by how much memory rises; None: it does not, or too little was seen."""
    samples = measured.server.samples
    late = samples[len(samples) // 2 :]
    found = slope([(one.at_s, float(one.rss_bytes)) for one in late])
    rate = measured.load.throughput_rps
    if found is None or rate <= 0:
        return None
    surely = found.per_s - SURE * found.error
    each = found.per_s / rate
    doubles_s = late[-1].rss_bytes / found.per_s if found.per_s > 0 else DAY_S
    if surely <= 0 or each < LEAST_BYTES or doubles_s > DAY_S:
        return None
    return Leak(each, rate)

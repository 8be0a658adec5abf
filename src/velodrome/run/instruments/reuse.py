"""CONN: requests one after the other, each on a connection of its own, and on one that is reused.

compare(server)     -> Reused(first_ms=0.6, later_ms=43.1)
"""

from velodrome.model.symptoms import Reused
from velodrome.run.instruments.standing import Standing, figures

SECONDS = 0.8
FEWEST = 3
"""Requests of each, at least."""


def compare(server: Standing, each_s: float = 0.0) -> Reused:
    """Return both latencies; a request takes about `each_s` seconds. Raises NoServerError."""
    seconds = max(SECONDS, FEWEST * each_s)
    first = figures(server.closed(1, seconds, keepalive=False))
    return Reused(first.p50_ms, figures(server.closed(1, seconds)).p50_ms)

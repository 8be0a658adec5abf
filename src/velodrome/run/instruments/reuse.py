"""CONN: requests one after the other, each on a connection of its own, and on one that is reused.

compare(server)     -> Reused(first_ms=0.6, later_ms=43.1)
"""

from velodrome.model.symptoms import Reused
from velodrome.run.instruments.standing import Standing, figures

SECONDS = 0.8


def compare(server: Standing) -> Reused:
    """Return both latencies. Raises NoServerError."""
    first = figures(server.closed(1, SECONDS, keepalive=False))
    return Reused(first.p50_ms, figures(server.closed(1, SECONDS)).p50_ms)

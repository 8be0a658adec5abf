"""When requests are sent."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Closed:
    """Closed loop: each of `connections` sends its next request when the last was answered. Shows throughput."""

    connections: int
    kind: Literal["closed"] = "closed"


@dataclass(frozen=True)
class Open:
    """Open loop: `rate` requests per second fall due whatever the server does. Shows latency.

    `connections` is the most that may be open at once; they are opened as they are needed.
    """

    rate: float
    arrivals: Literal["constant", "poisson"] = "constant"
    connections: int = 1000
    kind: Literal["open"] = "open"


@dataclass(frozen=True)
class Load:
    """A pace with its span: `warmup_s` unmeasured seconds, then `duration_s` measured ones."""

    pace: Closed | Open
    duration_s: float
    warmup_s: float = 0.0
    timeout_s: float = 10.0
    """A request unanswered this long after it was sent has failed."""
    drain_s: float = 2.0
    """Requests in flight (or due and unsent) at the end are waited for this long, then counted `unfinished`."""
    keepalive: bool = True
    driver: str = "velodrome"

    @property
    def label(self) -> str:
        """Short name, unique within a question: `closed-40` or `open-500`."""
        if isinstance(self.pace, Closed):
            return f"closed-{self.pace.connections}"
        poisson = "-poisson" if self.pace.arrivals == "poisson" else ""
        return f"open-{self.pace.rate:g}{poisson}"

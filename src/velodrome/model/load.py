"""When requests are sent."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Closed:
    """Closed loop: each of `connections` sends its next request when the last was answered. Shows throughput.

    Over HTTP/2 each connection carries `streams` requests at once: `connections` × `streams` are in flight.
    """

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
    """Length of the measured span; with `requests`, how long that many are expected to take at most."""
    warmup_s: float = 0.0
    timeout_s: float = 10.0
    """A request unanswered this long after it was sent has failed."""
    drain_s: float = 2.0
    """Requests in flight (or due and unsent) at the end are waited for this long, then counted `unfinished`."""
    keepalive: bool = True
    driver: str = "velodrome"
    """Name of the load generator: a file in `run/drivers/`."""
    requests: int | None = None
    """So many measured requests end the load, instead of `duration_s`."""
    threads: int = 1
    """Of the generator."""
    streams: int = 1
    """Requests that each connection carries at once; more than 1 needs a protocol that can (HTTP/2)."""
    idle: int = 0
    """Further connections, opened before the load and held open through it, on which nothing is ever sent."""

    @property
    def label(self) -> str:
        """Short name, unique within a question: `closed-40`, `open-500`, `closed-100-n10000-ghz`."""
        parts = []
        if isinstance(self.pace, Closed):
            parts.append(f"closed-{self.pace.connections}")
        else:
            parts.append(f"open-{self.pace.rate:g}")
            parts += ["poisson"] if self.pace.arrivals == "poisson" else []
        parts += [f"x{self.streams}"] if self.streams > 1 else []
        parts += [f"n{self.requests}"] if self.requests is not None else []
        parts += [f"idle{self.idle}"] if self.idle else []
        parts += [] if self.keepalive else ["close"]
        parts += [self.driver] if self.driver != "velodrome" else []
        return "-".join(parts)

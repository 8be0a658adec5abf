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
class Step:
    """A part of a schedule: one rate for `duration_s`, or a straight line to another."""

    rate: float
    duration_s: float
    to_rate: float | None = None


@dataclass(frozen=True)
class Schedule:
    """Open loop whose rate changes: `steps` one after the other; the last rate goes on as long as the load does.

    Shows at which rate a server stops keeping up. Latency over all its rates tells of none of them: each step has its
    own (`LoadFacts.steps`).
    """

    steps: tuple[Step, ...]
    arrivals: Literal["constant", "poisson"] = "constant"
    connections: int = 1000
    kind: Literal["schedule"] = "schedule"

    @property
    def span_s(self) -> float:
        """Length of all steps."""
        return sum(step.duration_s for step in self.steps)

    @property
    def rate(self) -> float:
        """Requests per second on average over its steps."""
        asked = sum((step.rate + _end(step)) / 2 * step.duration_s for step in self.steps)
        return asked / self.span_s

    @property
    def top(self) -> float:
        """The highest rate it comes to."""
        return max(max(step.rate, _end(step)) for step in self.steps)

    @property
    def ends(self) -> str:
        """Where it begins and ends, by way of its top: `100..5000`, `500..4000..500`."""
        first, last = self.steps[0].rate, _end(self.steps[-1])
        way = [first] if first == last == self.top else [first, last]
        if self.top not in way:
            way.insert(1, self.top)
        return "..".join(f"{rate:g}" for rate in way)


def _end(step: Step) -> float:
    return step.rate if step.to_rate is None else step.to_rate


@dataclass(frozen=True)
class Load:
    """A pace with its span: `warmup_s` unmeasured seconds, then `duration_s` measured ones."""

    pace: Closed | Open | Schedule
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
        """Short name, unique within a question: `closed-40`, `open-500`, `schedule-1..9-5in25s`."""
        parts = []
        if isinstance(self.pace, Closed):
            parts.append(f"closed-{self.pace.connections}")
        elif isinstance(self.pace, Schedule):
            # Two of the same ends differ in how long they take, or in how many steps.
            parts.append(f"schedule-{self.pace.ends}-{len(self.pace.steps)}in{self.pace.span_s:g}s")
        else:
            parts.append(f"open-{self.pace.rate:g}")
        if not isinstance(self.pace, Closed):
            parts += ["poisson"] if self.pace.arrivals == "poisson" else []
        parts += [f"x{self.streams}"] if self.streams > 1 else []
        parts += [f"n{self.requests}"] if self.requests is not None else []
        parts += [f"idle{self.idle}"] if self.idle else []
        parts += [] if self.keepalive else ["close"]
        parts += [self.driver] if self.driver != "velodrome" else []
        return "-".join(parts)

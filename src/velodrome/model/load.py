"""What a trial puts on a server and what it gives it: the load, the network between, the CPUs and the memory."""

import math
from dataclasses import dataclass
from typing import Literal, Self

from velodrome.model.amounts import memory_bytes

Arrivals = Literal["constant", "poisson"]
"""How the requests of an open loop are spaced: all the same, or as those of independent users."""
INDEPENDENT: Arrivals = "poisson"
"""The default wherever latency or capacity is judged: independent users arrive as a Poisson process (C. Palm 1943, A.
Khinchin 1955), and constant gaps flatter a server: if it takes the same time for each request, none ever waits."""


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
    arrivals: Arrivals = "constant"
    connections: int = 1000
    kind: Literal["open"] = "open"

    def scatter(self, seconds: float) -> float:
        """Return by which part of the rate the requests of a span may miss it by chance: three standard deviations of a
        Poisson count; 0 where the gaps are constant.
        """
        return 3 / math.sqrt(max(self.rate * seconds, 1.0)) if self.arrivals == "poisson" else 0.0

    def kept_up(self, rps: float, seconds: float, share: float) -> bool:
        """Whether so many requests a second, over a span, are that share of the rate: see `kept_up`."""
        return kept_up(rps, self.rate, share, self.scatter(seconds))


# --- From which share of its rate on an open loop was kept up with. What is asked differs, and with it the share.

QUEUE_STANDS = 0.9
"""Its latency says something of the server: of less the queue grew to the end, and latency tells how long the load was.
What is missing up to here are requests in work, and the ends of the span."""
RATE_HELD = 0.95
"""It was not too much, as far as the requests that came to an end tell: a search looks at the backlog before, which
tells more, and its loads are short."""
AS_SCHEDULED = 0.97
"""Its answers a second are the schedule's, not the server's: they vary as the schedule does, and the server could do
more."""
NOTHING_FULL = 0.98
"""Of one load nothing was at its limit: the ends of the span alone cost a little."""


def kept_up(rps: float, rate: float, share: float, scatter: float) -> bool:
    """Return whether requests a second are a share of the rate that was due, or less by what chance takes.

    `scatter` is the part of the rate by which as many arrivals miss it (`Open.scatter`).
    """
    return rps >= (share - scatter) * rate


@dataclass(frozen=True)
class Step:
    """A part of a schedule: one rate for `duration_s`, or a straight line to another."""

    rate: float
    duration_s: float
    to_rate: float | None = None


@dataclass(frozen=True)
class Schedule:
    """Open loop whose rate changes: `steps` one after the other; the last rate goes on as long as the load does.

    Shows at which rate a server stops keeping up. Latency over all its rates describes none of them: each step has its
    own (`LoadFacts.steps`).
    """

    steps: tuple[Step, ...]
    arrivals: Arrivals = "constant"
    connections: int = 1000
    kind: Literal["schedule"] = "schedule"

    @property
    def span_s(self) -> float:
        """Length of all steps."""
        return sum(step.duration_s for step in self.steps)

    @property
    def rate(self) -> float:
        """Requests per second on average over its steps."""
        requests = sum((step.rate + _end(step)) / 2 * step.duration_s for step in self.steps)
        return requests / self.span_s

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


CONGESTION = ("cubic", "reno", "bbr")
"""Congestion controls of TCP that may be requested; which of them there are is the kernel's affair."""

MTU = 1500
"""Bytes of the largest IP packet, as on Ethernet."""
SEGMENT = MTU - 52
"""Bytes of payload in the largest TCP segment: 20 for IP, 20 for TCP, 12 for its time stamps (RFC 7323)."""
FIRST_WINDOW = 10
"""Segments that TCP sends before it has received anything (RFC 6928)."""
LEAST_ROOM = 100
"""Packets in the queue of a short link: one bandwidth-delay product would be too few for a burst."""


@dataclass(frozen=True)
class Link:
    """A path with delay, a bottleneck and loss; the same in both directions by default.

    Without a link, generator and server talk over loopback.
    """

    rtt_ms: float = 0.0
    """Added round-trip time; half of it each way."""
    jitter_ms: float = 0.0
    """Each way's delay varies by up to this much either side; packets keep their order."""
    rate_mbit: float | None = None
    """Of the bottleneck, each way, in 10^6 bits per second; None: not limited."""
    loss: float = 0.0
    """Share of packets lost, each way, 0 to 1."""
    queue_packets: int | None = None
    """Room in the queue before the bottleneck; None: one bandwidth-delay product, 100 packets at least."""
    congestion: str = "cubic"
    """Congestion control of TCP at both ends: one of `CONGESTION`."""

    @property
    def each_way_ms(self) -> float:
        """Delay of each direction."""
        return self.rtt_ms / 2

    @property
    def room(self) -> int | None:
        """How many packets may wait before the bottleneck; None: there is none to wait for."""
        if self.rate_mbit is None:
            return None
        if self.queue_packets is not None:
            return self.queue_packets
        return max(LEAST_ROOM, math.ceil(self.rate_mbit * self.rtt_ms * 1e3 / 8 / MTU))

    def fetch_s(self, sent: int, received: int) -> float:
        """Return the seconds a request and its answer, so many bytes each, take on a new connection at least.

        One round trip to connect; one for each window of the request and of the answer, which slow start doubles each
        time (RFC 5681), but the last window of the request carries the first of the answer; and the time on the
        bottleneck.
        """
        rounds = self._windows(sent) + self._windows(received)
        wire = 0.0 if self.rate_mbit is None else (sent + received) * 8 / self.rate_mbit / 1e6
        return rounds * self.rtt_ms / 1e3 + wire

    @staticmethod
    def _windows(size: int) -> int:
        return max(1, math.ceil(math.log2(size / (SEGMENT * FIRST_WINDOW) + 1)))

    @property
    def described(self) -> str:
        """Completes «over a link of …»: `160 ms, 100 Mbit/s, 1 % loss`."""
        parts = [f"{self.rtt_ms:g} ms" + (f" ± {2 * self.jitter_ms:g}" if self.jitter_ms else "")]
        parts += [f"{self.rate_mbit:g} Mbit/s"] if self.rate_mbit is not None else []
        parts += [f"a queue of {self.queue_packets}"] if self.queue_packets is not None else []
        parts += [f"{self.loss * 100:g} % loss"] if self.loss else []
        parts += [self.congestion] if self.congestion != "cubic" else []
        return ", ".join(parts)

    @property
    def typed(self) -> str:
        """As `--link` takes it, without losing a digit that matters: `rtt=160ms,rate=100mbit,loss=1%`."""
        parts = [f"rtt={_digits(self.rtt_ms)}ms"]
        parts += [f"jitter={_digits(self.jitter_ms)}ms"] if self.jitter_ms else []
        parts += [f"rate={_digits(self.rate_mbit)}mbit"] if self.rate_mbit is not None else []
        parts += [f"loss={_digits(self.loss * 100)}%"] if self.loss else []
        parts += [f"queue={self.queue_packets}"] if self.queue_packets is not None else []
        parts += [f"congestion={self.congestion}"] if self.congestion != "cubic" else []
        return ",".join(parts)

    @property
    def label(self) -> str:
        """Short name: `rtt160ms`, `rtt80ms-100mbit-loss1%`."""
        parts = [f"rtt{self.rtt_ms:g}ms"]
        parts += [f"jitter{self.jitter_ms:g}ms"] if self.jitter_ms else []
        parts += [f"{self.rate_mbit:g}mbit"] if self.rate_mbit is not None else []
        parts += [f"loss{self.loss * 100:g}%"] if self.loss else []
        parts += [f"queue{self.queue_packets}"] if self.queue_packets is not None else []
        parts += [self.congestion] if self.congestion != "cubic" else []
        return "-".join(parts)


def _digits(number: float) -> str:
    """Write a number plainly, because nobody types an exponent."""
    return f"{number:.9f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class Limits:
    """`cpus`: for how many CPUs the answer is (None: what placement gives). `memory_bytes`: None is unlimited.

    The server may use so many CPUs, or all there are where these are fewer. With `all` it has every CPU there is. The
    generator shares those that are then missing to it.
    """

    cpus: int | Literal["all"] | None = None
    memory_bytes: int | None = None

    @classmethod
    def of(cls, cpus: int | None, memory: str = "") -> Self:
        """Return them as people type them: memory as `512MB`, empty is unlimited. Raises ValueError."""
        return cls(cpus, memory_bytes(memory) if memory else None)

    def for_cpus(self, here: int) -> int:
        """Return for how many CPUs an answer is whose server had `here` of them."""
        return self.cpus if isinstance(self.cpus, int) else here

    def scope(self, here: int, option: str = "--cpus") -> str:
        """Return the same in words: `for 1 CPU; for more: --cpus`, or `for 4 CPUs, measured on 2`."""
        count = self.for_cpus(here)
        text = f"for {count} CPU{'' if count == 1 else 's'}"
        if count > here:
            return f"{text}, measured on {here}"
        return text if self.cpus is not None else f"{text}; for more: {option}"

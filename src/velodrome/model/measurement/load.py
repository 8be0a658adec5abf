"""What the load generator tells of a trial."""

from collections.abc import Mapping
from dataclasses import dataclass

OUTCOMES = ("ok", "refused", "reset", "timeout", "bad_status", "wrong_body", "bad_protocol", "unfinished")


def ended_rps(answered_rps: float, duration_s: float, errors: int, outcomes: Mapping[str, int]) -> float:
    """Return how many requests came to an end within a span, right or wrong, per second of it.

    `answered_rps` are the right ones, `errors` those of its seconds that ended otherwise, time-outs among them.
    """
    wrong = max(errors - outcomes.get("timeout", 0), 0)
    return answered_rps + wrong / duration_s if duration_s else 0.0


@dataclass(frozen=True)
class Latency:
    """Milliseconds."""

    mean: float | None
    p50: float | None
    p75: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p99_9: float | None
    max: float | None
    stdev: float | None = None
    """Standard deviation, where a generator tells it and no histogram to take it from."""


UNTOLD = Latency(None, None, None, None, None, None, None, None)
"""Of a generator that does not tell these."""


@dataclass(frozen=True)
class LoadSecond:
    """What the generator saw in one second of the measured span; latencies from when requests were due."""

    at_s: float
    requests: int
    ok: int
    errors: int
    in_flight: int
    """At the end of the second."""
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


@dataclass(frozen=True)
class LoadStep:
    """What became of the requests that fell due in one step of a schedule, whenever they were answered."""

    at_s: float
    duration_s: float
    rate: float
    """Asked at its begin, requests per second."""
    to_rate: float
    """At its end; equal but in a ramp."""
    requests: int
    ok: int
    throughput_rps: float
    """Right answers that arrived in it, per second."""
    due: Latency
    sent: Latency
    lag_p99_ms: float | None
    """Of the generator itself."""


@dataclass(frozen=True)
class LoadFacts:
    """What the generator reports (velodrome's own: schema `velodrome/load/1`, see `docs/results.md`).

    Other generators tell less. What one does not tell is None (of latencies: each, of series: empty); it is
    neither guessed nor made of something else.
    """

    requests: int
    ok: int
    """Right answers, as far as the generator looks: see `checks`."""
    duration_s: float
    throughput_rps: float
    """Right answers that arrived within the measured span, per second of it."""
    outcomes: Mapping[str, int]
    due: Latency
    sent: Latency
    """From when requests were sent; of another generator by its own definition, see `latency_is`."""
    lag: Latency
    """How late the generator itself sent: milliseconds from due to sent while a connection was free."""
    connections_asked: int
    connections_opened: int | None
    connections_reopened: int | None
    connections_answered: int | None
    """Connections that got at least one answer."""
    mean_in_flight: float | None
    """Requests in flight, averaged over the measured span from samples taken independently of latency."""
    generator_cpu_s: float
    generator_cpu_user_s: float
    generator_cpu_sys_s: float
    generator_transport: str
    """Empty: not told."""
    generator_saturated: bool
    engine_flags: tuple[str, ...]
    series: tuple[LoadSecond, ...]
    hdr_due: str | None
    """HdrHistogram V2, compressed, base64; values in nanoseconds."""
    hdr_sent: str | None
    examples: tuple[str, ...] = ()
    """The first few failures, as text the server may have chosen: escape before showing."""

    @property
    def answers(self) -> float:
        """Right answers that arrived within the span; `ok` are those to requests sent in it, whenever they came."""
        return self.throughput_rps * self.duration_s

    @property
    def ended_rps(self) -> float:
        """Requests that came to an end within the span, right or wrong, per second of it."""
        errors = sum(one.errors for one in self.series)
        return ended_rps(self.throughput_rps, self.duration_s, errors, self.outcomes)

    steps: tuple[LoadStep, ...] = ()
    """Of a schedule, each that began."""
    answered_before_read: int | None = None
    """Answers that were complete before their request was wholly sent."""
    resent: int | None = None
    """Requests that were sent again, as the server closed their idle connection at the moment they were sent."""
    first_due: Latency | None = None
    """Until the first message, of answers that have several; else None."""
    first_sent: Latency | None = None
    at_once: int | None = None
    """Messages to a room that a closed loop kept on their way; else None: connections × streams."""
    deliveries: int | None = None
    """Of messages to a room: how often a member got one; else None."""
    delivery_due: Latency | None = None
    """Until each delivery; a request is done with the last."""
    delivery_sent: Latency | None = None
    streams_without_room: int = 0
    """Of the requests asked to be carried at once, those that the server does not allow on its connections."""
    generator_threads: int = 1
    generator_debug: bool = False
    """Whether the generator was built without optimisation."""
    driver: str = "velodrome"
    """Name of the generator, as `Load.driver` says it."""
    driver_version: str = ""
    """Of another generator than velodrome's own."""
    driver_command: tuple[str, ...] = ()
    """Its command line as executed, of another generator than velodrome's own."""
    driver_notes: tuple[str, ...] = ()
    """How it did not do quite what was asked, as sentences: rounded time-outs, a warm-up of its own."""
    latency_is: str = ""
    """What `sent` is, when another generator defines it: `service time`, `time from connecting`. Empty: as here."""
    latency_corrected: bool = False
    """Whether the generator put latencies in that it thinks it missed (wrk): its mean is then no mean of requests."""
    checks: str = ""
    """What another generator looks at to call an answer right: `the HTTP status`. Empty: status and body."""
    blind: bool = False
    """Whether the generator cannot tell a failure from a right answer: `ok` then counts both."""

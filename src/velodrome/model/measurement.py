"""What happened in a trial: facts only. Units are in the names; what could not be told is None."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from velodrome.model.flag import Flag, Severity
from velodrome.model.trial import Trial

OUTCOMES = ("ok", "refused", "reset", "timeout", "bad_status", "wrong_body", "bad_protocol", "unfinished")


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

    answered_before_read: int | None = None
    """Answers that were complete before their request was wholly sent."""
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


@dataclass(frozen=True)
class WorkerUse:
    """One process of the server over the measured span."""

    pid: int
    cpu_s: float
    connections: int | None
    """Established connections at mid-span."""


@dataclass(frozen=True)
class ServerSample:
    """The whole process tree of the server at one moment."""

    at_s: float
    cpu_s: float
    """Since the start of the measured span."""
    rss_bytes: int
    threads: int
    processes: int
    fds: int | None
    listen_queue: int | None


@dataclass(frozen=True)
class ServerFacts:
    """The whole process tree of the server over the measured span."""

    cpu_s: float
    cpu_user_s: float
    cpu_sys_s: float
    rss_peak_bytes: int
    pss_peak_bytes: int | None
    threads_peak: int
    fds_peak: int | None
    switches_voluntary: int | None
    switches_involuntary: int | None
    workers: tuple[WorkerUse, ...]
    samples: tuple[ServerSample, ...]
    boot_s: float
    """From start to the first right answer."""


@dataclass(frozen=True)
class QueueFacts:
    """The listening socket over the measured span."""

    peak: int | None
    limit: int | None
    overflows: int | None
    drops: int | None


@dataclass(frozen=True)
class HostFacts:
    """The rest of the machine over the measured span; seconds of CPU."""

    steal_s: float | None
    other_cpu_s: float | None
    """Used by processes that are not server, generator, upstream or velodrome itself."""
    busiest_other: str = ""
    """Name of the other process that used most, when it used a tenth of a CPU or more."""
    swapped_bytes: int | None = None
    """Moved from and to swap space by the whole machine."""
    closed_unread: int | None = None
    """Connections that any process closed with data unread in them, which resets them (`TCPAbortOnClose`)."""


@dataclass(frozen=True)
class UpstreamFacts:
    """The simulated third party over the measured span."""

    requests: int
    cpu_s: float
    late_p50_ms: float | None
    late_p99_ms: float | None


@dataclass(frozen=True)
class AnswerForm:
    """How the server wrote the head of one answer before the load."""

    length_told: bool
    """Whether its end can be known without the end of the connection: a length, or chunks."""
    line_ends: str
    """`CRLF`, or `LF` if any line ends without a carriage return."""


@dataclass(frozen=True)
class IdleFacts:
    """Connections that were to be held open beside the load, nothing ever sent on them (`Load.idle`)."""

    asked: int
    opened: int
    """Before the load."""
    accepted: int | None
    """Of these, how many the server had taken in when the load began; the others lay in its listen queue."""
    still_open: int
    """When the load had ended: what the server neither ended nor reset."""


@dataclass(frozen=True)
class CompanionFacts:
    """A real server beside the one under test, such as a database, over the measured span."""

    name: str
    """As recipes name it, e.g. `mariadb`."""
    version: str
    """As it tells itself."""
    cpu_s: float | None
    """All its processes together; None where it runs elsewhere, on behalf of the user."""


@dataclass(frozen=True)
class WayFacts:
    """One direction of a link over the measured span; packets as they would be on a wire."""

    packets: int
    """Sent into it."""
    bytes: int
    """From the IP header on."""
    lost: int | None
    """By chance, as asked for; None: counted with those dropped."""
    dropped: int
    """Because the queue before the bottleneck was full."""


@dataclass(frozen=True)
class LinkFacts:
    """The network between generator and server over the measured span."""

    joined_by: str
    """`relay`, velodrome's own, or `netem`, the kernel's."""
    congestion: str
    """Congestion control of TCP, as a connection told it."""
    rtt_ms: float
    """Of a handshake before the load."""
    there: WayFacts
    """Generator to server."""
    back: WayFacts
    retransmitted: int | None
    """Segments that TCP of both ends sent again."""
    overrun: int
    """Packets the link itself lost, because it did not keep up. None should be."""
    late_p50_ms: float | None
    """How much later than asked packets came out, at most; None: netem does not tell."""
    late_p99_ms: float | None
    late_max_ms: float | None
    hdr_late: str = ""
    """HdrHistogram V2, compressed, base64; values in nanoseconds."""
    cpu_s: float | None = None
    """CPU of the relay; None: netem's is the kernel's."""
    realtime: bool | None = None
    """Whether the relay had priority over everything else on its CPU."""


@dataclass(frozen=True)
class Placement:
    """Who ran where and how it was enforced."""

    server_cpus: tuple[int, ...]
    load_cpus: tuple[int, ...]
    upstream_cpus: tuple[int, ...]
    shared: bool
    """Whether server and generator share a CPU."""
    enforced_by: str
    """`cgroup v1`, `cgroup v2`, `affinity and rlimits`, or `nothing`."""
    notes: tuple[str, ...] = ()

    @property
    def own_cpus(self) -> int:
        """How many CPUs the server has to itself."""
        return len({*self.server_cpus} - {*self.load_cpus, *self.upstream_cpus})


@dataclass(frozen=True)
class Measurement:
    """A trial that ran to its end."""

    trial: Trial
    started_at: str
    """ISO 8601, UTC."""
    load: LoadFacts
    server: ServerFacts
    queue: QueueFacts
    host: HostFacts
    placement: Placement
    flags: tuple[Flag, ...]
    upstream: UpstreamFacts | None = None
    command: tuple[str, ...] = ()
    """The server's command line as executed."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Installed in the server's environment: name to version."""
    python: str = ""
    """Version of the server's interpreter."""
    last_lines: tuple[str, ...] = ()
    """The end of the server's output, kept when it died or did not stop; escape before showing."""
    idle: IdleFacts | None = None
    """None: none were asked for."""
    companions: tuple[CompanionFacts, ...] = ()
    link: LinkFacts | None = None
    """None: loopback."""
    form: AnswerForm | None = None
    """None: not looked at, as the answer is not a body over HTTP/1.1."""

    @property
    def valid(self) -> bool:
        """Whether no flag sets it aside."""
        return all(flag.severity is not Severity.INVALID for flag in self.flags)

    @property
    def cpu_us_per_request(self) -> float | None:
        """Server CPU per right answer, microseconds; both over the measured span."""
        return self.server.cpu_s * 1e6 / self.load.answers if self.load.answers else None


class FailureKind(StrEnum):
    """At which point a trial became impossible."""

    INSTALL = "install"
    UNAVAILABLE = "unavailable"
    START = "start"
    NEVER_ANSWERED = "never-answered"
    WRONG_ANSWER = "wrong-answer"
    DIED = "died"
    LOAD = "load"
    STOP = "stop"


@dataclass(frozen=True)
class Failed:
    """A trial that could not be measured: a result too."""

    trial: Trial
    started_at: str
    failure: FailureKind
    reason: str
    """One or two sentences: what happened and what to do."""
    last_lines: tuple[str, ...] = ()
    """The end of the server's output; escape before showing."""

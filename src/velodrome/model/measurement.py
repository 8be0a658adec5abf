"""What happened in a trial: facts only. Units are in the names; what could not be measured is None.

In reading order: the flags; which requests failed; what the machine, the server, the load generator, the network and
the instruments beside the load saw; a trial that failed, and a trial that was measured.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from velodrome.model.trial import Trial

# --- Flags: why a measurement may be wrong.


class FlagKind(StrEnum):
    """What was seen. `docs/method.md` describes how each is found and what it does to a verdict."""

    GENERATOR_SATURATED = "generator-saturated"
    GENERATOR_LAGGED = "generator-lagged"
    LITTLES_LAW = "littles-law"
    ERRORS = "errors"
    NOT_STATIONARY = "not-stationary"
    CPU_STEAL = "cpu-steal"
    OTHER_LOAD = "other-load"
    CPU_SHARED = "cpu-shared"
    LISTEN_QUEUE_OVERFLOWED = "listen-queue-overflowed"
    SERVER_DIED = "server-died"
    SERVER_RESTARTED = "server-restarted"
    DEBUG_BUILD = "debug-build"
    CAPPED_BY_CONNECTIONS = "capped-by-connections"
    TOO_SHORT = "too-short"
    CONNECTIONS_NEVER_IN = "connections-never-in"
    UNFAIR = "unfair"
    IDLE_WORKERS_BURN = "idle-workers-burn"
    UNEQUAL_WORKERS = "unequal-workers"
    ANSWERED_BEFORE_READ = "answered-before-read"
    FOREIGN_LISTENER = "foreign-listener"
    UPSTREAM_LATE = "upstream-late"
    COMPANION_SATURATED = "companion-saturated"
    LINK_LATE = "link-late"
    LINK_FULL = "link-full"
    SWAPPED = "swapped"
    CLOSED_UNREAD = "closed-unread"
    LENGTH_NOT_TOLD = "length-not-told"
    BARE_LINE_ENDS = "bare-line-ends"
    IDLE_NOT_HELD = "idle-not-held"
    HUNG_ON_STOP = "hung-on-stop"
    BRIEF = "brief"
    ANSWERS_UNCHECKED = "answers-unchecked"
    AGENT_LOST = "agent-lost"

    @property
    def of_the_moment(self) -> bool:
        """Whether it is about the machines at that moment and nothing that was measured: once more may be well."""
        return self in {FlagKind.CPU_STEAL, FlagKind.OTHER_LOAD, FlagKind.SWAPPED, FlagKind.AGENT_LOST}

    @property
    def of_the_lab(self) -> bool:
        """Whether it is about what loads the server and stands beside it: it was the limit, and is the next time."""
        return self in {
            FlagKind.GENERATOR_SATURATED,
            FlagKind.GENERATOR_LAGGED,
            FlagKind.CPU_SHARED,
            FlagKind.CAPPED_BY_CONNECTIONS,
            FlagKind.DEBUG_BUILD,
            FlagKind.UPSTREAM_LATE,
            FlagKind.COMPANION_SATURATED,
            FlagKind.LINK_LATE,
            FlagKind.FOREIGN_LISTENER,
        }


class Severity(StrEnum):
    """`INVALID` sets the measurement aside: it never wins a ranking. `NOTE` is shown beside the number."""

    INVALID = "invalid"
    NOTE = "note"


@dataclass(frozen=True)
class Flag:
    """One reason, the facts it was found by, and what to do about it."""

    kind: FlagKind
    severity: Severity
    sentence: str
    advice: str
    facts: Mapping[str, float | int | str] = field(default_factory=dict)


# --- Errors.
#
# `counts` is a `velodrome/load/1` document or a part of it that has `requests`, `ok` and `outcomes`; `loop` is the
# kind of its pace: `open` (or `schedule`, which is open too) or `closed`.

UNTIMED = ("refused", "reset", "bad_protocol")
"""Outcomes of requests that are in no histogram: how soon somebody is turned away says nothing of answers."""


def count_in_flight(counts: Mapping[str, Any], loop: str) -> int:
    """Return how many requests of a closed loop were still in flight at its end.

    It sends requests until the end, so it always ends with some; they are younger than the time-out, and of a slow
    server they may be half of all. In an open loop each was due at its time and had as long as the others, and the
    drain.
    """
    return int(counts["outcomes"].get("unfinished", 0)) if loop == "closed" else 0


def count_failed(counts: Mapping[str, Any], loop: str) -> int:
    """Return how many requests failed: all without a right answer but those of a closed loop that were in flight."""
    return max(int(counts["requests"]) - int(counts["ok"]) - count_in_flight(counts, loop), 0)


def count_untimed(counts: Mapping[str, Any]) -> dict[str, int]:
    """Return how many requests have no latency, by what became of them."""
    return {name: count for name in UNTIMED if (count := counts["outcomes"].get(name, 0))}


# --- The machine during the measured span: listen queue, other processes, placement.


@dataclass(frozen=True)
class QueueFacts:
    """The listening socket over the measured span."""

    peak: int | None
    limit: int | None
    overflows: int | None
    drops: int | None


@dataclass(frozen=True)
class CpuLosses:
    """What the CPUs of one process lost to others over the measured span; seconds of CPU."""

    cpus: tuple[int, ...]
    """Those that it may run on."""
    steal_s: float | None
    other_cpu_s: float | None
    """Used on them by processes that are not of the trial, at least."""


@dataclass(frozen=True)
class HostFacts:
    """The rest of the machine over the measured span, all CPUs together; seconds of CPU."""

    steal_s: float | None
    other_cpu_s: float | None
    """Used by processes that are not server, generator, upstream or velodrome itself."""
    busiest_other: str = ""
    """Name of the other process that used most, when it used a tenth of a CPU or more."""
    swapped_bytes: int | None = None
    """Moved from and to swap space by the whole machine."""
    closed_unread: int | None = None
    """Connections that any process closed with data unread in them, which resets them (`TCPAbortOnClose`)."""
    server_cpus: CpuLosses | None = None
    """Of the CPUs of the server; None: not known, as in older results."""
    load_cpus: CpuLosses | None = None
    """Of those of the generator."""


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
    apart: bool = False
    """Whether agents on other hosts load the server; `load_cpus` are then those that they use on its machine."""

    @property
    def own_cpus(self) -> int:
        """How many CPUs the server has to itself."""
        return len({*self.server_cpus} - {*self.load_cpus, *self.upstream_cpus})


# --- The server: its use of CPU and memory, and its first responses.


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
    overflows: int | None = None
    """Connections that full listen queues of its network turned away, since the start of the measured span; None: not
    known, as in older results."""
    throttled_s: float | None = None
    """For how long its control groups, and those above them, kept it from the CPU since then; None: not known."""


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
class AnswerForm:
    """How the server wrote the head of one answer before the load."""

    length_told: bool
    """Whether its end can be known without the end of the connection: a length, or chunks."""
    line_ends: str
    """`CRLF`, or `LF` if any line ends without a carriage return."""


# --- The load generator's report.

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
    """Standard deviation, where a generator reports it and no histogram to take it from."""


UNKNOWN_LATENCY = Latency(None, None, None, None, None, None, None, None)
"""Of a generator that does not report these."""


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
    """Rate due at its begin, requests per second."""
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
class Fairness:
    """How evenly right answers came to the connections of a closed loop, within its span (`record/fairness.rs`).

    Over HTTP/2 a connection has what all its streams have.
    """

    connections: int
    answers: int
    """Of all connections together."""
    least: int
    """Of the connection with the fewest."""
    most: int
    jain: float | None
    """Jain's index, (Σx)²/(n·Σx²), over the whole span: k/n when k of n share all answers evenly. None: no answer."""
    jain_short_term: float | None
    """Its mean over windows in which each connection has so many answers on average that chance makes it 0.89.

    None: the span was shorter than a window.
    """
    mean_ms: float | None
    """From due to done, over all answers."""
    median_connection_ms: float | None
    """The median over connections of the mean of each, whatever its responses were; None: half of them got no
    answer."""


@dataclass(frozen=True)
class Loader:
    """An agent that carried a part of a load, from another host than the server's."""

    name: str
    host: str
    round_trip_ms: float | None
    """Between it and the server's host: the least of ten, before the race. None: not known."""
    requests: int
    ok: int
    cpu_share: float | None
    """CPU time of its engine over that which its threads could have had; None: it was lost."""
    lag_p99_ms: float | None
    steal_share: float | None
    """Of the time of its CPUs, what their hypervisor gave to others."""
    lost: str = ""
    """Why it was lost; empty: it was not."""


@dataclass(frozen=True)
class LoadFacts:
    """What the generator reports (velodrome's own: schema `velodrome/load/1`, see `docs/results.md`).

    Other generators report less. What a driver does not report is None (of latencies: each, of series: empty); it is
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
    """Empty: not reported."""
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

    def count_failed(self, loop: str) -> int:
        """Return how many requests failed, as of that kind of pace: see the function of the same name."""
        counts = {"requests": self.requests, "ok": self.ok, "outcomes": self.outcomes}
        return count_failed(counts, loop)

    @property
    def generator_cpu_share(self) -> float:
        """CPU time of the generator over that which its threads could have had: what `generator_fault` takes.

        Of several agents that of the busiest: one that is at its end spoils the whole.
        """
        if shares := [loader.cpu_share for loader in self.loaders if loader.cpu_share is not None]:
            return max(shares)
        ran_s = self.duration_s if self.generator_ran_s is None else self.generator_ran_s
        return self.generator_cpu_s / max(ran_s * self.generator_threads, 1e-9)

    @property
    def ended_rps(self) -> float:
        """Requests that came to an end within the span, right or wrong, per second of it."""
        errors = sum(entry.errors for entry in self.series)
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
    """Of messages to a room: how often a member got a message; else None."""
    delivery_due: Latency | None = None
    """Until each delivery; a request is done with the last."""
    delivery_sent: Latency | None = None
    streams_without_room: int = 0
    """Of the requests wanted in flight at once, those that the server does not allow on its connections."""
    generator_threads: int = 1
    generator_debug: bool = False
    """Whether the generator was built without optimisation."""
    fairness: Fairness | None = None
    """None: an open loop, which chooses its connections itself, a room, another generator, or an older result."""
    fastest_ms: float | None = None
    """From sent to done of the fastest right answer of the whole run, the warm-up included: each connection's first
    request falls in it. None: there was none, another generator, or an older result."""
    generator_ran_s: float | None = None
    """How long it ran to use its CPU time, where that is longer than the span: another generator, from start to end."""
    driver: str = "velodrome"
    """Name of the generator, as `Load.driver` says it."""
    driver_version: str = ""
    """Of another generator than velodrome's own."""
    driver_command: tuple[str, ...] = ()
    """Its command line as executed, of another generator than velodrome's own."""
    driver_notes: tuple[str, ...] = ()
    """How it did not do quite what was requested, as sentences: rounded time-outs, a warm-up of its own."""
    latency_is: str = ""
    """What `sent` is, when another generator defines it: `service time`, `time from connecting`. Empty: as here."""
    latency_corrected: bool = False
    """Whether the generator put latencies in that it thinks it missed (wrk): its mean is then no mean of requests."""
    checks: str = ""
    """What another generator looks at to call an answer right: `the HTTP status`. Empty: status and body."""
    blind: bool = False
    """Whether the generator does not distinguish a failure from a right answer: `ok` then counts both."""
    loaders: tuple[Loader, ...] = ()
    """The agents that carried it from other hosts; empty: it came from where the server is."""


# --- The link.


@dataclass(frozen=True)
class WayFacts:
    """One direction of a link over the measured span; packets as they would be on a wire."""

    packets: int
    """Sent into it."""
    bytes: int
    """From the IP header on."""
    lost: int | None
    """By chance, as requested; None: counted with those dropped."""
    dropped: int
    """Because the queue before the bottleneck was full."""


@dataclass(frozen=True)
class LinkFacts:
    """The network between generator and server over the measured span."""

    joined_by: str
    """`relay`, velodrome's own, or `netem`, the kernel's."""
    congestion: str
    """Congestion control of TCP, as a connection reports it."""
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
    """How much later than requested packets came out, at most; None: netem does not report it."""
    late_p99_ms: float | None
    late_max_ms: float | None
    hdr_late: str = ""
    """HdrHistogram V2, compressed, base64; values in nanoseconds."""
    cpu_s: float | None = None
    """CPU of the relay; None: netem's is the kernel's."""
    realtime: bool | None = None
    """Whether the relay had priority over everything else on its CPU."""


# --- Third parties, databases, idle connections.


@dataclass(frozen=True)
class UpstreamFacts:
    """The simulated third party over the measured span."""

    requests: int
    cpu_s: float
    late_p50_ms: float | None
    late_p99_ms: float | None
    agent: str = ""
    """That ran it on another host; empty: it was where the server is."""
    host: str = ""
    """Of that agent."""
    round_trip_ms: float | None = None
    """Between the server's host and that one: the least of ten, before the race."""


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
    """A real server beside the server under test, such as a database, over the measured span."""

    name: str
    """As recipes name it, e.g. `mariadb`."""
    version: str
    """As it reports itself."""
    cpu_s: float | None
    """All its processes together; None where it runs elsewhere, on behalf of the user."""


# --- The steps of a search.


class Purpose(StrEnum):
    """Why a search made a load."""

    ALONE = "alone"
    """One connection: what a request takes when nobody is before it."""
    WARM_UP = "warm-up"
    """After a start of the server, before anything is judged."""
    CLOSED = "closed"
    """Several connections, each of which sends its next request as soon as it is answered."""
    RATE = "rate"
    """An open loop, of which is judged whether the rate held."""
    CONFIRM = "confirm"
    """The same, of a finalist after it was chosen: what is reported of it."""
    PROOF = "proof"
    """The rate that is claimed, on a fresh start."""
    LATENCY = "latency"
    """A part of the capacity that was found: how long responses take there."""
    OVERLOAD = "overload"
    """More than the capacity that was found, for a while: what is answered, and how long it is felt."""
    PASTED = "pasted"
    """The rate that is claimed, on the command line that is pasted."""


@dataclass(frozen=True)
class Step:
    """Where a load stands in a search."""

    number: int
    """Of what was requested, from 1. A load that the machine spoilt was made again under its number: the last
    counts."""
    boot: int
    """Which start of a server it ran on, from 1, counted over the whole run."""
    purpose: Purpose
    spent_s: float
    """Seconds of measuring when it had ended, since the search began; a pause before `--resume` not counted."""
    rising_per_s: float | None = None
    """Slope of the backlog, requests a second, for which the load was ended early; None: it was not."""
    backlog_per_s: float | None = None
    """Slope of the backlog over the whole load, requests a second; None: of a closed loop, or too little was seen."""
    backlog_error_per_s: float | None = None
    """Its standard error."""
    final: bool = False
    """Of a tuning over hosts: whether it was made on the host of the proof."""


# --- CPU shared with the load generator.

SHARED_NOTED, SHARED_SPOILS = 0.1, 0.5
"""Shares of the server's CPUs that other processes used.

Below a tenth the server of a single CPU can do a tenth more at most by itself, of several CPUs less: no more than a
busy pair of equals differs by in a few blocks. From a half on, a rate is as much the others' as the server's. CPU per
request counts the server alone, and is judged in either case.
"""


def shared_share(
    placed: Placement,
    load: LoadFacts,
    upstream: UpstreamFacts | None = None,
    companions_cpu_s: float = 0.0,
    link: LinkFacts | None = None,
) -> float:
    """Return the largest share of one of the server's CPUs that generator, link, third party and databases used.

    Each is taken to use all CPUs it was given alike; 0 where none of them is the server's.
    """
    span_s = load.duration_s
    if span_s <= 0:
        return 0.0
    by_load_s = load.generator_cpu_s + (link.cpu_s or 0.0 if link else 0.0)
    beside_s = companions_cpu_s + (upstream.cpu_s if upstream and not upstream.agent else 0.0)
    used: dict[int, float] = {}
    for cpus, cpu_s in ((placed.load_cpus, by_load_s), (placed.upstream_cpus, beside_s)):
        for cpu in cpus:
            used[cpu] = used.get(cpu, 0.0) + cpu_s / span_s / len(cpus)
    return min(max((used.get(cpu, 0.0) for cpu in placed.server_cpus), default=0.0), 1.0)


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

    @property
    def is_missing(self) -> bool:
        """Whether something of the machine was missing, so that no server of it was started."""
        return self in (FailureKind.INSTALL, FailureKind.UNAVAILABLE)


@dataclass(frozen=True)
class RanOn:
    """A host that ran a trial, where several hosts ran the trials of a file."""

    name: str
    """Of the host; agents of one host share it."""
    facts: Mapping[str, str | int | float | list[int] | None] = field(default_factory=dict)
    """Of the machine, by name, as in a header (`run/machine/facts.py`)."""


_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(: .*)?")


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
    step: Step | None = None
    """Of a search; None: of a race."""
    machine: RanOn | None = None
    """Of several; None: that of the header."""

    @property
    def raised(self) -> str:
        """The last exception in the server's output, as Python prints it below its frames; empty: there is none."""
        pairs = zip(self.last_lines, self.last_lines[1:], strict=False)
        below = [line for before, line in pairs if before.startswith("  ")]
        return next((line for line in reversed(below) if _EXCEPTION.fullmatch(line)), "")


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
    """None: none were requested."""
    companions: tuple[CompanionFacts, ...] = ()
    link: LinkFacts | None = None
    """None: loopback."""
    form: AnswerForm | None = None
    """None: not looked at, as the answer is not a body over HTTP/1.1."""
    step: Step | None = None
    """Of a search; None: of a race."""
    machine: RanOn | None = None
    """Of several; None: that of the header."""

    @property
    def doubts(self) -> frozenset[FlagKind]:
        """The kinds of flag that set it aside."""
        return frozenset(flag.kind for flag in self.flags if flag.severity is Severity.INVALID)

    @property
    def valid(self) -> bool:
        """Whether no flag sets it aside."""
        return not self.doubts

    @property
    def failed(self) -> int:
        """Requests without a right answer. A closed loop always ends with some in flight: those are none."""
        return self.load.count_failed(self.trial.load.pace.kind)

    @property
    def for_cpus(self) -> int:
        """For how many CPUs it was measured, whether there were as many or not."""
        return self.trial.limits.for_cpus(len(self.placement.server_cpus))

    @property
    def scope(self) -> str:
        """The same in words, as in `Limits.scope`."""
        return self.trial.limits.scope(len(self.placement.server_cpus))

    @property
    def shared_share(self) -> float:
        """The largest share of one of the server's CPUs that was used by what was measuring it."""
        companions_cpu_s = sum(companion.cpu_s or 0.0 for companion in self.companions)
        return shared_share(self.placement, self.load, self.upstream, companions_cpu_s, self.link)

    @property
    def server_cpus(self) -> int:
        """How many CPUs the server had: of those it shared only those of which others used less than a half."""
        placed = self.placement
        return len(placed.server_cpus) if self.shared_share < SHARED_SPOILS else placed.own_cpus

    @property
    def cpu_us_per_request(self) -> float | None:
        """Server CPU per right answer, microseconds; both over the measured span."""
        return self.server.cpu_s * 1e6 / self.load.answers if self.load.answers else None

    @property
    def memory_bytes(self) -> int:
        """The most memory the server had: shared pages once where that is known."""
        return self.server.pss_peak_bytes or self.server.rss_peak_bytes

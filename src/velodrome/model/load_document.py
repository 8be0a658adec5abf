"""The `velodrome/load/1` document as its schema spells it, field by field; `docs/results.md` says what each means.

The engine writes most of it (`crates/engine/src/results.rs`), the command line adds `server`, `limit`, `notes`,
`conditions` and, where requested, `idle`. Only the schema is made of this: a document is passed on as it came.
"""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from velodrome.model.bottleneck import Limit, ServerUse
from velodrome.model.diagnosis import Suspected
from velodrome.model.load import Arrivals
from velodrome.model.measurement import IdleFacts

SCHEMA = "velodrome/load/1"

Percentiles = TypedDict(
    "Percentiles",
    {
        "mean": float | None,
        "p50": float | None,
        "p75": float | None,
        "p90": float | None,
        "p95": float | None,
        "p99": float | None,
        "p99.9": float | None,
        "max": float | None,
    },
)
"""Milliseconds; null: not measured, or too few requests."""


class FromBoth(TypedDict):
    """Milliseconds from when requests were due, and from when they were sent."""

    due: Percentiles
    sent: Percentiles


class Deliveries(TypedDict):
    """Of messages to a room: each member's getting each."""

    count: int
    latency_ms: FromBoth
    again: int
    late: int
    strangers: int


class Phases(TypedDict):
    """Milliseconds of each phase; null: not had."""

    connect: Percentiles | None
    tls: Percentiles | None
    first_byte: Percentiles | None
    last_byte: Percentiles | None


class Connections(TypedDict):
    """How connections fared over the whole run."""

    asked: int
    opened: int
    reopened: int
    answered: int


class Fairness(TypedDict):
    """How evenly right answers came to the connections of a closed loop, within the span."""

    connections: int
    answers: int
    least: int
    most: int
    jain: float | None
    jain_short_term: float | None
    mean_ms: float | None
    median_connection_ms: float | None


class Streams(TypedDict):
    """Requests that the connections can carry at once."""

    asked: int
    without_room: int


class Generator(TypedDict):
    """What the load cost the machine it came from."""

    cpu_s: float
    cpu_user_s: float
    cpu_sys_s: float
    transport: str
    transport_because: Literal[
        "asked", "unix-socket", "open-loop", "large-answers", "closed-loop", "no-io-uring"
    ]
    unread_bytes: int | None
    dropped_bodies: int
    compared_every: int | None
    run_queue_s: float | None
    priority: NotRequired[Literal["real-time", "given-up", "normal"]]
    awake_s: NotRequired[float]
    saturated: bool
    threads: int
    debug: bool


class Sockets(TypedDict):
    """What TCP reported of connections that were looked at."""

    looked: int
    with_unsent: int
    unsent_bytes_max: int
    rtt_us: int | None
    retransmitted: int


class Second(TypedDict):
    """A second of the measured span."""

    at_s: float
    requests: int
    ok: int
    errors: int
    in_flight: int
    waiting: int
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


class Step(TypedDict):
    """A step of a load whose rate changes."""

    at_s: float
    duration_s: float
    rate: float
    to_rate: float
    requests: int
    ok: int
    throughput_rps: float
    outcomes: dict[str, int]
    latency_ms: FromBoth
    lag_ms: Percentiles


class ByRequest(TypedDict):
    """One of the requests of a mix."""

    name: str
    method: str
    weight: float
    requests: int
    ok: int
    outcomes: dict[str, int]
    latency_ms: FromBoth


class Histograms(TypedDict):
    """HdrHistogram V2, deflated, base64; nanoseconds."""

    due: str
    sent: str
    deliveries: str | None
    lag: str | None
    connect: str | None
    tls: str | None
    first_byte: str | None
    last_byte: str | None


class Piece(TypedDict):
    """A piece of a schedule as it was requested."""

    rate: float
    to_rate: float | None
    duration_s: float


class Asked(TypedDict):
    """The load as it was requested."""

    model: Literal["open", "closed"]
    rate: float | None
    schedule: list[Piece]
    arrivals: Arrivals | None
    connections: int
    streams: int
    protocol: str
    mode: str | None
    message_bytes: int | None
    at_once: int | None
    call: str | None
    kind: str | None


class Example(TypedDict):
    """A failure; its text may come from the server."""

    outcome: str
    text: str


class Found(TypedDict):
    """Where the limit was."""

    at: Limit
    sentence: str
    facts: str


class Because(TypedDict):
    """A figure that decided a condition."""

    metric: str
    value: float | None
    limit: float
    unit: str
    lower_bound: bool
    missing: str
    but: str


class Condition(TypedDict):
    """What became of a condition."""

    condition: str
    holds: bool | None
    because: list[Because]
    sentence: str


class Agent(TypedDict):
    """One of several agents that carried the load together. Milliseconds; shares of 1."""

    name: str
    host: str
    address: str
    cpus: list[int]
    lost: str | None
    requests: int
    ok: int
    lag_p99_ms: float | None
    lag_max_ms: float | None
    cpu_share: float | None
    steal_share: float | None
    transport: str | None
    flags: list[str]
    offset_ms: float | None
    uncertainty_ms: float | None
    drift_ppm: float | None
    drift_uncertainty_ppm: float | None
    round_trip_ms: float | None


class LoadDocument(TypedDict):
    """What a load gave."""

    requests: int
    ok: int
    duration_s: float
    throughput_rps: float
    outcomes: dict[str, int]
    latency_ms: FromBoth
    first_message_ms: FromBoth | None
    deliveries: Deliveries | None
    lag_ms: Percentiles
    phases_ms: Phases
    fastest_ms: float | None
    connections: Connections
    fairness: NotRequired[Fairness | None]
    streams: Streams
    mean_in_flight: float | None
    answered_before_read: int
    resent: int
    generator: Generator
    sockets: Sockets
    flags: list[str]
    series: list[Second]
    steps: list[Step]
    by_request: list[ByRequest]
    hdr: Histograms
    load: Asked
    examples: list[Example]
    server: ServerUse | None
    limit: Found
    suspects: NotRequired[list[Suspected]]
    notes: NotRequired[list[str]]
    conditions: list[Condition]
    idle: NotRequired[IdleFacts]
    agents: NotRequired[list[Agent]]

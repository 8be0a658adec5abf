"""What held a load back, the facts that show it, and the one rule for «was it the generator?».

The engine sets its flags by the same bound (`SATURATED` in `crates/engine/src/results.rs`); what is decided of a
measurement on this side of it is decided by `generator_fault`.
"""

from dataclasses import dataclass
from enum import StrEnum


class Limit(StrEnum):
    """Where the limit was."""

    GENERATOR = "generator"
    """Its own CPU, or its waiting for a CPU: the figures are not the server's."""
    SERVER = "server"
    SCHEDULE = "schedule"
    """Nobody: an open loop requested so much and got it."""
    CONNECTIONS = "connections"
    """Little's law: so many at once, each so long, make so many a second."""
    LINK = "link"
    """The network between: its round trip, or its losses."""
    UNKNOWN = "cannot tell"


SATURATED = 0.9
"""From this share of its CPUs on the generator may have been the limit; it is the engine's bound too."""
USED_UP = 0.85
"""From this share of a CPU, or of the slots, on there is no room left to speak of: requests come in clumps, and waking
up takes the rest."""
WAITED = 0.1
"""From this share of the time on, waiting for a CPU matters."""


class GeneratorFault(StrEnum):
    """Why figures are the generator's own, not the server's."""

    DEBUG = "built without optimisation"
    SATURATED = "its CPUs were full"
    QUEUED = "it waited for a CPU that others had"
    LAGGED = "it sent requests late"


def generator_fault(
    cpu_share: float, *, queued_share: float = 0.0, lagged: bool = False, debug: bool = False
) -> GeneratorFault | None:
    """Return why the figures of a load are the generator's, the gravest reason first; None: they are not.

    `cpu_share` is its CPU time over that its threads could have had, `queued_share` what they waited for a CPU of that
    time; `lagged` whether its lateness is a good part of the latency. Waiting alone counts where it fills up its time,
    made requests late, or is long.
    """
    if debug:
        return GeneratorFault.DEBUG
    if cpu_share > SATURATED:
        return GeneratorFault.SATURATED
    if queued_share >= WAITED and (
        cpu_share + queued_share > SATURATED or lagged or queued_share >= 2 * WAITED
    ):
        return GeneratorFault.QUEUED
    return GeneratorFault.LAGGED if lagged else None


@dataclass(frozen=True)
class ServerUse:
    """What the threads of a server on this machine had of its CPUs over the measured span."""

    span_s: float
    """How long it was looked at: the measured span, from the first look on."""
    processes: int
    threads: int
    cpu_s: float
    queued_s: float
    """How long they waited for a CPU, added up."""
    busiest_cpu_s: float
    """Of the thread that wanted most: its CPU time, and how long it waited for a CPU."""
    busiest_queued_s: float
    cpus: int
    """It may run on."""


@dataclass(frozen=True)
class Evidence:
    """The facts of a load that show its limit. Shares are from 0 to 1; None: not reported."""

    open_loop: bool
    span_s: float
    requests: int
    ok: int
    answered_rps: float
    due_rps: float | None
    """Of an open loop."""
    at_once: int
    """Requests that the connections can carry at once."""
    mean_ms: float | None
    """From sent."""
    fastest_ms: float | None
    """The shortest of the whole run from sent: what an answer takes when nobody is before it."""
    threads: int
    transport: str
    cpu_share: float
    """Of the CPU time that the generator's threads could have had."""
    queued_share: float | None
    """Of their time, how much they waited for a CPU."""
    real_time: bool
    """Whether they were in the scheduler's real-time class, before all others."""
    awake_share: float
    """Of the time, in which they waited awake for requests about to be due."""
    lag_p99_ms: float | None
    lagged: bool
    """Whether its lag is a good part of the latency."""
    debug: bool
    capped: bool
    """Whether an open loop had all its connections in use."""
    looks: int
    """How often sockets were looked at, and how often bytes lay in a socket that could not go out."""
    looks_unsent: int
    rtt_ms: float | None
    """Shortest round trip that TCP saw."""
    retransmitted: int
    arriving_ms: float | None = None
    """From the first byte of an answer to its last, on average; 0: they came in one piece."""
    server: ServerUse | None = None
    """None: it is elsewhere, or may not be looked at."""
    silent_after_s: float | None = None
    """From there on no right answer came, though requests were tried to the end."""
    cpus: int | None = None
    """That the generator may use."""
    scatter: float = 0.0
    """Of an open loop: by which part of its rate its requests may miss it by chance."""


@dataclass(frozen=True)
class Bottleneck:
    """The answer."""

    at: Limit
    sentence: str
    """Who it was, why, and what to do."""
    facts: str
    """What shows it, as a sentence."""

"""The opinion: what a study's measurements say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from velodrome.model.claim import Compared, Finding, Judged
from velodrome.model.quantity import Interval


class Outcome(StrEnum):
    """What a question came to."""

    WINNER = "winner"
    TIE = "tie"
    CANNOT_TELL = "cannot-tell"


@dataclass(frozen=True)
class DriverView:
    """Which generator a load was made by, and how far its figures reach."""

    name: str
    version: str
    """Empty: velodrome's own."""
    basis: str
    """What its latencies are: `from when due`, or in its own words `service time (ghz)`."""
    checks: str
    """What it looks at to call an answer right."""
    untold: tuple[str, ...]
    """What it does not tell, of what velodrome's own does."""
    notes: tuple[str, ...]
    """How it did not do quite what was asked."""
    generator_cpus: float
    """CPUs it used, in the mean over the blocks."""
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepView:
    """One step of a load whose rate changes; of percentiles the lowest and the highest of the blocks, from when due."""

    at_s: float
    rate: float
    to_rate: float
    achieved_rps: float
    p50_ms: tuple[float, float] | None
    p99_ms: tuple[float, float] | None
    errors: int
    kept_up: bool
    """In every block what fell due in it was answered in it, but for what was being answered at its end."""


@dataclass(frozen=True)
class LatencyView:
    """Latency of one contestant under one load; histograms of all valid blocks merged. Milliseconds.

    Of a generator without histograms the percentiles of several blocks cannot be merged, and are not averaged:
    then `between` holds the bounds they lie within.
    """

    load: str
    p50_ms: float | None
    p90_ms: float | None
    p99_ms: float | None
    p99_9_ms: float | None
    max_ms: float | None
    achieved_rps: float
    errors: int
    requests: int
    curve_due: tuple[tuple[float, float], ...]
    """(percentile, milliseconds), for the percentile plot, from when requests were due."""
    curve_sent: tuple[tuple[float, float], ...]
    fell_behind: bool = False
    """An open loop got clearly less than its rate: latency would tell how long the run was, and is None."""
    by: DriverView | None = None
    """None: velodrome's own, from when due."""
    between: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Percentile (`p99_ms`) to the lowest and highest of the blocks, where it is not known better."""
    cpu_us_per_request: float | None = None
    """Of the server, in the mean over the blocks."""
    steps: tuple[StepView, ...] = ()
    """Of a load whose rate changes: latency over all its rates tells of none of them."""


@dataclass(frozen=True)
class Standing:
    """One contestant in one question."""

    contestant: str
    stack: str
    title: str
    rank: int | None
    """1 is first; equal ranks are ties; None: nothing valid to rank."""
    throughput_rps: Interval | None
    cpu_us_per_request: Interval | None
    memory_bytes: int | None
    latency: tuple[LatencyView, ...]
    blocks_done: int
    blocks_valid: int
    ratio_to_best: Interval | None
    """Throughput over the best one's, paired by block."""
    ceiling_rps: float | None
    """What Little's law allows: requests served at once over the time each one waits. None: not bounded so."""
    ceiling: str
    """The same as arithmetic to read, `2 ÷ 0.2 s = 10/s`, or empty."""
    notes: tuple[str, ...]
    """Flags and failures, as sentences."""
    failed: str = ""
    """Why it has no measurement at all, or empty."""
    deploy: str = ""
    """What to paste: a command line, for an app of the user's own perhaps with the lines of a file."""
    called: str = ""
    """How the contestant reads in a sentence: title, workers, versions."""
    python: str = ""
    """Interpreter of all servers of the race (`--python`), where it was told."""
    again: str | None = ""
    """The command that measures it again, where the study has no file that names it; empty: `velodrome run` does;
    null: none does, because the source it ran on was laid out for that race alone."""


@dataclass(frozen=True)
class Answer:
    """The verdict on one question."""

    question: str
    about: str
    outcome: Outcome
    best: tuple[str, ...]
    """Labels of the contestants tied for first, the recommended one first."""
    sentence: str
    """What a human needs to know, with the interval."""
    why: tuple[str, ...]
    """Explanations: Little's law, cost, what was set aside."""
    deploy: str
    standings: tuple[Standing, ...]
    to_settle: str = ""
    """For `cannot tell` and ties: how many more blocks would settle how small a difference."""
    limit: str = ""
    """What limited the recommended one, its CPU, its slots, the load or the generator; empty: not known."""


@dataclass(frozen=True)
class ProfileView:
    """What a profile of one contestant in one question tells; see `model/profile.py`."""

    question: str
    contestant: str
    load: str
    rate: float | None
    """Requests asked a second, None in a closed loop: profiles are compared at one rate."""
    profiler: str
    samples: int
    idle_share: float | None
    opaque_share: float | None
    cpus: float | None
    """CPUs the server used while it was loaded."""
    achieved_rps: float | None
    depth_mean: float | None
    depth_max: int | None
    by_part: Mapping[str, float]
    by_package: Mapping[str, float]
    collapsed: str
    speedscope: str
    notes: tuple[str, ...]
    failed: str


@dataclass(frozen=True)
class Verdict:
    """The opinion on a whole study."""

    study: str
    title: str
    seed: int
    answers: tuple[Answer, ...]
    set_aside: tuple[str, ...]
    """One sentence per flagged or failed measurement."""
    notes: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    finished: str = ""
    """How the study ended: settled, budget spent, interrupted."""
    claims: tuple[Judged, ...] = ()
    """The published conclusions, judged again."""
    tables: tuple[Compared, ...] = ()
    """Published figures beside what was measured here."""
    findings: tuple[Finding, ...] = ()
    """What the experiments came to."""
    profiles: tuple[ProfileView, ...] = ()
    form: str = "full"
    """Of the study: `full` or `quick`."""

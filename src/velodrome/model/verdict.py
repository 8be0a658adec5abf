"""The opinion: what a study's measurements say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from velodrome.model.claim import Compared, Finding, Judged
from velodrome.model.diagnosis import Suspected
from velodrome.model.quantity import Interval
from velodrome.model.workers import WorkerCheck


class Outcome(StrEnum):
    """What a question came to."""

    WINNER = "winner"
    TIE = "tie"
    DOES_NOT_MATTER = "does-not-matter"
    """Those tied for first differ by less than the margin, whatever more blocks would show: what a request costs is the
    app's own."""
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
    """How it did not do quite what was requested."""
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
    p50_by_connection: bool = False
    """Whether `p50_ms` is what the median connection of a closed loop waits on average: its server starved others."""
    within: Mapping[str, tuple[float, float | None]] = field(default_factory=dict)
    """Percentile (`p99_ms`) with fewer than 30 requests beyond it to its 95 % interval; None: not bounded above."""
    steps: tuple[StepView, ...] = ()
    """Of a load whose rate changes: latency over all its rates tells of none of them."""
    compares: bool = True
    """Whether it may stand beside that of other contestants: not where each server of an app set its own load, in a
    closed loop. Reports then show none."""


@dataclass(frozen=True)
class Standing:
    """One contestant in one question."""

    contestant: str
    stack: str
    title: str
    rank: int | None
    """The best place it may have, `rank_low`; None: too little counts to rank it."""
    throughput_rps: Interval | None
    cpu_us_per_request: Interval | None
    memory_bytes: int | None
    latency: tuple[LatencyView, ...]
    blocks_done: int
    blocks_valid: int
    ratio_to_best: Interval | None
    """Throughput over that of the best contestant, paired by block."""
    ceiling_rps: float | None
    """What Little's law allows: requests served at once over the time each waits. None: not bounded so."""
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
    """Interpreter of all servers of the race (`--python`), where it was given."""
    again: str | None = ""
    """The command that measures it again, where the study has no file that names it; empty: `velodrome run` does;
    null: none does, because the source it ran on was laid out for that race alone."""
    rank_low: int | None = None
    """The best place that it may have: one more than the contestants that are clearly better."""
    rank_high: int | None = None
    """The worst place that it may have: as many as are not clearly worse."""
    bound: str = ""
    """`at least`: the generator was its limit; `at most`: it spoilt blocks by itself; empty: no bound."""
    stopped: str = ""
    """Why it was not run to the end of the race, as a sentence, or empty."""

    @property
    def place(self) -> str:
        """The places that it may have: `3`, `1–2`; empty: it has none."""
        if self.rank is None:
            return ""
        low, high = self.rank_low or self.rank, self.rank_high or self.rank
        return f"{low}" if low == high else f"{low}–{high}"


class Basis(StrEnum):
    """Which cost of a request its parts are shares of."""

    CPU = "cpu"
    TIME = "response-time"


@dataclass(frozen=True)
class OwnShare:
    """Where the cost of a request comes from, measured on one contestant: server, framework, the app's own code."""

    contestant: str
    basis: Basis
    """CPU in a closed loop for an app bound by CPU; the median response time at a low rate for an app that waits."""
    total: float
    """Of a request to the app: microseconds of CPU, or milliseconds of response time."""
    server: Interval
    """Share of an empty handler on the same server: the most that any server could save."""
    beneath: Interval | None
    """Share of an empty route of the app's framework on it: server and framework together; None: not known."""
    framework: str = ""
    rate: float | None = None
    """The low rate, for response times."""
    functions: Mapping[str, float] = field(default_factory=dict)
    """Share of the samples at work by function, the heaviest first; empty: no profile was taken."""


@dataclass(frozen=True)
class Answer:
    """The verdict on one question."""

    question: str
    about: str
    outcome: Outcome
    best: tuple[str, ...]
    """Labels of the contestants tied for first, the recommended contestant first."""
    sentence: str
    """What a human needs to know, with the interval."""
    why: tuple[str, ...]
    """Explanations: Little's law, cost, what was set aside."""
    deploy: str
    standings: tuple[Standing, ...]
    to_settle: str = ""
    """For `cannot tell` and ties: how many more blocks would settle how small a difference."""
    limit: str = ""
    """What limited the recommended contestant: its CPU, its slots, the load or the generator; empty: not known."""
    cpus: int | None = None
    """For how many CPUs the answer is; None: not known, as where nothing was measured."""
    checks: tuple[WorkerCheck, ...] = ()
    """What more workers came to: of the recommended contestant, then of those that are out by it."""
    own_share: OwnShare | None = None
    """How much of a request is the app's own; None: it was not measured."""


@dataclass(frozen=True)
class ProfileView:
    """What a profile of one contestant in one question tells; see `model/profile.py`."""

    question: str
    contestant: str
    load: str
    rate: float | None
    """Requests due per second, None in a closed loop: profiles are compared at one rate."""
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
    suspects: tuple[Suspected, ...] = ()
    """Faults that its figures make likely; nothing is proven of them."""

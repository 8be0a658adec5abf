"""What a search for a limit tries, what it comes to, and the documents it prints (`judge/search/` searches)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from velodrome.model.diagnosis import Suspected
from velodrome.model.load import INDEPENDENT, Arrivals, Load
from velodrome.model.load_document import LoadDocument
from velodrome.model.measurement import FlagKind, Latency, Measurement
from velodrome.model.quantity import Interval


class Ending(StrEnum):
    """How a search can end."""

    CONVERGED = "converged"
    SPENT = "not converged"
    """The budget was spent before the interval was as narrow as requested; it is reported as it is."""
    NEVER = "never holds"
    """Not even at the lowest that was to be tried."""
    BEYOND = "at least"
    """It holds as far as could be tried; what stopped the search is reported."""
    CANNOT = "cannot tell"


@dataclass(frozen=True)
class Strain:
    """How much of what a condition allows a load used up."""

    of: str
    """The condition."""
    found: float
    """Requests beyond its limit."""
    allowed: float
    """As many may be; above 0."""
    limit_ms: float = 0.0
    """Of a latency; 0: of something else."""
    share: float = 0.0
    """Of all requests, as many may be later than that."""

    @property
    def times(self) -> float:
        """What was seen over what is allowed: 1 is the edge."""
        return self.found / self.allowed


@dataclass(frozen=True)
class Probe:
    """A rate that was tried."""

    rate: float
    held: bool | None
    """None: it is undecided whether it held."""
    why: str = ""
    """What broke, or why it is undecided: a sentence without its end."""
    spoilt: str = ""
    """Why the trial says nothing of the server: the generator was the limit."""
    everywhere: bool = False
    """Whether it breaks at any rate for the same reason, so that there is none to look for."""
    overdone: bool = False
    """Whether it broke because the server did not keep up."""
    boot: int = 0
    """On which start of the server it was tried, from 0."""
    seconds: float = 0.0
    """Measured; 0: not known."""
    strains: tuple[Strain, ...] = ()
    """Of each condition, where all of them are shares of requests; else empty."""


@dataclass(frozen=True)
class Claim:
    """A rate that a server was shown to hold: the lower end of the interval, or less where that did not hold."""

    rate: float
    proven: bool
    """Whether the last of the proofs held, at that rate."""
    proofs: tuple[Probe, ...]
    """Long loads, each on a boot of its own; all but the last failed."""

    @property
    def seconds(self) -> float:
        """Length of the last proof."""
        return self.proofs[-1].seconds if self.proofs else 0.0


@dataclass(frozen=True)
class RateFound:
    """What came of a search for the highest rate that holds."""

    ending: Ending
    interval: Interval | None
    """Where the edge is, with 95 %; of `BEYOND` the highest rate that held."""
    because: str
    """Why it did not converge; empty: it did."""
    probes: tuple[Probe, ...]
    boots: int = 1
    """Starts of the server within the interval."""
    claim: Claim | None = None
    """None: nothing was proven."""


@dataclass(frozen=True)
class Sample:
    """A closed loop that was run."""

    connections: int
    rps: float
    spoilt: str = ""
    """Why it says nothing of the server: the generator was the limit."""


@dataclass(frozen=True)
class ConnectionsFound:
    """What came of a search for the connections at which throughput stops rising."""

    ending: Ending
    connections: Interval | None
    """Enough of them, with the interval in which 95 % of the most is reached."""
    rps: Interval | None
    """Throughput with so many."""
    because: str
    """Why it did not converge; empty: it did."""
    samples: tuple[Sample, ...]


class Peak(StrEnum):
    """What is known of the connections from which on throughput falls."""

    FOUND = "found"
    BEYOND = "beyond what was tried"
    """The law has a peak, further out than anything that was measured."""
    NONE = "no peak within what was tried"
    """That throughput ever falls cannot be distinguished from noise."""


@dataclass(frozen=True)
class Scalability:
    """X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1)), each with a 95 % interval."""

    rate: Interval
    """λ: answers a second of one connection, from the law."""
    contention: Interval
    """σ: the serial part of the work."""
    coherency: Interval
    """κ: what each pays for each other; above 0 throughput falls in the end."""
    peak: Peak
    peak_connections: Interval | None
    """√((1 − σ) ÷ κ); its upper end is infinite where κ may be 0. None: κ itself is not above 0."""
    peak_rps: Interval | None
    """Throughput there."""
    misfit: float
    """Largest distance of a mean from the law, as part of it."""
    fits: bool
    """Whether the means lie around the law no further than repeats lie around their means (5 %)."""
    points: int
    """Closed loops it was fitted to."""


# --- The document `velodrome/search/1` (`docs/load-results.md` describes each field).
#
# Only the schema is made of this: `report/searches.py` writes the document.

SEARCH_SCHEMA = "velodrome/search/1"


class RateSearchDocument(TypedDict):
    """What `velodrome load -R auto --json` prints."""

    schema: Literal["velodrome/search/1"]
    sought: Literal["rate"]
    conditions: list[str]
    arrivals: Arrivals
    ending: Ending
    interval: Interval | None
    because: str
    boots: int
    claim: Claim | None
    sentence: str
    trials: list[Probe]
    best: LoadDocument | None


class ConnectionsSearchDocument(TypedDict):
    """What `velodrome load -c auto --json` prints."""

    schema: Literal["velodrome/search/1"]
    sought: Literal["connections"]
    conditions: list[str]
    ending: Ending
    connections: Interval | None
    rps: Interval | None
    because: str
    sentence: str
    trials: list[Sample]
    best: LoadDocument | None


SearchDocument = RateSearchDocument | ConnectionsSearchDocument


class Bound(StrEnum):
    """What a contestant has no more of."""

    CPU = "cpu"
    """Its CPUs, or the single CPU that its only process can use."""
    SLOTS = "slots"
    """Requests it can serve at once."""
    OTHER = "other"
    """Neither: what it waits on, a lock, the network."""


@dataclass(frozen=True)
class Bottom:
    """What bounds a contestant, as far as its own use shows."""

    bound: Bound
    sentence: str


@dataclass(frozen=True)
class LoadLatency:
    """How long responses take at a part of the capacity, from when requests were due."""

    share: float
    """Of the capacity, 0 to 1."""
    rate: float
    """Requests per second that were due."""
    percentile: float
    """That of the SLO, else 99; 0 to 100."""
    ms: float | None
    """Milliseconds, of the requests of all boots together; None: too few of them, or `why`."""
    low_ms: float | None
    high_ms: float | None
    """Ends of its 95 % interval by order statistics, milliseconds, where fewer than 30 requests lie beyond the
    percentile and its upper end is known; else None."""
    requests: int
    boots: int
    """Starts of the server that they were sent to."""
    why: str = ""
    """Why it says nothing of the server; empty: it does."""


@dataclass(frozen=True)
class Overload:
    """What a server did when it got more than its capacity for a while, and what came after."""

    times: float
    """Of the capacity: 1.5 is half as much again."""
    rate: float
    """Requests per second that were due meanwhile."""
    seconds: float
    """How long."""
    goodput_rps: float | None
    """Right answers that arrived meanwhile, per second. None: `why`."""
    failed: float | None
    """Share of the requests that fell due meanwhile and were never answered right, 0 to 1."""
    usual_rate: float
    """Requests per second before and after it."""
    normal_ms: float | None
    """A second whose p99 is no higher, milliseconds, is normal (`judge/search/load_levels.py`)."""
    back_s: float | None
    """Seconds from the end of the overload until it was normal again. None: not within `watched_s`, or `why`."""
    watched_s: float
    """How long it was looked at afterwards."""
    why: str = ""
    """Why it says nothing of the server, or that the server died; empty: neither."""


@dataclass(frozen=True)
class RateCapacity:
    """The highest rate at which a condition holds."""

    conditions: tuple[str, ...]
    found: RateFound
    best: Measurement | None
    """Of the highest rate that held."""
    bottom: Bottom | None
    trials: int
    """Loads that were measured, the first looks included."""
    seconds: float
    """It took."""
    arrivals: Arrivals = INDEPENDENT
    """Of its open loops."""
    load: tuple[LoadLatency, ...] = ()
    """Latency at parts of the estimate, rising."""
    overload: tuple[Overload, ...] = ()
    """At multiples of the estimate, rising."""
    cold_start_s: Interval | None = None
    """Shortest, median and longest time from the start of a server's process to its first right answer, seconds."""
    cold_starts: int = 0
    """Starts that it is of."""
    left_out: tuple[str, ...] = ()
    """What was not measured of this, each with the reason."""
    folder: str = ""
    """Of its measurements; empty: they were not stored."""
    suspects: tuple[Suspected, ...] = ()
    """Faults that its figures make likely; nothing is proven of them."""

    @property
    def ending(self) -> Ending:
        """How the search ended."""
        return self.found.ending


@dataclass(frozen=True)
class Knee:
    """Where throughput of a closed loop stops rising, and the law it follows."""

    found: ConnectionsFound
    law: Scalability | None
    """None: too few numbers of connections could be measured."""
    best: Measurement | None
    bottom: Bottom | None
    trials: int
    seconds: float
    cold_start_s: Interval | None = None
    cold_starts: int = 0
    folder: str = ""
    suspects: tuple[Suspected, ...] = ()

    @property
    def ending(self) -> Ending:
        """How the search ended."""
        return self.found.ending


# --- The document `velodrome/capacity/1` (`docs/capacity.md` describes each field).
#
# Only the schema is made of this: `report/searches.py` writes the document.

CAPACITY_SCHEMA = "velodrome/capacity/1"


class Latencies(TypedDict):
    """Milliseconds from when requests were due, and from when they were sent."""

    due: Latency
    sent: Latency


class Noted(TypedDict):
    """What to know of a load before its figures are believed."""

    kind: FlagKind
    sentence: str


class Measured(TypedDict):
    """What one load gave and cost."""

    load: Load
    throughput_rps: float
    latency_ms: Latencies
    errors: int
    requests: int
    cpu_us_per_request: float | None
    server_cpus: float | None
    memory_bytes: int | None
    command: list[str]
    python: str
    packages: dict[str, str]
    flags: list[Noted]


class Ends(TypedDict):
    """An estimate with its 95 % interval; null: an end that is not known."""

    low: float | None
    mid: float | None
    high: float | None


class Law(TypedDict):
    """The Universal Scalability Law of a closed loop."""

    rate: Ends
    contention: Ends
    coherency: Ends
    peak: Peak
    peak_connections: Ends | None
    peak_rps: Ends | None
    misfit: float | None
    fits: bool
    points: int


class RateCapacityDocument(TypedDict):
    """What `velodrome capacity --json` prints."""

    schema: Literal["velodrome/capacity/1"]
    sought: Literal["rate"]
    of: str
    cpus: NotRequired[int | None]
    ending: Ending
    conditions: list[str]
    arrivals: Arrivals
    interval: Interval | None
    because: str
    boots: int
    claim: Claim | None
    sentence: str
    bound: Bottom | None
    law: None
    tried: list[Probe]
    best: Measured | None
    trials: int
    seconds: float
    load: NotRequired[list[LoadLatency]]
    overload: NotRequired[list[Overload]]
    cold_start_s: NotRequired[Interval | None]
    cold_starts: NotRequired[int]
    left_out: NotRequired[list[str]]
    folder: NotRequired[str]
    suspects: NotRequired[list[Suspected]]


class KneeDocument(TypedDict):
    """What `velodrome capacity --closed --json` prints."""

    schema: Literal["velodrome/capacity/1"]
    sought: Literal["connections"]
    of: str
    cpus: NotRequired[int | None]
    ending: Ending
    conditions: list[str]
    connections: Interval | None
    rps: Interval | None
    because: str
    sentence: str
    bound: Bottom | None
    law: Law | None
    tried: list[Sample]
    best: Measured | None
    trials: int
    seconds: float
    cold_start_s: NotRequired[Interval | None]
    cold_starts: NotRequired[int]
    folder: NotRequired[str]
    suspects: NotRequired[list[Suspected]]


CapacityDocument = RateCapacityDocument | KneeDocument

"""What a search among settings tries, what it recommends, and the document it prints (`judge/tuning/` searches)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from velodrome.guest.stack import KnobValue, Stack
from velodrome.model.diagnosis import Suspected
from velodrome.model.load import INDEPENDENT, Arrivals, Limits
from velodrome.model.measurement import Measurement, Purpose
from velodrome.model.quantity import Interval
from velodrome.model.search import Measured
from velodrome.model.trial import Contestant
from velodrome.model.workers import WorkerCheck


class Goal(StrEnum):
    """What is wanted of a setting."""

    CAPACITY = "capacity"
    """The highest rate at which the SLO holds."""
    CPU = "cpu"
    """The least CPU with which it carries a rate."""
    MEMORY = "memory"
    """The least memory with which it carries a rate."""


@dataclass(frozen=True)
class Wanted:
    """What is searched, within which limits, and how long."""

    goal: Goal
    cpus: int
    rate: float = 0.0
    """To be carried, where the goal is the least CPU or memory."""
    memory_bytes: int | None = None
    most: int = 1000
    """Loads."""
    seconds: tuple[float, ...] = (1.5, 2.5, 4.0)
    """How long the first two loads of a candidate are, the next two, and those that follow."""
    slow_rate: float = 0.0
    """Requests a second below which a load takes long, because what is demanded needs so many requests."""


@dataclass(frozen=True)
class Candidate:
    """A stack with its knobs set, and what arithmetic needs to know of it."""

    contestant: Contestant
    processes: int
    """That compute at once, each on one CPU at a time."""
    slots: int | None
    """Requests it can serve at once; None: as many as come."""

    @property
    def label(self) -> str:
        """`gunicorn-gthread[threads=16,workers=2]`."""
        return self.contestant.label

    @property
    def slots_each(self) -> int | None:
        """Requests one of its processes can serve at once; None: as many as come."""
        return None if self.slots is None else self.slots // self.processes


@dataclass(frozen=True)
class Ask:
    """A load of a candidate: an open loop at a rate, or a closed loop."""

    seconds: float
    """At least: what a percentile needs, or a service that waits long, is on top."""
    rate: float = 0.0
    """0: a closed loop."""
    connections: int = 0
    fresh: bool = False
    """Whether on a server that is started for it, and warmed up."""
    purpose: Purpose = Purpose.RATE


@dataclass(frozen=True)
class Observation:
    """What it gave."""

    ask: Ask
    throughput_rps: float = 0.0
    """Answers a second, right or wrong: how many may be wrong is for `held` to say."""
    held: bool | None = None
    """Whether the rate held; of a closed loop, and where it is undecided, None."""
    why: str = ""
    """What broke."""
    overdone: bool = False
    """Whether it broke because the server could not keep up, so that `throughput_rps` is all it can do."""
    mean_ms: float | None = None
    """From sent."""
    cpu_us: float | None = None
    """Of the server, an answer."""
    memory_bytes: int | None = None
    grew_bytes: float | None = None
    """Memory that each request left behind, where it clearly rose; None: it did not."""
    spoilt: str = ""
    """Why it says nothing of the server."""
    failed: str = ""
    """Why the candidate cannot be served, or died."""
    everywhere: bool = False
    """Whether it breaks at any rate for the same reason (`why`), and so does its whole stack."""
    boot: int = 0
    """Which start of a server it is of, numbered over the whole search."""
    host: str = ""
    """That measured it, where several do."""


@dataclass(frozen=True)
class FewSlots:
    """What a look at a process of fewer slots gave."""

    slots: int
    cpu_us: float


@dataclass(frozen=True)
class Looked:
    """What the first short look at a stack says of the app on it."""

    alone_ms: float
    """What an answer takes when nobody is before it."""
    cpu_us: float
    """A request costs under load, in a process of as many slots as there are."""
    rps: float
    """Of the closed loop that was looked at."""
    memory_bytes: int | None
    processes: int
    """Of the candidate that was looked at."""
    at_once: float | None
    """Requests that one process had in work at most, where something but CPU and slots stopped it; None: nothing did.
    """
    slots: int | None = None
    """Of the process that was looked at; None: as many as it wants."""
    few: "FewSlots | None" = None
    """The same with no more slots than it needs; None: it needs them all, or there is nothing to choose."""

    def costs_us(self, slots: int | None) -> float:
        """Return what a request costs in a process of so many slots: between the two that were looked at by the
        logarithm of their number, since threads cost each other a switch and a lock now and then.
        """
        if self.few is None or slots is None or self.slots is None or slots >= self.slots:
            return self.cpu_us
        if slots <= self.few.slots:
            return self.few.cpu_us
        part = math.log(slots / self.few.slots) / math.log(self.slots / self.few.slots)
        return self.few.cpu_us + part * (self.cpu_us - self.few.cpu_us)

    @property
    def wait_ms(self) -> float:
        """What a request waits: all of its time that it does not compute."""
        return max(self.alone_ms - self.cpu_us / 1000, 0.0)


@dataclass(frozen=True)
class Forecast:
    """What arithmetic allows a candidate."""

    rps: float
    """No more than this."""
    arithmetic: str
    """`2 × 16 slots ÷ 52 ms = 615/s`."""
    needs: float
    """Requests that are in it at that rate (Little's law)."""
    memory_bytes: float | None
    """About, by the process that was looked at."""


class Fate(StrEnum):
    """What became of a candidate."""

    BEST = "best"
    RUNNER_UP = "runner-up"
    BEHIND = "behind"
    """Its interval lies below that of the best candidate."""
    EVEN = "even"
    """It was measured, and does not differ clearly from the best."""
    BY_ARITHMETIC = "by arithmetic"
    """It cannot be as good, whatever it is measured at."""
    ALIKE = "alike"
    """Arithmetic makes no difference to another of the same stack, which was measured."""
    TOO_BIG = "too much memory"
    CANNOT = "cannot carry the rate"
    FAILED = "failed"
    UNTRIED = "not tried"
    """The budget was spent before its turn."""


@dataclass(frozen=True)
class Entry:
    """A candidate at the end."""

    candidate: Candidate
    fate: Fate
    why: str
    trials: int
    value: Interval | None
    """What the goal asks for: answers a second, µs of CPU a request, or bytes; None: not measured."""
    memory_bytes: int | None
    grew_bytes: float | None
    forecast: Forecast | None
    boots: int = 0
    """Starts of its server that the value is of."""


class TuneEnding(StrEnum):
    """How a search among settings ends."""

    SETTLED = "settled"
    SPENT = "budget spent"
    """Others may be as good; the best so far is reported."""
    NEVER = "never holds"
    """No candidate holds the SLO at any rate, or carries the rate."""
    CANNOT = "cannot tell"


@dataclass(frozen=True)
class HostShare:
    """What one of several hosts did of a tuning."""

    host: str
    stacks: tuple[str, ...]
    """Of which it measured settings."""
    loads: int
    final: bool
    """Whether what is recommended was checked and proven there."""
    beside_final: Interval | None
    """How many times as much settings did there as on the host of the proof; None: nothing shows it."""
    differs: bool = False
    """Whether that is more or less by more than settings are taken for equal."""
    apart: bool = False
    """Whether its loads do not count, because it differs clearly, or because most of them were spoilt."""


@dataclass(frozen=True)
class Tuned:
    """What came of it: entries best first."""

    goal: Goal
    ending: TuneEnding
    because: str
    entries: tuple[Entry, ...]
    looks: dict[str, Looked]
    """By stack."""
    trials: int
    candidates: int
    """Of the whole grid."""
    hosts: tuple[HostShare, ...] = ()
    """Those that measured it, where agents did."""
    within: float | None = None
    """By how much, as a part, another that was tried may be better than the best; None: it is not known."""

    @property
    def best(self) -> Entry | None:
        """The recommended candidate."""
        return next((entry for entry in self.entries if entry.fate is Fate.BEST), None)

    @property
    def runner_up(self) -> Entry | None:
        """The next."""
        return next((entry for entry in self.entries if entry.fate is Fate.RUNNER_UP), None)


# --- The recommendation (`usecases/tune.py` makes it).


@dataclass(frozen=True)
class Growth:
    """Memory that rose while the recommended setting was loaded."""

    bytes_per_request: float
    at_rps: float
    seconds_to_limit: float | None
    """At that rate until the limit is reached; None: there is no limit."""
    requests_to_restart: int
    """After so many requests a worker is better replaced."""
    bytes_to_restart: int
    """The memory it has then."""
    seen_s: float = 0.0
    """For so long it was seen to rise, at the end of the load."""
    goes_on: bool = False
    """Whether it was seen for long enough, and rose no slower in the end: a cache that fills slows down."""


@dataclass(frozen=True)
class Proven:
    """A load by which a claim was to be proven, on a server that was started for it."""

    rate: float
    """Requests a second."""
    seconds: float
    held: bool | None
    """None: undecided, because of the machine or the generator."""
    why: str
    """What broke, or why it is undecided."""


@dataclass(frozen=True)
class Reason:
    """Something that would change the recommendation."""

    what: str
    """`wait` or `rate`."""
    at: float
    instead: str
    """Label of what would be better then; empty: nothing that was tried."""
    sentence: str


@dataclass(frozen=True)
class AsPasted:
    """What the lines to paste came to, started as they stand and loaded."""

    rate: float
    """Requests per second that were due: the claimed rate, or the rate that was to be carried. 0: it did not start."""
    seconds: float
    """How long it was loaded."""
    within: bool | None
    """Whether it lies within what is recommended; None: undecided."""
    why: str
    """Why it does not, or why it is undecided; empty: it does."""
    p99_ms: float | None = None
    """From due, milliseconds."""
    cpu_us: float | None = None
    """CPU time of a request, microseconds."""


@dataclass(frozen=True)
class Recommendation:
    """The setting to deploy."""

    of: str
    """What was served."""
    conditions: tuple[str, ...]
    rate: float
    """To be carried; 0: as much as can be."""
    limits: Limits
    tuned: Tuned
    title: str
    """What the recommended candidate is called: `gunicorn · gthread ×2, 16 threads`; empty: there is none."""
    runner_up: str
    proof: Measurement | None
    """The recommended setting under its last proof: at the claimed rate."""
    growth: Growth | None
    """Of its memory; None: it did not rise."""
    mind: tuple[Reason, ...]
    before: str
    """Lines to paste before the command: packages to install, a file to write, what it needs; empty: none."""
    command: str
    """To paste, with the user's own app; empty: a stack has no command line of its own."""
    python: str
    """Interpreter of the app."""
    cwd: str
    """Folder it runs in."""
    grid_trials: int
    """Loads that measuring the whole grid would have taken, about."""
    seconds: float
    variables: tuple[str, ...] = ()
    """Names of the environment variables that the app was given."""
    stack: Stack | None = None
    """The recommended candidate; None: there is none."""
    knobs: Mapping[str, KnobValue] = field(default_factory=dict)
    """All its knobs as recommended."""
    measured: str = ""
    """For what it was measured, in a sentence or two: CPUs, memory, access log."""
    withheld: bool = False
    """Whether nothing is there to paste because nothing is settled, and nobody requested it all the same."""
    arrivals: Arrivals = INDEPENDENT
    """Of the open loops that it was measured with."""
    claim: float | None = None
    """Requests a second that it holds: the lower end of the interval, or less where a proof failed; None: not
    proven."""
    proofs: tuple[Proven, ...] = ()
    """In the order they were made: each that failed lowered the claim."""
    cold_start_s: Interval | None = None
    """From start to the first right answer: shortest, median and longest of its starts, in seconds."""
    suspects: tuple[Suspected, ...] = ()
    """Faults that its figures make likely; nothing is proven of them."""
    folder: str = ""
    """Where its measurements are stored."""
    workers: WorkerCheck | None = None
    """What it came to with more workers; None: that was not looked at."""
    cpus: int = 0
    """For how many CPUs it is; 0: not known."""
    scope: str = ""
    """The same in words, as in `Limits.scope`; empty: not known."""
    pasted: AsPasted | None = None
    """What is pasted, started as it stands; None: it was not started."""


# --- The document `velodrome/tune/1` (`docs/tune.md` describes each field).
#
# Only the schema is made of this: `report/recommendation.py` writes the document.

SCHEMA = "velodrome/tune/1"


class Tried(TypedDict):
    """A candidate at the end."""

    label: str
    called: NotRequired[str]
    stack: str
    knobs: dict[str, KnobValue]
    fate: Fate
    why: str
    trials: int
    value: Interval | None
    memory_bytes: int | None
    grew_bytes: float | None
    forecast: Forecast | None
    boots: int


class TuneDocument(TypedDict):
    """What `velodrome tune --json` prints."""

    schema: Literal["velodrome/tune/1"]
    of: str
    goal: Goal
    rate: float | None
    conditions: list[str]
    arrivals: Arrivals
    limits: Limits
    cpus: NotRequired[int]
    ending: TuneEnding
    because: str
    within: NotRequired[float | None]
    """By how much, as a part, another that was tried may be better; null: it is not known."""
    sentence: str
    recommended: Tried | None
    runner_up: Tried | None
    candidates: list[Tried]
    looks: dict[str, Looked]
    mind: list[Reason]
    growth: Growth | None
    proof: Measured | None
    claim: float | None
    proofs: list[Proven]
    cold_start_s: Interval | None
    folder: str
    workers: WorkerCheck | None
    suspects: NotRequired[list[Suspected]]
    before: str
    command: str
    pasted: NotRequired[AsPasted | None]
    files: dict[str, str]
    hosts: NotRequired[list[HostShare]]
    trials: int
    grid_trials: int
    seconds: float

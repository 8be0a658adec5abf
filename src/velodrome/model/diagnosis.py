"""What `velodrome doctor` comes to: treatments, the two arms of an experiment, diagnoses and their document.

A diagnosis is a *cause* only where an arm that was treated (cured, or given a larger dose) differs from the arm as it
was; both arms are in the document.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from velodrome.guest.stack import KnobValue
from velodrome.model.quantity import Interval, significant

SCHEMA = "velodrome/doctor/1"


@dataclass(frozen=True)
class Treatment:
    """What is otherwise in a server's processes than the app and the stack have it."""

    about: str = "as it is"
    give: Mapping[str, Any] = field(default_factory=dict)
    """By the names of `guest/injected/treating.py`."""
    knobs: Mapping[str, KnobValue] = field(default_factory=dict)
    """Settings of the stack."""
    stack: str = ""
    """Another stack in its place, which the fault names in `elsewhere`; empty: the stack it is on."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the server's processes."""
    third_parties: float = 1.0
    """How many times as long the simulated third parties of the app take."""

    def __bool__(self) -> bool:
        otherwise = self.give or self.knobs or self.stack or self.environment
        return bool(otherwise) or self.third_parties != 1

    def plus(self, other: "Treatment") -> "Treatment":
        """Return both together; of lists (call sites) all, of other values the other's."""
        give = dict(self.give)
        for name, value in other.give.items():
            there = give.get(name)
            give[name] = [*there, *value] if isinstance(there, list) and isinstance(value, list) else value
        about = f"{self.about}, {other.about}" if self and other else other.about if other else self.about
        environment = {**self.environment, **other.environment}
        return Treatment(
            about,
            give,
            {**self.knobs, **other.knobs},
            other.stack or self.stack,
            environment,
            self.third_parties * other.third_parties,
        )


def slower_third_parties(times: float, called_ms: float = 0.0) -> Treatment:
    """Return what makes third parties take so many times as long: simulated ones themselves, else an app's clients.

    `called_ms`: how long these wait for one as it is; 0: they are simulated.
    """
    about = f"third parties take {significant(times)} times as long"
    if called_ms:
        return Treatment(about, {"calls-longer": (times - 1) * called_ms / 1000})
    return Treatment(about, third_parties=times)


AS_IT_IS = Treatment()
LATE_S = 0.008
"""A loop that gives no sign of life for so long is late."""
BEATING = Treatment("heartbeat", {"heartbeat": {"late_s": LATE_S}})
"""With the instrument that shows it."""
WORK_COUNTED = Treatment("work of others counted", {"work-counted": True})
COLLECTING = Treatment("collections of garbage timed", {"collections": True})


@dataclass(frozen=True)
class Figures:
    """Of one load: what arms are compared by."""

    rps: float
    """Right answers per second."""
    mean_ms: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    """CPU time of the server a right answer, microseconds."""
    errors: float
    """Share of the requests that were not answered right."""

    def of(self, metric: str) -> float:
        """Return a figure by the name of its metric."""
        value: float = getattr(self, metric)
        return value


METRICS = ("rps", "mean_ms", "p50_ms", "p99_ms", "cpu_us")
RISES = frozenset({"rps"})
"""Metrics of which more is better."""


@dataclass(frozen=True)
class Arms:
    """Both arms of an experiment, block by block, each on a server started for that block."""

    load: str
    """What both carried."""
    before: Treatment
    after: Treatment
    blocks: tuple[tuple[Figures, Figures], ...]
    """Before and after."""

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "load": self.load,
            "before": self.before.about,
            "after": self.after.about,
            "blocks": [{"before": vars(before), "after": vars(after)} for before, after in self.blocks],
        }


SHARE = "share"
"""The effect of a fault that a probe proves: the share of what it counts that the fault adds, from 0 to 1."""


@dataclass(frozen=True)
class Probe:
    """One situation that is made on purpose against a standing server, and in which something is counted."""

    name: str
    """Of `run/instruments/situations.py`."""
    about: str
    """What is done: "24 requests beside 128 idle connections"."""
    counts: str = "lost"
    """What is counted, as it follows a number: `lost`, `late`, …"""
    settings: Mapping[str, float] = field(default_factory=dict)
    unprovoked: Mapping[str, float] = field(default_factory=dict)
    """Settings without the provocation; all else is the same."""
    seconds: float = 1.0
    """How long it takes, about, where requests take next to nothing."""
    in_turn: int = 6
    """Requests that it makes one after the other, about: of a slow app it takes so much longer."""
    worth: float = 0.2
    """Share of what is counted, from which on it is worth a diagnosis."""
    warm: bool = True
    """Whether the server gets requests for a while first."""
    ends: bool = False
    """Whether it ends the server."""
    repeats: bool = False
    """Whether it does the same again and again, so that one block without a hit shows that the fault is not there."""
    hides: bool = False
    """Whether its fault hides others from the screens, so that these are looked at again behind its cure."""
    seen_by: Treatment = AS_IT_IS
    """What its server has besides: an instrument that intrudes."""

    @property
    def calm(self) -> "Probe":
        """The same without the provocation."""
        return replace(self, settings={**self.settings, **self.unprovoked}, unprovoked={})


def crowd(connections: int) -> Probe:
    """Return the situation in which so many requests are kept in flight, and those that fail are counted."""
    about = f"a closed loop of {connections} connections"
    return Probe("crowd", about, "failed", {"connections": connections}, in_turn=1)


@dataclass(frozen=True)
class Met:
    """What a probe met on one server."""

    hits: int
    """Of `of`, those that are counted."""
    of: int
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """How its requests ended, and whatever else was counted."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """What was measured beside that, by its name."""
    said: str = ""
    """The first that was counted, in words."""

    @property
    def share(self) -> float:
        """Hits of all."""
        return self.hits / self.of if self.of else 0.0

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "hits": self.hits,
            "of": self.of,
            "outcomes": dict(self.outcomes),
            "figures": dict(self.figures),
        }


@dataclass(frozen=True)
class Counts:
    """Both arms of an experiment that counts, block by block, each on a server started for that block."""

    probe: Probe
    before: Treatment
    after: Treatment
    blocks: tuple[tuple[Met, Met], ...]
    """Before and after; of a dose the first is without the provocation."""

    @property
    def load(self) -> str:
        """What was done to both."""
        return self.probe.about

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "load": self.load,
            "counts": self.probe.counts,
            "before": self.before.about,
            "after": self.after.about,
            "blocks": [
                {"before": before.document(), "after": other.document()} for before, other in self.blocks
            ],
        }


class Ruling(StrEnum):
    """What a diagnosis comes to."""

    CAUSE = "cause"
    NOT_A_CAUSE = "not-a-cause"
    CANNOT_TELL = "cannot-tell"


@dataclass(frozen=True)
class Evidence:
    """One thing that speaks for or against a diagnosis."""

    kind: str
    """`stack`, `slope`, `threads`, `counter`, `latency`, `stepped` (third parties take longer), `arms`, `counts` (both
    arms of a probe), `allocations` (of what requests leave behind, by the line)."""
    said: str
    data: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"kind": self.kind, "said": self.said, **self.data}


@dataclass(frozen=True)
class Cure:
    """What to change: a line, a flag or a setting."""

    what: str
    where: str = ""
    before: str = ""
    after: str = ""

    def document(self) -> dict[str, str]:
        """Return it as plain data."""
        return {"what": self.what, "where": self.where, "before": self.before, "after": self.after}


@dataclass(frozen=True)
class Diagnosis:
    """One fault of the catalogue, and whether it is what is wrong here."""

    id: str
    ruling: Ruling
    reason: str
    """Why, a sentence without its end."""
    effect: Mapping[str, Interval] = field(default_factory=dict)
    """What it costs, by metric: right answers per second that are lost, milliseconds and CPU that are added."""
    evidence: tuple[Evidence, ...] = ()
    cure: Cure | None = None
    proof: str = ""
    """`cure`: the treated arm is cured; `dose`: it has more of the fault, and loses more. Empty: nothing is proven."""
    gain: float = 0.0
    """Throughput of the treated arm over that as it is; of a dose, what it is as it is over that of the dose.

    Where requests are counted and not timed, what the screens let expect of it, so that both can be compared.
    """
    comes_of: str = ""
    """The cause that brings this one about: once that was cured, nothing of this was seen. Empty: none is known."""

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "id": self.id,
            "verdict": str(self.ruling),
            "reason": self.reason,
            "proof": self.proof or None,
            "comes_of": self.comes_of or None,
            "effect": {
                name: [interval.low, interval.mid, interval.high] for name, interval in self.effect.items()
            },
            "evidence": [evidence.document() for evidence in self.evidence],
            "cure": self.cure.document() if self.cure else None,
        }


@dataclass(frozen=True)
class Untried:
    """A fault of the catalogue that was not tried."""

    id: str
    why: str


@dataclass(frozen=True)
class SloRate:
    """The highest rate at which an SLO holds, as `velodrome capacity` searches it."""

    holds: bool | None
    """At any rate; None: undecided."""
    rate: Interval | None
    """Requests per second with 95 %; None: it was not found."""
    ending: str
    """How the search ended (`model/search.Ending`)."""
    because: str = ""
    """Why it did not converge, or there is no such rate: a sentence without its end."""

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        rate = [self.rate.low, self.rate.mid, self.rate.high] if self.rate else None
        return {"holds": self.holds, "rate": rate, "ending": self.ending, "because": self.because}


@dataclass(frozen=True)
class SloHolds:
    """Whether an SLO holds as the app is, and with all causes cured."""

    conditions: tuple[str, ...]
    as_it_is: SloRate
    cured: SloRate | None = None
    """None: `why_not_cured`."""
    why_not_cured: str = ""
    """Empty where it was searched."""

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "conditions": list(self.conditions),
            "as_it_is": self.as_it_is.document(),
            "cured": self.cured.document() if self.cured else None,
            "why_not_cured": self.why_not_cured,
        }


@dataclass(frozen=True)
class Suspected:
    """A fault that the figures of a command make likely which looks for none: nothing is proven."""

    id: str
    """Of a fault of the doctor's catalogue."""
    of: str
    """Whose: the contestant, as read in a sentence."""
    why: str
    """The figures, a sentence without its end."""
    prove: str
    """The command line that proves it, or rules it out."""


# --- What happened when during one load, in seconds since it began to be measured.


@dataclass(frozen=True)
class Stall:
    """A time in which the event loop gave no sign of life."""

    at_s: float
    seconds: float
    ran_s: float
    """Of that, its thread was on a CPU."""
    blocked_s: float
    """Of that, neither on a CPU nor waiting for a CPU."""
    stack: int | None
    """The stack in which it was longest, by its place in `Timeline.stacks`; None: none was taken."""


@dataclass(frozen=True)
class Collection:
    """A collection of garbage that took a millisecond or more."""

    at_s: float
    seconds: float
    generation: int
    """2: the whole heap."""


@dataclass(frozen=True)
class Sampled:
    """What counters rose by since the sample before."""

    at_s: float
    cpus: float
    """CPUs that the server kept busy."""
    throttled_s: float | None
    """For how long its control groups were kept from the CPU; None: this system does not tell."""
    overflows: int | None
    """Connections that a full listen queue turned away; None: not known."""
    listen_queue: int | None
    """Connections that waited to be accepted at this moment."""


@dataclass(frozen=True)
class Timeline:
    """The load that the timeline covers."""

    load: str
    """As results call it."""
    seconds: float
    stacks: tuple[tuple[str, ...], ...]
    """Each with the place by which it is called first, then its frames from the innermost outwards."""
    stalls: tuple[Stall, ...]
    collections: tuple[Collection, ...]
    counts: tuple[Sampled, ...]

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "load": self.load,
            "seconds": self.seconds,
            "stacks": [list(stack) for stack in self.stacks],
            "stalls": [asdict(stall) for stall in self.stalls],
            "collections": [asdict(collection) for collection in self.collections],
            "counts": [asdict(count) for count in self.counts],
        }


# --- What an examination comes to.


@dataclass(frozen=True)
class Disturbance:
    """What else happened to the machine while loads were measured, so much that a race would set them aside."""

    kind: str
    """Of a flag (`model/measurement.FlagKind`): `cpu-steal`, `other-load`."""
    loads: int
    """In how many."""
    of: int
    """Of so many."""
    worst: str
    """How much in the worst of them, a sentence."""

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Examination:
    """Everything that the doctor found on one app on one stack."""

    title: str
    stack: str
    diagnoses: tuple[Diagnosis, ...]
    """Causes first, the costliest of them first."""
    untried: tuple[Untried, ...]
    screens: tuple[Evidence, ...]
    """What the screens saw of the app as it is."""
    unexplained: float | None
    """Share of the time of a request, under the load that fills the server, that neither a cause accounts for nor what
    the request needs alone or its CPU time does; None: it could not be measured."""
    seconds: float
    """How long it took."""
    folder: str = ""
    """Of the app: what begins with it is shown without. Empty: a recipe."""
    slo: SloHolds | None = None
    """None: there is none."""
    timeline: Timeline | None = None
    """Of the load with the heartbeat, as the app is; None: there was no such load."""
    started: str = ""
    """When it began: ISO 8601. Empty: that is not known."""
    disturbed: tuple[Disturbance, ...] = ()
    """Empty: the machine belonged to it."""

    @property
    def causes(self) -> tuple[Diagnosis, ...]:
        """What is wrong, the costliest first."""
        return self.of(Ruling.CAUSE)

    @property
    def undecided(self) -> tuple[Diagnosis, ...]:
        """What may be wrong: it was looked for, and cannot be told."""
        return self.of(Ruling.CANNOT_TELL)

    def of(self, ruling: Ruling) -> tuple[Diagnosis, ...]:
        """Return the diagnoses that come to this."""
        return tuple(diagnosis for diagnosis in self.diagnoses if diagnosis.ruling is ruling)

    @property
    def healthy(self) -> bool:
        """Whether no cause was proven, and none was left out for lack of time."""
        return not (self.causes or self.untried)

    def document(self) -> dict[str, Any]:
        """Return it as plain data (`velodrome/doctor/1`)."""
        return {
            "schema": SCHEMA,
            "title": self.title,
            "stack": self.stack,
            "healthy": self.healthy,
            "diagnoses": [diagnosis.document() for diagnosis in self.diagnoses],
            "not_tried": [{"id": untried.id, "why": untried.why} for untried in self.untried],
            "screens": [screen.document() for screen in self.screens],
            "unexplained": self.unexplained,
            "slo": self.slo.document() if self.slo else None,
            "timeline": self.timeline.document() if self.timeline else None,
            "disturbed": [disturbance.document() for disturbance in self.disturbed],
            "started": self.started or None,
            "seconds": round(self.seconds, 1),
        }


def surest_first(every: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    """Return causes first, the costliest first, then their consequences; then what is undecided, then what is none."""
    order = [Ruling.CAUSE, Ruling.CANNOT_TELL, Ruling.NOT_A_CAUSE]

    def place(diagnosis: Diagnosis) -> tuple[int, bool, float, str]:
        return order.index(diagnosis.ruling), bool(diagnosis.comes_of), -diagnosis.gain, diagnosis.id

    return tuple(sorted(every, key=place))

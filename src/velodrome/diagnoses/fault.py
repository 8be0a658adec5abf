"""What a fault of the catalogue is: a file in this folder with a module-level `fault = Fault(…)`, found by its name.

    def screen(seen: Symptoms) -> Screened:
        if seen.reused is None:
            return Unknown("latency by connection could not be measured")
        …
        return Suspect(0.9, "…", experiments=(Experiment(Treatment(…), …),))

Nothing here measures: a screen looks at what the instruments saw, and an experiment says what is to be changed. Other
packages bring further faults by entry points of `velodrome.diagnoses`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from velodrome.guest import plugins
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.symptoms import Symptoms


@dataclass(frozen=True)
class Experiment:
    """One thing changed, and what it has to change for the fault to be the cause."""

    treatment: Treatment
    connections: int
    """Of the closed loop that both arms carry."""
    cure: Cure
    metrics: tuple[str, ...] = ("rps",)
    """One that differs is enough."""
    proof: Literal["cure", "dose"] = "cure"
    """Whether the treated arm is cured, or has more of the fault."""
    takes: str = ""
    """The treatment that has to have met what it changes; empty: a setting of the stack, which always does."""
    needless: bool = False
    """Whether an app that never uses what the treatment changes cannot have the fault; else that tells nothing."""
    seconds: float = 1.0
    """Of each load."""


@dataclass(frozen=True)
class Suspect:
    """It may be the cause."""

    likelihood: float
    """From 0 to 1: how likely, as far as the screens tell."""
    why: str
    experiments: tuple[Experiment, ...]
    """The first that can be made decides; empty: it cannot be proven from outside."""
    evidence: tuple[Evidence, ...] = ()
    loss: float = 0.3
    """Share of the throughput that it may cost, about."""


@dataclass(frozen=True)
class Absent:
    """What the fault needs is not there: it is no cause."""

    why: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Unknown:
    """The screens do not tell."""

    why: str


Screened = Suspect | Absent | Unknown


@dataclass(frozen=True)
class Fault:
    """One row of the catalogue."""

    name: str
    """Its id, as documents and options have it; the file is called like it."""
    about: str
    """Symptom, cause and cure in a line."""
    sources: tuple[str, ...]
    """Where it was met: `project#123`, a page, or field practice."""
    hypothesis: str
    """What would have to be so."""
    proof: str
    """What has to differ when what is changed."""
    screen: Callable[[Symptoms], Screened]


SHARE = 0.05
"""Of the stacks of busy threads, those with something in them, from which on it is looked into."""
LEAST_CONNECTIONS, MOST_CONNECTIONS = 8, 64


@dataclass(frozen=True)
class Doing:
    """What busy threads are in, as `guest/injected/marks.py` has it."""

    share: float
    said: str
    evidence: tuple[Evidence, ...]
    connections: int
    """Of a closed loop that fills the server."""

    def suspect(self, *experiments: Experiment) -> Suspect:
        """Return that it may be the cause, the likelier the more of the time it takes."""
        return Suspect(
            min(0.9, 0.4 + self.share), self.said, experiments, self.evidence, loss=min(self.share, 0.9)
        )


FAULTS = plugins.Kind("fault", Fault, "velodrome.diagnoses", "velodrome.diagnoses", mixed=True)


def catalogue() -> dict[str, Fault]:
    """Return every fault by its id, sorted."""
    return plugins.healthy(FAULTS)


def no_plateau(seen: Symptoms) -> Screened | None:
    """Return why nothing that bounds the requests in work can be the cause: throughput rises on, or the CPU bounds it.

    None: something does bound them.
    """
    if seen.slope is None:
        return Unknown("throughput over connections could not be measured")
    if seen.slope.rises:
        most = seen.slope.points[-1].connections
        return Absent(f"throughput still rises at {most} connections: nothing bounds the requests in work")
    if seen.computes:
        plateau = seen.slope.plateau
        return Absent(f"at most throughput the server uses {plateau.cpus:.2f} CPUs: these bound it")
    return None


def plateau(seen: Symptoms) -> tuple[Evidence, ...]:
    """Return the slope as evidence."""
    if seen.slope is None:
        return ()
    k, top = seen.slope.in_work, seen.slope.plateau
    said = (
        f"throughput stops at {top.rps:.4g}/s from {seen.slope.knee} connections on: {k.mid:.3g} "
        f"[{k.low:.3g}, {k.high:.3g}] requests in work at once, {top.cpus:.2f} CPUs busy"
    )
    points = [[one.connections, one.rps, one.cpus] for one in seen.slope.points]
    return (Evidence("slope", said, {"in_work": [k.low, k.mid, k.high], "points": points}),)


def doing(seen: Symptoms, mark: str, words: str) -> Doing | Absent | Unknown:
    """Return how much busy threads are in what a mark stands for, called `words`; or why that is no cause."""
    watched = seen.watched
    if watched is None or not watched.seconds:
        return Unknown("no heartbeat came out of its processes")
    share = watched.shares.get(mark, 0.0)
    said = f"{share:.0%} of the stacks of busy threads are in {words}"
    evidence = (Evidence("stack", said, {"share": share}),)
    if share < SHARE:
        return Absent(said, evidence)
    return Doing(share, said, evidence, filling(seen))


def filling(seen: Symptoms) -> int:
    """Return how many connections fill the server, and some more."""
    knee = seen.slope.knee if seen.slope else LEAST_CONNECTIONS
    return min(max(2 * knee, LEAST_CONNECTIONS), MOST_CONNECTIONS)

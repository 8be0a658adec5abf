"""What a fault of the catalogue is: a file in this folder with a module-level `fault = Fault(…)`, found by its name.

    def screen(seen: Symptoms) -> Screened:
        if seen.reused is None:
            return Unknown("latency by connection could not be measured")
        …
        return Suspect(0.9, "…", experiments=(Experiment(Treatment(…), …),))

Nothing here measures: a screen looks at what the instruments saw, and an experiment says what is to be changed. Other
packages bring further faults by entry points of `velodrome.diagnoses`.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import pairwise
from operator import itemgetter
from typing import Literal

from velodrome.guest import plugins
from velodrome.guest.injected.bounds import BEYOND
from velodrome.model.diagnosis import AS_IT_IS, Cure, Evidence, Met, Probe, Treatment, crowd
from velodrome.model.quantity import Interval, significant
from velodrome.model.symptoms import Called, Collected, Opened, Setting, Symptoms

WAVES, LONGEST_S = 3.0, 6.0
"""A load lasts so many times what a request takes in it, at least, and so long, at most, if one alone is as quick."""


@dataclass(frozen=True)
class Experiment:
    """One thing changed, and what it has to change for the fault to be the cause."""

    treatment: Treatment
    connections: int
    """Of the closed loop that both arms carry; of no meaning with a probe."""
    cure: Cure
    metrics: tuple[str, ...] = ("rps",)
    """One that differs is enough."""
    proof: Literal["cure", "dose"] = "cure"
    """Whether the treated arm is cured, or has more of the fault."""
    needless: bool = False
    """Whether an app that never uses what the treatment changes cannot have the fault; else that proves nothing."""
    refutes: bool = True
    """Whether the fault is no cause where the treatment changes nothing; else the next experiment decides."""
    raises: bool = False
    """Whether the treatment raises a bound, and notes once more is in use than that allowed: else it bounds nothing."""
    most_rps: Interval | None = None
    """Throughput that a server without the fault could have, of which a dose alone tells nothing; None: not known."""
    seconds: float = 1.0
    """Of each load."""
    probe: Probe | None = None
    """What both arms meet in the place of the closed loop, where something is counted. Of a `dose` the provocation is
    the dose: the arm as it is gets the probe without it."""
    seen_by: Treatment = AS_IT_IS
    """What both arms have besides: an instrument that intrudes, or what costs as much as the treatment, without it."""
    leaves_memory: bool = False
    """Whether what it proves is memory that requests leave behind, of which the line that allocates it can be found."""

    @property
    def takes(self) -> str:
        """The treatment that has to have met what it changes; empty: a setting of the stack, which always does."""
        return next(iter(self.treatment.give), "")

    def load_s(self, seen: Symptoms) -> float:
        """Return how many seconds the closed loop of an arm lasts: a slow app gets longer."""
        if seen.slope is None or not seen.slope.plateau.rps:
            return self.seconds
        alone_s = WAVES * seen.slope.alone_s
        waits_s = max(WAVES * self.connections / seen.slope.plateau.rps, alone_s)
        return min(max(self.seconds, waits_s), max(LONGEST_S, self.seconds, alone_s))

    def missed(self, took: frozenset[str], *, first: bool) -> "Absent | str | None":
        """Return what follows where the treated arm never met what is changed; None: it did. `first`: of its blocks."""
        if self.takes and self.takes not in took:
            why = f"{self.treatment.about}: what that changes was never used"
            return Absent(why) if self.needless else why
        if self.raises and first and f"{self.takes}{BEYOND}" not in took:
            return Absent(f"{self.treatment.about}: no more were in use than the app allows as it is")
        return None


def statements_longer(
    more_s: Mapping[str, float], about: tuple[str, str], connections: int, cure: Cure
) -> Experiment:
    """Return the dose in which what sends one of these statements goes on so many seconds later.

    The other arm follows them as well, at no delay; `about` says what is done in the one and in the other.
    """
    name = "statements-longer"
    longer = Treatment(about[0], {name: dict(more_s)})
    followed = Treatment(about[1], {name: dict.fromkeys(more_s, 0.0)})
    return Experiment(longer, connections, cure, proof="dose", seen_by=followed)


@dataclass(frozen=True)
class Suspect:
    """It may be the cause."""

    likelihood: float
    """From 0 to 1: how likely, as far as the screens show."""
    why: str
    experiments: tuple[Experiment, ...]
    """The first that can be made decides, or where it does not, the next one of the same treatment, which is judged by
    something else. Empty: it cannot be proven from outside."""
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
    """The screens do not decide."""

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
    _: KW_ONLY
    glance: Callable[[Symptoms], str] | None = None
    """What figures that other commands have anyway (`usecases/suspects.py`) say for it, a sentence without its end;
    empty: nothing does. Without heartbeat and at no extra load, so it has to be sparing: it makes a suspect, and every
    healthy app that it names costs a user five minutes. None: such figures cannot show it."""
    look: Callable[[Setting], Probe | None] | None = None
    """Returns what is tried once on the server of the screens, whose outcome is `Symptoms.met[name]`; None: nothing."""
    steps: bool = False
    """Whether its screen looks at what the app does when its third parties take longer (`Symptoms.stepped`)."""
    wears: bool = False
    """Whether its screen looks at what requests meet on a server that answered many before (`Symptoms.worn`)."""
    collects: Callable[[Collected], bool] | None = None
    """Whether collections of garbage that a heartbeat met are so much that they are timed once more without one
    (`Symptoms.collected`); None: it is not about them."""
    follows: bool = False
    """Whether other faults bring it about, so that it is gone with them (`Diagnosis.comes_of`)."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Stacks on which an experiment serves the app, each by the stack in whose place it is."""


SHARE = 0.05
"""Of the stacks of busy threads, those with something in them, from which on it is looked into."""
AT_ONCE = 0.15
"""Threads that are in something at the same time, on average, from which on it is looked into where it computes: among
many threads that wait it has no share, and takes as much of the one CPU that an interpreter uses."""
AMONG_OTHERS = 1.5
"""Times the share of the stacks, from which on the CPU time that threads spend in something is believed instead."""
MOST = 0.5
"""Share of the time in something from which on the place that calls it is named."""
LEAST_CONNECTIONS, MOST_CONNECTIONS = 8, 64


@dataclass(frozen=True)
class Doing:
    """What busy threads are in, as `guest/injected/marks.py` has it."""

    share: float
    said: str
    evidence: tuple[Evidence, ...]
    connections: int
    """Of a closed loop that fills the server."""
    called: Called | None = None
    """Where most of it is called from; None: nowhere most of it."""

    def where(self, words: str) -> str:
        """Return the place where most of it is called from, and `words` where there is none."""
        return self.called.place if self.called else words

    def suspect(self, *experiments: Experiment) -> Suspect:
        """Return that it may be the cause, the likelier the more of the time it takes."""
        return Suspect(
            min(0.9, 0.4 + self.share), self.said, experiments, self.evidence, loss=min(self.share, 0.9)
        )


FAULTS = plugins.Kind("fault", Fault, "velodrome.diagnoses", "velodrome.diagnoses", mixed=True)


def catalogue() -> dict[str, Fault]:
    """Return every fault by its id, sorted."""
    return plugins.healthy(FAULTS)


def glances(seen: Symptoms) -> dict[str, str]:
    """Return the faults that figures of other commands make likely: by id, what speaks for each."""
    found = {name: fault.glance(seen) for name, fault in catalogue().items() if fault.glance is not None}
    return {name: why for name, why in found.items() if why}


IDLE = 0.6
"""CPUs in use, over those the server can use, up to which these are surely not what requests wait for."""
ABOUT = 0.12
"""Share by which requests in work may differ from a limit that they are about as many as."""
NEAR = 0.1
"""The same, where the requests in work are known with an interval."""


def is_about(k: Interval, limit: int) -> bool:
    """Whether requests in work, as an interval, are as many as a limit, give or take `NEAR`."""
    return k.low <= limit * (1 + NEAR) and k.high >= limit * (1 - NEAR)


def stops_at(seen: Symptoms, limit: int) -> str:
    """Return that throughput of an app on an event loop stops with about `limit` requests in work in each worker.

    Empty: it does not.
    """
    if not seen.setting.awaits or no_plateau(seen) is not None:
        return ""
    each = seen.in_work_each
    assert seen.slope is not None
    top = seen.slope.plateau
    if abs(each - limit) > ABOUT * limit or top.cpus > IDLE * min(seen.workers, seen.server_cpus):
        return ""
    of = f" in each of {seen.workers} workers" if seen.workers > 1 else ""
    return (
        f"{significant(each)} requests{of} are in work at once however many there are, and "
        f"{significant(top.cpus, 2)} CPUs are busy at {significant(top.rps, 4)}/s"
    )


WITHOUT_LOOP = "no event loop runs in its processes, so nothing in them is awaited"


def without_loop(seen: Symptoms) -> bool:
    """Return whether no event loop runs in its processes, as far as a heartbeat saw."""
    return seen.watched is not None and seen.watched.seconds > 0 and not seen.watched.loop


def lacks(seen: Symptoms, package: str) -> bool:
    """Return whether figures of another command come with a list of the app's packages, and this is not among them."""
    packages = seen.counted.packages if seen.counted else frozenset()
    return bool(packages) and package not in packages


def no_plateau(seen: Symptoms) -> Screened | None:
    """Return why nothing that bounds the requests in work can be the cause: throughput rises on, or the CPU bounds it.

    None: something does bound them.
    """
    if seen.slope is None:
        return Unknown("throughput over connections could not be measured")
    if seen.slope.rises:
        most = seen.slope.points[-1].connections
        if seen.slope.cut:
            return Unknown(
                f"throughput still rises at {most} connections, and there was no time for more: --budget"
            )
        return Absent(f"throughput still rises at {most} connections: nothing bounds the requests in work")
    if seen.computes:
        plateau, last = seen.slope.plateau, seen.slope.points[-1]
        full = max(plateau, last, key=lambda point: point.cpus)
        where = "at most throughput" if full is plateau else f"with {full.connections} requests in flight"
        return Absent(f"{where} the server uses {full.cpus:.2f} CPUs: these bound it")
    return None


def plateau(seen: Symptoms) -> tuple[Evidence, ...]:
    """Return the slope as evidence."""
    if seen.slope is None:
        return ()
    k, top = seen.slope.in_work, seen.slope.plateau
    stops = (
        f"rises up to {significant(top.rps, 4)}/s with {top.connections} connections, the most that were tried"
        if seen.slope.rises
        else f"stops at {significant(top.rps, 4)}/s from {seen.slope.knee} connections on"
    )
    sentence = (
        f"throughput {stops}: {significant(k.mid)} [{significant(k.low)}, {significant(k.high)}] requests in work at "
        f"once, {top.cpus:.2f} CPUs busy"
    )
    if (falls := seen.slope.falls) is not None:
        sentence += f"; it falls to {significant(falls.rps, 4)}/s with {falls.connections}"
    points = [[point.connections, point.rps, point.cpus] for point in seen.slope.points]
    return (Evidence("slope", sentence, {"in_work": [k.low, k.mid, k.high], "points": points}),)


def third_party_evidence(seen: Symptoms) -> tuple[Evidence, ...]:
    """Return what third parties that take longer change, as evidence."""
    found = seen.stepped
    if found is None:
        return ()
    before, after = found.before, found.after
    slots = found.slots
    sentence = (
        f"with third parties that take {significant(after.waited_ms)} ms in place of "
        f"{significant(before.waited_ms)} ms, a request alone takes "
        f"{significant(after.alone_ms, 4)} ms in place of {significant(before.alone_ms, 4)} ms, and throughput of "
        f"{found.connections} connections is {significant(after.rps, 4)}/s in place of {significant(before.rps, 4)}/s"
    )
    data = {
        "connections": found.connections,
        "in_sequence": found.in_sequence,
        "slots": slots,
        "calls": before.calls,
        "steps": [vars(before), vars(after)],
    }
    return (Evidence("stepped", sentence, data),)


@dataclass(frozen=True)
class Counting:
    """What the look of a fault met, where it is so much that it is looked into."""

    met: Met
    probe: Probe
    said: str
    """A sentence without its end."""
    evidence: tuple[Evidence, ...]

    def cured(self, treatment: Treatment, cure: Cure, *, refutes: bool = True) -> Experiment:
        """Return the same situation with and without a treatment, which has to be met where it is injected."""
        return Experiment(treatment, 0, cure, refutes=refutes, probe=self.probe, seen_by=self.probe.seen_by)

    def dose(self, cure: Cure) -> Experiment:
        """Return the situation with and without the provocation: nothing of the app is changed."""
        return Experiment(AS_IT_IS, 0, cure, proof="dose", probe=self.probe, seen_by=self.probe.seen_by)

    def suspect(self, likelihood: float, *experiments: Experiment, loss: float) -> Suspect:
        """Return that it may be the cause."""
        return Suspect(likelihood, self.said, experiments, self.evidence, loss)


def counting(
    seen: Symptoms, name: str, probe: Probe, least: float = 0.0, none: Absent | Unknown | None = None
) -> Counting | Absent | Unknown:
    """Return what the look of a fault met, from a share of `least` on; or why that is no cause, or is not known.

    `none` is the answer where there was nothing to count.
    """
    if not seen.setting.plain:
        return Unknown("its requests cannot be sent by hand: only those over HTTP/1.1 can")
    found = seen.met.get(name)
    if found is None:
        return Unknown("it could not be tried on the server of the screens")
    if not found.of and (why := _uncounted(found.figures)):
        return Unknown(why)
    if not found.of and none is not None:
        return none
    worst = f" ({found.said})" if found.hits and found.said else ""
    sentence = f"{found.hits} of {found.of} {probe.counts}{worst}: {probe.about}"
    evidence = (Evidence("counts", sentence, {"load": probe.about, **found.document()}),)
    if not found.hits or found.share < least:
        return Absent(sentence, evidence)
    return Counting(found, probe, sentence, evidence)


def _uncounted(figures: Mapping[str, float]) -> str:
    """Return why a look counted nothing on purpose; empty: there was nothing to count."""
    if wrong := figures.get("fails_anyway"):
        return f"{wrong:.0f} of {figures['of']:.0f} requests that are in flight together fail in any case"
    if took_s := figures.get("outlasts_s"):
        given = "servers get less time here to end than one that is deployed"
        return f"a request takes {significant(took_s, 2)} s, and {given}"
    return ""


FAILS = 0.05
"""Share of the requests in flight together that fail, from which on it is looked into."""


AT_ONCE_BY = "dependency-deadlock"
"""The fault whose look sends many requests at once."""


def failing(seen: Symptoms, treatment: Treatment, cure: Cure) -> Screened:
    """Return whether requests fail when several are in flight, though not one alone.

    It is proven by as many in flight as made the most fail: of the slope, or, where that came to an end before any did,
    of more than its throughput needs, unless some of these hang.
    """
    if seen.slope is None:
        return Unknown("throughput over connections could not be measured")
    alone = seen.slope.alone
    worst = max(((point.errors, point.connections) for point in seen.slope.points), key=itemgetter(0))
    for met in filter(None, (seen.met.get(AT_ONCE_BY), seen.crowded)):
        failed = met.outcomes.get("bad_status", 0)
        if worst[0] < FAILS and met.of and met.hits in {0, failed}:
            connections = int(met.figures.get("connections", met.of))
            worst = max(worst, (failed / met.of, connections), key=itemgetter(0))
    errors, connections = worst
    sentence = f"{errors:.1%} of the requests fail with {connections} in flight, {alone.errors:.1%} alone"
    evidence = Evidence(
        "slope", sentence, {"errors": [[point.connections, point.errors] for point in seen.slope.points]}
    )
    if errors < FAILS or alone.errors > errors / 2:
        return Absent(sentence, (evidence,))
    probe = replace(crowd(connections), worth=FAILS / 2, hides=True)
    experiment = Experiment(treatment, 0, cure, needless=True, probe=probe)
    return Suspect(0.5, sentence, (experiment,), (evidence,), loss=errors)


LEAST_LOST = 0.01
"""Share of the requests around an event after which the server goes on, from which on it is looked into."""


def losing(event: str, setting: str, *, worth: float = 2 * LEAST_LOST, ends: bool = False) -> Probe:
    """Return the open loop in which an event in the life of a server loses requests, or does not.

    `setting` of `situations.stop` makes it happen; `ends`: the server with it.
    """
    return Probe(
        "stop",
        f"an open loop, with 16 requests more in flight when {event}",
        "lost",
        {setting: 1},
        unprovoked={setting: 0},
        seconds=3.0,
        worth=worth,
        ends=ends,
    )


LEAST_LOADS = 3


@dataclass(frozen=True)
class Growth:
    """By how much something in use rose over the last loads of the screens that are alike."""

    risen: float
    requests: int
    always: bool
    """Whether it rose with each of them."""

    @property
    def each(self) -> float:
        """By how much for each request."""
        return self.risen / max(self.requests, 1)


def growth(samples: tuple[tuple[int, float], ...]) -> Growth | None:
    """Return how much rose what is in use after so many requests; None: there are too few loads.

    What falls by half ended with a process: the last processes that carried enough loads are looked at.
    """
    # Loads are of one connection and of as many as fill it, in turns: every second is alike.
    alike = samples[::-1][::2][::-1]
    ends = [n for n in range(1, len(alike)) if alike[n][1] < alike[n - 1][1] / 2]
    lives = [alike[begin:end] for begin, end in pairwise((0, *ends, len(alike)))]
    long = [life for life in lives if len(life) >= LEAST_LOADS]
    if not long:
        return None
    loads = long[-1][-LEAST_LOADS:]
    (requests, first), (all_requests, last) = loads[0], loads[-1]
    always = all(later[1] > before[1] for before, later in pairwise(loads))
    return Growth(last - first, all_requests - requests, always)


def growing(counts: str, **settings: float) -> Probe:
    """Return the situation in which something grows or does not: loads alike, against none."""
    return Probe(
        "grow",
        "8 loads alike, one after the other, after others to fill what fills",
        counts,
        {"loaded": 1, **settings},
        unprovoked={"loaded": 0},
        seconds=12.0,
        worth=0.5,
        repeats=True,
    )


def doing(seen: Symptoms, mark: str, words: str, *, computes: bool = False) -> Doing | Absent | Unknown:
    """Return how much busy threads are in what a mark stands for, called `words`; or why that is no cause.

    `computes`: who is in it holds the interpreter's lock most of the time.
    """
    watched = seen.watched
    if watched is None or not watched.seconds:
        return Unknown("no heartbeat came out of its processes")
    share = watched.shares.get(mark, 0.0)
    sentence = f"{share:.0%} of the stacks of busy threads are in {words}"
    at_once = watched.at_once.get(mark, 0.0)
    computing = watched.computing.get(mark, 0.0)
    if computes and at_once >= AT_ONCE and at_once > share:
        sentence = (
            f"{significant(at_once, 2)} threads at once are in {words}, on average, among others that wait"
        )
        share = min(at_once, 1.0)
    if computes and computing >= AT_ONCE and computing > AMONG_OTHERS * share:
        sentence = f"{computing:.0%} of a CPU computes in {words}, while other threads wait for their turn"
        share = min(computing, 1.0)
    called = watched.called.get(mark)
    called = called if called and called.share >= MOST else None
    data: dict[str, object] = {"share": share, "at_once": at_once, "computing": computing}
    if share < SHARE:
        return Absent(sentence, (Evidence("stack", sentence, data),))
    if called:
        sentence += f", most of which {called.place} calls: {called.text}".removesuffix(": ")
        data["called"] = vars(called)
    return Doing(share, sentence, (Evidence("stack", sentence, data),), filling(seen), called)


OPENED = 0.5
"""Connections for each request, from which on they are opened again and again, and not kept."""


def opens_again(seen: Symptoms) -> Opened | None:
    """Return the third party to which requests open connections of their own; None: they keep them, or none is seen."""
    opened = seen.watched.most_opened if seen.watched else None
    return opened if opened is not None and opened.each >= OPENED else None


def filling(seen: Symptoms) -> int:
    """Return how many connections fill the server, and some more; where throughput falls, as many as it takes.

    No more than it bears: where nothing is answered right there is nothing to compare.
    """
    slope = seen.slope
    if slope is None:
        return 2 * LEAST_CONNECTIONS
    if slope.bears:
        return slope.bears
    falls = slope.falls.connections if slope.falls else 0
    return min(max(2 * slope.knee, falls, LEAST_CONNECTIONS), MOST_CONNECTIONS)


LEAST_THREADS = 2
"""At work at once, from which on threads may be what requests wait for."""
MORE_THREADS, MOST_WAITING = 10, 256
"""The treated arm has so many times the threads that were used; both arms carry so many connections at most."""
ALIKE = 1.25
"""Requests in work over threads, or the other way round, that are about as many."""


def size_beyond(threads: int) -> int:
    """Return how many threads are more than requests can need that so many were enough for until now."""
    return max(MORE_THREADS * threads, MOST_WAITING)


def bound_by_threads(
    seen: Symptoms, threads: int, whose: str, treatment: Treatment, cure: Cure, *, usual: int | None = None
) -> Suspect | Unknown | Absent:
    """Return whether requests may wait for one of so many threads; the treatment raises their number.

    A request may have several calls in threads: as many threads as there `usual`ly are tell as much as that there are
    as many as requests in work.
    """
    if (bound := no_plateau(seen)) is not None:
        return bound
    assert seen.slope is not None
    in_work = seen.slope.in_work.mid
    alike = threads == usual or max(in_work / threads, threads / in_work) < ALIKE
    connections = min(max(seen.slope.plateau.connections, 3 * threads), MOST_WAITING)
    sentence = f"{threads} threads of {whose} at once"
    return Suspect(
        0.9 if alike else 0.4,
        f"{sentence}, {significant(in_work)} requests in work",
        (Experiment(treatment, connections, cure, needless=True, raises=True),),
        (*plateau(seen), Evidence("threads", sentence, {"threads": threads})),
        loss=1 - threads / connections,
    )

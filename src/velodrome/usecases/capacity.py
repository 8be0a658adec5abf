"""How much one stack can do of an app or a recipe: the highest rate that holds, or the knee of a closed loop.

capacity(CapacitySpec(ServedSpec(app), "gunicorn-gthread", slo=(condition,)), follower)
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from velodrome.guest import catalog
from velodrome.judge.load_figures import figures_of
from velodrome.judge.search.connections import ConnectionSearch, enough_connections, scalability
from velodrome.judge.search.holding import (
    NEAR_LONGEST_S,
    NEAR_TIMES,
    PROOF_TIMES,
    Demands,
    Tried,
    bounding,
    probe,
)
from velodrome.judge.search.rate import FIRST, Measuring, RateSearch, highest_rate
from velodrome.model import quantity
from velodrome.model.condition import Condition, comparisons, written
from velodrome.model.errors import UnknownNameError
from velodrome.model.load import INDEPENDENT, Arrivals, Limits, Link
from velodrome.model.measurement import Measurement
from velodrome.model.search import Bottom, Ending, Knee, Probe, RateCapacity, RateFound, Sample
from velodrome.model.trial import Contestant, Session, Trial
from velodrome.run.lab import Lab
from velodrome.run.racing.opening import Preparing, opened
from velodrome.run.racing.plan import RunPlan, plan_of
from velodrome.usecases import apps
from velodrome.usecases.apps import Served, ServedSpec
from velodrome.usecases.bench import SECONDS, UNLIMITED, Bench, alone_load, closed_load, trial_of
from velodrome.usecases.load_blocks import common
from velodrome.usecases.quiet import Quiet
from velodrome.usecases.terms import DEFAULT_KNOBS, Knobs

LOOK_CONNECTIONS = 32
LOOK_S = 1.0
LAW_NUMBERS = 7
"""Different numbers of connections that the law is fitted to, at least."""
MOST_CONNECTIONS = 1_024
OF_LOAD = ("rate", "requests", "in_flight", "cpu")
"""Metrics that say how much was requested, and nothing of one request alone."""
LITTLE = 0.3
"""Of what one connection gets: so seldom that no request waits for another."""
LOOK_FIRST = RateSearch(first=0.0)
KNEE_S = 2.0


@dataclass(frozen=True)
class CapacitySpec:
    """What is searched, and of which stack."""

    served: ServedSpec
    stack: str = ""
    """Its name, or the file of one; empty: a common one that can serve the app."""
    knobs: Knobs = DEFAULT_KNOBS
    slo: tuple[Condition, ...] = ()
    """What must hold at a rate."""
    closed: bool = False
    """Search the knee of a closed loop."""
    limits: Limits = UNLIMITED
    link: Link | None = None
    seconds: float | None = None
    """Of each load; None: 3 s, or of a closed loop 2 s."""
    wait: bool = False
    """Wait while another velodrome measures."""
    study: str = "capacity"
    """The study that its trials are of."""
    arrivals: Arrivals = INDEPENDENT
    """Of the open loops."""


@dataclass(frozen=True)
class Searched:
    """What a search came to."""

    found: RateCapacity | Knee
    called: str
    """The stack with its settings, as people read it."""
    served: Served
    link: Link | None


def capacity(spec: CapacitySpec, follower: Quiet) -> Searched:
    """Search the highest rate at which the SLO holds, or the knee of a closed loop.

    Raises what is wrong with the app, UnknownNameError, UnknownKnobError, NoServerError, BusyError.
    """
    wait_s = None if spec.wait else 0.0
    with _prepared(spec, follower) as (one, trial):
        found: RateCapacity | Knee
        if spec.closed:
            found = knee(trial, one.lab, follower, seconds=spec.seconds or KNEE_S, wait_s=wait_s)
        else:
            demands = Demands(must=spec.slo)
            found = highest(
                trial,
                one.lab,
                demands,
                follower,
                seconds=spec.seconds or SECONDS,
                wait_s=wait_s,
                arrivals=spec.arrivals,
            )
    who = trial.contestant
    return Searched(found, who.called(one.lab.stacks[who.stack]), one, spec.link)


@contextmanager
def _prepared(
    spec: CapacitySpec, follower: Quiet, *, commands: bool = True
) -> Iterator[tuple[Served, Trial]]:
    """Yield what is served, and the trial whose loads are searched. Raises as `capacity` does."""
    if spec.stack:
        refuse_unknown(spec.stack, spec.knobs)
    names, extra = apps.named((spec.stack,) if spec.stack else ())
    with apps.served(spec.served, extra, follower.said, commands=commands) as one:
        name = names[0] if one.app is None else common(apps.stacks_for(one.app, one.lab, names))
        stack = one.lab.stacks[name]
        if names:
            apps.say_unread((one.app,), (stack,), follower.said)
        who = Contestant(name, spec.knobs.of(stack))
        yield (
            one,
            trial_of(
                spec.study, one.recipe, who, spec.limits, app=one.app, python=one.python, link=spec.link
            ),
        )


def dry_run(spec: CapacitySpec, follower: Quiet) -> RunPlan:
    """Return what `capacity` would start: the loads it begins with, and how the search goes on from there.

    The app is imported to see what it is; its user's commands do not run. Raises as `capacity` does.
    """
    with _prepared(spec, follower, commands=False) as (one, trial):
        looks = [alone_load(trial.recipe)]
        adaptive: tuple[str, ...]
        if spec.closed:
            search, length = ConnectionSearch(), f"{spec.seconds or KNEE_S:g} s"
            adaptive = (
                f"loads of {length} at {search.first}, {2 * search.first}, {4 * search.first} … connections, "
                f"{search.most} at most, until throughput rises no more",
                f"{search.blocks} blocks of loads around the fewest connections that are enough, and as many "
                "again while the interval is wide",
                f"twice as many connections each time, {MOST_CONNECTIONS} at most, until {LAW_NUMBERS} numbers "
                "of connections were measured for the scaling law",
            )
        else:
            looks.append(closed_load(trial.recipe, LOOK_CONNECTIONS, LOOK_S))
            adaptive = (
                f"open loops of {spec.seconds or SECONDS:g} s with {spec.arrivals} arrivals, longer where a percentile "
                f"of the SLO needs more requests, the first at {FIRST:.0%} of the throughput seen, "
                "twice the rate while it holds or half until it does",
                f"{LOOK_FIRST.loads} rates near the edge, each for {NEAR_TIMES * (spec.seconds or SECONDS):g} s or up "
                f"to {NEAR_LONGEST_S:g} s, on each of {LOOK_FIRST.boots} boots or more, until half the interval is "
                f"within {LOOK_FIRST.tolerance:.0%}; {LOOK_FIRST.most} loads at most from step 1 on",
                f"a proof of {PROOF_TIMES * (spec.seconds or SECONDS):g} s at the lower end of the interval, on a "
                "fresh boot; again at a lower rate where it fails",
            )
        sessions = [Session(tuple(replace(trial, load=load) for load in looks))]
        what = f"{'knee' if spec.closed else 'capacity'} of {trial.cell}"
        return plan_of(what, sessions, one.lab, adaptive=adaptive)


def refuse_unknown(stack: str, knobs: Knobs) -> None:
    """Raise UnknownNameError, BrokenPluginError, UnknownKnobError or BadOptionError for what no stack is or has."""
    (name,), extra = apps.named((stack,))
    stacks = catalog.stacks(extra)
    if name not in stacks:
        raise UnknownNameError("stack", name, tuple(stacks))
    knobs.of(stacks[name])


class Follower(Preparing, Protocol):
    """Whoever shows a search while it runs."""

    def tried(self, probe: Probe, measured: Measurement | None) -> None:
        """Report each rate that was tried; no measurement: the server died."""

    def sampled(self, sample: Sample, measured: Measurement | None) -> None:
        """Report each closed loop that was run."""


def highest(
    trial: Trial,
    lab: Lab,
    demands: Demands,
    follower: Follower,
    *,
    seconds: float = SECONDS,
    asked: RateSearch = LOOK_FIRST,
    wait_s: float | None = 0.0,
    arrivals: Arrivals = INDEPENDENT,
) -> RateCapacity:
    """Search the highest rate at which what is demanded holds and the server keeps up.

    Where `asked.first` is 0 a short look finds what to try first. Raises NoServerError, BusyError, LimitError,
    DriverError, and AppAnswersWrongError where an app, booted for the first time or once more, does not answer.
    """
    began = time.monotonic()
    best: Measurement | None = None

    def measure(rate: float, length: float | None = None) -> Probe:
        nonlocal best
        tried, measured = bench.rate(rate, demands, length)
        follower.tried(tried, measured)
        if tried.held and measured is not None and (best is None or rate >= _rate(best)):
            best = measured
        return tried

    def prove(rate: float) -> Probe:
        nonlocal best
        follower.preparing(
            f"proof: {quantity.rate(rate)} for {quantity.duration(PROOF_TIMES * seconds)} on a fresh boot"
        )
        tried, measured = bench.rate(rate, demands, PROOF_TIMES * seconds)
        follower.tried(tried, measured)
        if tried.held and measured is not None:
            # What is claimed is what is reported on: its latency, its CPU, its memory.
            best = measured
        return tried

    with (
        opened([trial], lab, f"capacity of {trial.cell}", follower, wait_s) as ready,
        Bench(trial, ready, seconds, warn=follower.preparing, arrivals=arrivals) as bench,
    ):
        measuring = Measuring(
            measure, lambda rate: measure(rate, demands.seconds_near(rate, seconds)), bench.stop, prove
        )
        alone = bench.alone()
        if why := bench.wrong_anyway(demands):
            found = RateFound(Ending.NEVER, None, why, ())
        else:
            found = highest_rate(measuring, asked if asked.first else _looked(asked, alone, bench, demands))
        conditions = tuple(map(written, demands.every))
        bottom = _bottom(best, trial, lab)
        took_s = time.monotonic() - began
        return RateCapacity(conditions, found, best, bottom, bench.trials, took_s, arrivals)


def _looked(asked: RateSearch, alone: Measurement, bench: Bench, demands: Demands) -> RateSearch:
    """Return a search that begins where a short look says."""
    rps = alone.load.ended_rps
    names = {one.metric.statistic for condition in demands.every for one in comparisons(condition)}
    of_load = not names.isdisjoint(OF_LOAD)
    tried = Tried(rps, alone.load.outcomes, rps, figures_of(alone.load, open_loop=False))
    if not of_load and probe(tried, demands).held is False:
        # What breaks with nobody before it breaks at every rate: a few requests a second show that.
        few = max(asked.lowest, LITTLE * rps)
        return replace(asked, first=few, lowest=few)
    look, _ = bench.connections(LOOK_CONNECTIONS, LOOK_S)
    return replace(asked, first=max(asked.lowest, FIRST * max(look.rps, rps)))


def knee(
    trial: Trial,
    lab: Lab,
    follower: Follower,
    *,
    seconds: float = KNEE_S,
    asked: ConnectionSearch | None = None,
    wait_s: float | None = 0.0,
) -> Knee:
    """Search the connections at which throughput stops rising, and fit the Universal Scalability Law to all of them.

    Raises as `highest` does.
    """
    began = time.monotonic()
    best: Measurement | None = None

    def measure(count: int) -> Sample:
        nonlocal best
        sample, measured = bench.connections(count)
        follower.sampled(sample, measured)
        if (
            not sample.spoilt
            and measured is not None
            and (best is None or sample.rps > best.load.throughput_rps)
        ):
            best = measured
        return sample

    with (
        opened([trial], lab, f"knee of {trial.cell}", follower, wait_s) as ready,
        Bench(trial, ready, seconds, warn=follower.preparing) as bench,
    ):
        bench.alone()
        found = enough_connections(measure, asked or ConnectionSearch())
        law = scalability([*found.samples, *_further(found.samples, measure)])
        bottom = _bottom(best, trial, lab)
        return Knee(found, law, best, bottom, bench.trials, time.monotonic() - began)


def _further(samples: Sequence[Sample], measure: Callable[[int], Sample]) -> Iterator[Sample]:
    """Yield closed loops of more connections, where the search for the knee needed too few for a law."""
    counts = {one.connections for one in samples if not one.spoilt}
    most = max(counts, default=0)
    while counts and len(counts) < LAW_NUMBERS and most < MOST_CONNECTIONS:
        most *= 2
        counts.add(most)
        sample = measure(most)
        yield sample
        if sample.spoilt:
            return


def _rate(measured: Measurement) -> float:
    return getattr(measured.trial.load.pace, "rate", 0.0)


def _bottom(best: Measurement | None, trial: Trial, lab: Lab) -> Bottom | None:
    if best is None:
        return None
    stack = lab.stacks[trial.contestant.stack]
    settings = stack.settings(trial.contestant.knobs)
    return bounding(best, stack.slots(settings), int(settings.get("workers", 1)))

"""How much one contestant can do of one service: the highest rate that holds, or the knee of a closed loop.

highest(trial, lab, Demands(must=(slo,)), RateSearch(first=1.0), follower)
knee(trial, lab, ConnectionSearch(), follower)
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from velodrome.judge.load_figures import figures_of
from velodrome.judge.search.connections import ConnectionSearch, enough_connections, scalability
from velodrome.judge.search.holding import Demands, Tried, bounding, probe
from velodrome.judge.search.rate import FIRST, RateSearch, highest_rate
from velodrome.model.condition import comparisons, written
from velodrome.model.measurement import Measurement
from velodrome.model.search import Bottom, Ending, Knee, Probe, RateCapacity, RateFound, Sample
from velodrome.model.trial import Trial
from velodrome.run.lab import Lab
from velodrome.run.racing.opening import Preparing, opened
from velodrome.usecases.bench import SECONDS, Bench

LOOK_CONNECTIONS = 32
LOOK_S = 1.0
LAW_NUMBERS = 7
"""Different numbers of connections that the law is fitted to, at least."""
MOST_CONNECTIONS = 1_024
OF_LOAD = ("rate", "requests", "in_flight", "cpu")
"""Metrics that say how much was asked, and nothing of one request alone."""
LITTLE = 0.3
"""Of what one connection gets: so seldom that no request waits for another."""
LOOK_FIRST = RateSearch(first=0.0)
KNEE_S = 2.0


class Follower(Preparing, Protocol):
    """Whoever shows a search while it runs."""

    def tried(self, probe: Probe, measured: Measurement | None) -> None:
        """Told each rate that was tried; no measurement: the server died."""

    def sampled(self, sample: Sample, measured: Measurement | None) -> None:
        """Told each closed loop that was run."""


def highest(
    trial: Trial,
    lab: Lab,
    demands: Demands,
    follower: Follower,
    *,
    seconds: float = SECONDS,
    asked: RateSearch = LOOK_FIRST,
    wait_s: float | None = 0.0,
) -> RateCapacity:
    """Search the highest rate at which what is demanded holds and the server keeps up.

    Where `asked.first` is 0 a short look tells what to try first. Raises NoServerError, BusyError, LimitError,
    DriverError, and AppAnswersWrongError where an app, booted for the first time or once more, does not answer.
    """
    began = time.monotonic()
    best: Measurement | None = None

    def measure(rate: float) -> Probe:
        nonlocal best
        tried, measured = bench.rate(rate, demands)
        follower.tried(tried, measured)
        if tried.held and measured is not None and (best is None or rate >= _rate(best)):
            best = measured
        return tried

    with (
        opened([trial], lab, f"capacity of {trial.cell}", follower, wait_s) as ready,
        Bench(trial, ready, seconds, told=follower.preparing) as bench,
    ):
        alone = bench.alone()
        if why := bench.wrong_anyway(demands):
            found = RateFound(Ending.NEVER, None, why, ())
        else:
            found = highest_rate(measure, asked if asked.first else _looked(asked, alone, bench, demands))
        told = tuple(map(written, demands.every))
        bottom = _bottom(best, trial, lab)
        return RateCapacity(told, found, best, bottom, bench.trials, time.monotonic() - began)


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
        Bench(trial, ready, seconds, told=follower.preparing) as bench,
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

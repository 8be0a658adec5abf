"""Whether a rate held: what one trial of an open loop says, by its conditions and by whether the server kept up.

    holding.probe(Tried(rate=500, outcomes={"ok": 1500}, ended_rps=499, figures=look_up), Demands(must=(slo,)))

A search asks it of every trial, wherever the trial was made: on a URL, or on a server booted for it. Whether the
server kept up is told by all that came to an end, right or wrong: how many may be wrong is for conditions on errors to
say, and where there is none, for a demand that goes without saying.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from velodrome.judge.load_figures import requests_needed
from velodrome.judge.search import backlog
from velodrome.judge.search.failing import FAILING, NOBODY_ASKED, OneByOne, share_failed, wrong_anyway
from velodrome.model import quantity
from velodrome.model.condition import Condition, Figures, comparisons, decide
from velodrome.model.condition_said import because
from velodrome.model.search import Probe

WARMUP_S, DRAIN_S = 0.5, 0.5
"""Before and after what is measured of one trial."""
LONGEST_S = 60.0
"""Of one trial, however many requests a percentile needs at a low rate."""
SPARE = 1.3
"""So many times the requests a percentile needs are asked."""
FELL_BEHIND = 0.95
"""An open loop of which less than this part of its rate came to an end was asked for too much, with or without
conditions."""


@dataclass(frozen=True)
class Demands:
    """What is demanded of a load: `must` has to hold (an SLO), `must_not` may not (`--fail-if`)."""

    must: tuple[Condition, ...] = ()
    must_not: tuple[Condition, ...] = ()

    @property
    def every(self) -> tuple[Condition, ...]:
        """All conditions."""
        return (*self.must, *self.must_not)

    def seconds(self, rate: float, least: float) -> float:
        """Return how long a trial is: long enough for the percentiles that are named, if that is bearable."""
        named = (one.metric for condition in self.every for one in comparisons(condition))
        needed = max((requests_needed(metric) for metric in named), default=1)
        return max(least, min(SPARE * needed / rate, LONGEST_S))


@dataclass(frozen=True)
class Tried:
    """What a trial of a rate gave."""

    rate: float
    outcomes: Mapping[str, int]
    """How many of its requests ended how."""
    ended_rps: float
    """Requests that came to an end within it, right or wrong, per second."""
    figures: Figures
    rising: backlog.Slope | None = None
    """How its backlog rose, where it was ended because of that."""
    alone: OneByOne = NOBODY_ASKED
    """The same server, asked one request after the other."""


def probe(tried: Tried, demands: Demands) -> Probe:
    """Return whether a rate held; a trial that says nothing of the server is for the caller to sort out before."""
    broken, untold = _by_conditions(tried, demands)
    broken = broken or _overdone(tried)
    if broken:
        return Probe(tried.rate, False, broken)
    if (failed := share_failed(tried.outcomes, demands.every)) > FAILING:
        anyway = wrong_anyway(tried.alone, demands.every)
        why = anyway or f"{quantity.percent(failed)} of the requests failed"
        return Probe(tried.rate, False, why, everywhere=bool(anyway))
    return Probe(tried.rate, None, untold) if untold else Probe(tried.rate, True)


def fell_behind(rate: float, ended_rps: float) -> bool:
    """Return whether a server did not keep up with a rate, by what came to an end."""
    return ended_rps < FELL_BEHIND * rate


def _by_conditions(tried: Tried, demands: Demands) -> tuple[str, str]:
    """Return which condition broke, and which cannot be told; empty: none."""
    broken = untold = ""
    for wanted, conditions in ((True, demands.must), (False, demands.must_not)):
        for condition in conditions:
            found = decide(condition, tried.figures)
            if found.holds is None:
                untold = untold or because(found)
            elif found.holds is not wanted:
                broken = broken or because(found)
    return broken, untold


def _overdone(tried: Tried) -> str:
    """Return how a rate shows to be too high, whatever the conditions."""
    if tried.rising is not None:
        return f"the backlog rose by {quantity.rate(tried.rising.per_s)}"
    if fell_behind(tried.rate, tried.ended_rps):
        return f"only {quantity.rate(tried.ended_rps)} were answered"
    return ""


class Backlog:
    """Listens to the ticks of a load and says when its backlog rises, so that it can be ended."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._seen: list[tuple[float, float]] = []
        self._last: tuple[int, int, int] | None = None
        self.rising: backlog.Slope | None = None

    def begin(self) -> None:
        """Forget what was seen: the load is made once more."""
        self._seen, self._last, self.rising = [], None, None

    def goes_on(self, tick: Mapping[str, Any]) -> bool:
        """Take a tick of the engine; False from when the backlog rises."""
        if tick["phase"] != "measure" or self.rising is not None:
            return self.rising is None
        # Ticks are more frequent than news.
        news = (tick["in_flight"], tick["waiting"], tick["requests"])
        if news != self._last:
            self._last = news
            self._seen.append((tick["at_s"], float(tick["in_flight"] + tick["waiting"])))
            self.rising = backlog.rises(self._seen, self._rate)
        return self.rising is None

"""The benches of a tuning: any candidate under any load, and how long the next load may take.

with Benches(template, lab, demands, follower) as benches:
    told = benches.measure(candidate, Ask(1.5, rate=300))
"""

import time
from collections import deque
from dataclasses import replace
from types import TracebackType
from typing import Protocol, Self

from velodrome.judge.search.holding import Demands, fell_behind
from velodrome.judge.tuning.forecasting import leak
from velodrome.model.errors import AppAnswersWrongError, NoServerError
from velodrome.model.measurement import Measurement
from velodrome.model.trial import Contestant, Trial
from velodrome.model.tuning import Ask, Candidate, Told
from velodrome.run.lab import Lab
from velodrome.run.racing.follower import Preparing
from velodrome.track.bench import Bench
from velodrome.track.comparing import MOST_WRONG
from velodrome.track.refusing import Refused, most_telling, not_served

LATELY = 5
"""So many loads are remembered, to tell how long the next may take."""


class Follower(Preparing, Protocol):
    """Whoever shows the race while it runs."""

    def told(self, candidate: Candidate, told: Told) -> None:
        """Told each load."""


class Benches:
    """Measures loads of any candidate; the server of the last one stays up until another is asked."""

    def __init__(self, template: Trial, lab: Lab, demands: Demands, follower: Follower) -> None:
        self._template, self._lab, self._demands, self._follower = template, lab, demands, follower
        self._bench: Bench | None = None
        self._alone_ms: dict[str, float] = {}
        self._refused: dict[str, Refused] = {}
        """By stack, until one serves the app."""
        self._took: deque[float] = deque(maxlen=LATELY)
        self._looking: dict[str, float] = {}
        self._most_rps = 0.0

    @property
    def next_s(self) -> float:
        """How long the next load may take: as the longest of the last few, or as its percentiles need."""
        needs = self._demands.seconds(self._most_rps, 0.0) if self._most_rps else 0.0
        return max([needs, *self._took])

    @property
    def look_s(self) -> float:
        """How long a look at a stack may take: as the longest so far."""
        return max(self._looking.values(), default=0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def measure(self, candidate: Candidate, ask: Ask) -> Told:
        """Make one load and say what it gave.

        Raises AppAnswersWrongError or AppNotServedError once several stacks could not serve an app, and none could.
        """
        began = time.monotonic()
        try:
            told = self._told(self.bench(candidate), ask)
        except (NoServerError, AppAnswersWrongError) as error:
            self._stop()
            self._doubt_app(candidate.contestant, error)
            told = Told(ask, failed=error.reason)
        self._note(candidate, told, time.monotonic() - began)
        self._follower.told(candidate, told)
        return told

    def _note(self, candidate: Candidate, told: Told, took_s: float) -> None:
        self._took.append(took_s)
        if not told.ask.rate:
            stack = candidate.contestant.stack
            self._looking[stack] = self._looking.get(stack, 0.0) + took_s
        self._most_rps = max(self._most_rps, told.throughput_rps)

    def bench(self, candidate: Candidate) -> Bench:
        """Return the bench of a candidate."""
        if self._bench is None or self._bench.trial.contestant != candidate.contestant:
            self._stop()
            trial = replace(self._template, contestant=candidate.contestant)
            known = self._alone_ms.get(candidate.contestant.stack)
            # Once of a stack is enough.
            told = self._follower.preparing if known is None else None
            self._bench = Bench(trial, self._lab, alone_ms=known or 0.0, told=told)
        return self._bench

    def _doubt_app(self, who: Contestant, error: NoServerError | AppAnswersWrongError) -> None:
        app = self._template.app
        if app is None or self._alone_ms or (isinstance(error, NoServerError) and not error.tried):
            return
        told = error if isinstance(error, AppAnswersWrongError) else not_served(app, who.label, error)
        self._refused[who.stack] = told
        if len(self._refused) >= MOST_WRONG:
            raise most_telling([*self._refused.values()]) from error

    def _stop(self) -> None:
        if self._bench is not None:
            self._bench.stop()
        self._bench = None

    def _told(self, bench: Bench, ask: Ask) -> Told:
        if ask.rate:
            probe, measured = bench.rate(ask.rate, self._demands, ask.seconds)
            if measured is None:
                return Told(ask, failed=probe.why)
            facts = _facts(ask, measured)
            return replace(
                facts,
                held=probe.held,
                why=probe.why,
                overdone=fell_behind(ask.rate, facts.throughput_rps),
                spoilt=probe.spoilt,
                everywhere=probe.everywhere,
            )
        if ask.connections == 1:
            alone = bench.alone(ask.seconds)
            self._alone_ms[bench.trial.contestant.stack] = alone.load.sent.mean or 0.0
            why = bench.wrong_anyway(self._demands)
            return replace(_facts(ask, alone), why=why, everywhere=bool(why))
        sample, measured = bench.connections(ask.connections, ask.seconds)
        if measured is None:
            return Told(ask, failed=sample.spoilt)
        return replace(_facts(ask, measured), spoilt=sample.spoilt)


def _facts(ask: Ask, measured: Measurement) -> Told:
    found, load = leak(measured), measured.load
    return Told(
        ask,
        throughput_rps=load.ended_rps,
        mean_ms=load.sent.mean,
        cpu_us=measured.server.cpu_s * 1e6 / (load.ended_rps * load.duration_s) if load.ended_rps else None,
        memory_bytes=measured.memory_bytes,
        grew_bytes=found.bytes_per_request if found else None,
    )

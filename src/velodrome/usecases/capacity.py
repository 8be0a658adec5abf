"""How much one stack can do of an app or a recipe: the highest rate that holds, or the knee of a closed loop.

    found = capacity(CapacitySpec(ServedSpec(app), "gunicorn-gthread", slo=(condition,)), follower)
    judge_stored(store.read(folder), catalog.stacks())         # the same again, from what is stored

Each load is stored in a run folder before the next begins (`recording.py`). Which load is next follows from those
before it and from the time they took, which is stored with them. So an interrupted search goes on by asking for its
loads from the first on: those that are stored are taken from there, and `judge_stored` has no others.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from velodrome.guest.stack import Stack
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
from velodrome.judge.search.load_levels import (
    BOOTS,
    SHARES,
    TIMES,
    after_overload,
    in_turn,
    latency_at,
    schedule,
    seconds_at,
    shown_metric,
)
from velodrome.judge.search.rate import FIRST, PROVABLE, Measuring, RateSearch, highest_rate
from velodrome.model import quantity
from velodrome.model.condition import Condition, comparisons, read_stored, write_condition
from velodrome.model.errors import AppAnswersWrongError, AppNotServedError, NoServerError
from velodrome.model.load import INDEPENDENT, Arrivals, Limits, Link, Open, Schedule
from velodrome.model.measurement import Failed, FailureKind, Measurement, Purpose
from velodrome.model.results import Result, Results, Sought
from velodrome.model.search import (
    Bottom,
    ConnectionsFound,
    Ending,
    Knee,
    LoadLatency,
    Overload,
    Probe,
    RateCapacity,
    RateFound,
    Sample,
    Scalability,
)
from velodrome.model.trial import Contestant, Session, Trial
from velodrome.run.lab import Lab
from velodrome.run.racing.opening import Preparing, open_lab
from velodrome.run.racing.plan import RunPlan, plan_of, seat
from velodrome.usecases import apps
from velodrome.usecases import race as races
from velodrome.usecases.apps import Served, ServedSpec
from velodrome.usecases.bench import SECONDS, UNLIMITED, Bench, alone_load, closed_load, trial_of
from velodrome.usecases.events import Events
from velodrome.usecases.recording import (
    AROUND_S,
    LEAST_PROOF_S,
    PROVING,
    START_S,
    NotStoredError,
    Record,
    cold_start,
    cold_starts,
    header,
    open_record,
)
from velodrome.usecases.suspects import machine_cpus, suspects
from velodrome.usecases.terms import DEFAULT_KNOBS, Knobs, refuse_span

LOOK_CONNECTIONS = 32
LOOK_S = 1.0
LAW_NUMBERS = 7
"""Different numbers of connections that the law is fitted to, at least."""
MOST_CONNECTIONS = 1_024
OF_LOAD = ("rate", "requests", "in_flight", "cpu")
"""Metrics that say how much was requested, and nothing of a single request."""
LITTLE = 0.3
"""Of what one connection gets: so seldom that no request waits for another."""
LOOK_FIRST = RateSearch(first=0.0)
KNEE_S = 2.0
LATELY = 5
"""So many loads are remembered, to estimate how long the next may take."""
INTERRUPTED = "the search was interrupted"


@dataclass(frozen=True)
class CapacitySpec:
    """What is searched, and of which stack."""

    served: ServedSpec
    stack: str = ""
    """Its name, or its file; empty: a common stack that can serve the app."""
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
    out: Path | None = None
    """Folder of the run; None: one of `runs/`."""
    resume: bool = False
    """Go on with what is in the folder."""
    budget_s: float | None = None
    """Time to measure in, once the environments exist; None: as long as it takes. Not of a closed loop."""

    def __post_init__(self) -> None:
        if self.seconds is not None:
            refuse_span(self.seconds)


@dataclass(frozen=True)
class Searched:
    """What a search came to."""

    found: RateCapacity | Knee
    called: str
    """The stack with its settings, as people read it."""
    name: str
    """What was served."""
    about: str
    """That it does."""
    link: Link | None

    @property
    def title(self) -> str:
        """Above a report of it."""
        over = f" · over a link of {self.link.described}" if self.link else ""
        return f"{self.called} · {self.name}: {self.about}{over}"


def capacity(spec: CapacitySpec, follower: Events) -> Searched:
    """Search the highest rate at which the SLO holds, or the knee of a closed loop, and store each load.

    Raises what is wrong with the app, UnknownNameError, UnknownKnobError, NoServerError, BusyError, and what
    `open_record` does.
    """
    with _prepare(spec, follower) as (served, search):
        folder = races.folder(f"capacity-{search.trial.question.partition(':')[0]}", spec.out, spec.resume)
        who, stacks = search.trial.contestant, served.lab.stacks
        title = f"Capacity of {who.called(stacks[who.stack])}"
        sought = search.sought(len(seat(search.trial.limits, served.lab).placement.server_cpus))
        of = header(search.trial, sought, title, (who,))
        wait_s = None if spec.wait else 0.0
        with (
            _hold(search, served.lab, follower, wait_s) as ready,
            open_record(folder, of, spec.resume) as record,
        ):
            found = run_search(search, ready, follower, record)
    named = suspects(record.results, stacks, machine_cpus(of))
    return _name_result(search.trial, replace(found, folder=str(folder), suspects=named), stacks)


def judge_stored(results: Results, stacks: Mapping[str, Stack], folder: str = "") -> Searched:
    """Return what a search that is stored came to, without measuring anything; of an interrupted search, how far.

    Raises ResultsError where its loads are not those that the search makes.
    """
    search = Search.of(results)
    record = Record(before=results, path=folder or "results.jsonl")
    record.replay()
    trial = search.trial
    with Bench(trial, None, search.seconds, record=record, arrivals=search.arrivals) as bench:
        found = _search(search, _Loads(bench, record, search.budget), stacks, Events())
    named = suspects(results.trials, stacks, machine_cpus(results.header))
    return _name_result(trial, replace(found, folder=folder, suspects=named), stacks)


def _name_result(trial: Trial, found: RateCapacity | Knee, stacks: Mapping[str, Stack]) -> Searched:
    called = trial.contestant.called(stacks.get(trial.contestant.stack))
    return Searched(found, called, trial.recipe.name, trial.recipe.about, trial.link)


@contextmanager
def _prepare(
    spec: CapacitySpec, follower: Events, *, commands: bool = True
) -> Iterator[tuple[Served, "Search"]]:
    """Yield what is served, and what is searched of it. Raises as `capacity` does."""
    with apps.prepare_on(spec.served, spec.stack, spec.knobs, follower.said, commands=commands) as (
        served,
        who,
    ):
        trial = trial_of(
            spec.study, served.recipe, who, spec.limits, app=served.app, python=served.python, link=spec.link
        )
        seconds = spec.seconds or (KNEE_S if spec.closed else SECONDS)
        yield (
            served,
            Search(trial, Demands(must=spec.slo), spec.closed, seconds, spec.arrivals, spec.budget_s),
        )


def dry_run(spec: CapacitySpec, follower: Events) -> RunPlan:
    """Return what `capacity` would start: the loads it begins with, and how the search goes on from there.

    The app is imported to see what it is; its user's commands do not run. Raises as `capacity` does.
    """
    with _prepare(spec, follower, commands=False) as (served, search):
        trial, length = search.trial, search.seconds
        looks = [alone_load(trial.recipe)]
        adaptive: tuple[str, ...]
        if search.closed:
            counts = search.counts
            adaptive = (
                f"loads of {length:g} s at {counts.first}, {2 * counts.first}, {4 * counts.first} … connections, "
                f"{counts.most} at most, until throughput rises no more",
                f"{counts.blocks} blocks of loads around the fewest connections that are enough, and as many "
                "again while the interval is wide",
                f"twice as many connections each time, {MOST_CONNECTIONS} at most, until {LAW_NUMBERS} numbers "
                "of connections were measured for the scaling law",
            )
        else:
            looks.append(closed_load(trial.recipe, LOOK_CONNECTIONS, LOOK_S))
            too_much = schedule(1.0, TIMES[-1], length, search.arrivals)
            adaptive = (
                f"open loops of {length:g} s with {search.arrivals} arrivals, longer where a percentile "
                f"of the SLO needs more requests, the first at {FIRST:.0%} of the throughput seen, "
                "twice the rate while it holds or half until it does",
                f"{LOOK_FIRST.loads} rates near the edge, each for {NEAR_TIMES * length:g} s or up "
                f"to {NEAR_LONGEST_S:g} s, on each of {LOOK_FIRST.boots} boots or more, until half the interval is "
                f"within {LOOK_FIRST.tolerance:.0%}; {LOOK_FIRST.most} loads at most from step 1 on",
                f"a proof of {search.budget.proof_s(length):g} s at the lower end of the interval, on a "
                "fresh boot; again at a lower rate where it fails",
                f"open loops at {_shares(SHARES)} of the estimate, each on {BOOTS} boots, for latency over load",
                f"{_shares(TIMES)} of the estimate for {too_much.steps[1].duration_s:g} s each, between "
                f"{too_much.steps[0].duration_s:g} s and {too_much.steps[2].duration_s:g} s at "
                f"{too_much.steps[0].rate:.0%}",
            )
        sessions = [Session(tuple(replace(trial, load=load) for load in looks))]
        what = f"{'knee' if search.closed else 'capacity'} of {trial.cell}"
        return plan_of(what, sessions, served.lab, adaptive=adaptive, budget_s=search.budget.seconds)


def _shares(shares: Sequence[float]) -> str:
    return ", ".join(f"{share * 100:g}" for share in shares) + " %"


# --- What is searched, and in how much time.


@dataclass(frozen=True)
class Budget:
    """The time to measure in: for the search, for the proof, and then for what is shown beside the answer."""

    seconds: float | None
    """None: as long as it takes."""

    def proof_s(self, look_s: float) -> float:
        """Return how long a proof is, seconds; `look_s` is the length of the first loads."""
        whole = PROOF_TIMES * look_s
        if self.seconds is None:
            return whole
        return min(whole, max(PROVING * self.seconds, LEAST_PROOF_S))

    def search_ends(self, spent_s: float, next_s: float, look_s: float) -> bool:
        """Return whether there is no time for one more load of the search, if there is to be a proof."""
        return self.lacks(spent_s, next_s + START_S + self.proof_s(look_s))

    def lacks(self, spent_s: float, needed_s: float) -> bool:
        """Return whether so many more seconds are too many."""
        return self.seconds is not None and spent_s + needed_s > self.seconds

    @property
    def too_little(self) -> str:
        """Return the message where what is left is too short for what comes next."""
        return f"too little was left of its budget of {quantity.duration(self.seconds or 0.0)}"


@dataclass(frozen=True)
class Search:
    """What is searched of one contestant."""

    trial: Trial
    """Its load is not looked at."""
    demands: Demands = field(default_factory=Demands)
    closed: bool = False
    """The knee of a closed loop."""
    seconds: float = SECONDS
    """Of the first loads."""
    arrivals: Arrivals = INDEPENDENT
    budget_s: float | None = None
    rates: RateSearch = LOOK_FIRST
    counts: ConnectionSearch = field(default_factory=ConnectionSearch)
    beside: bool = True
    """Measure latency over load and overload, once the capacity is known."""
    proven: bool = True
    """Prove the lower end by a longer load; else nothing is claimed."""

    @property
    def budget(self) -> Budget:
        """Its time."""
        return Budget(self.budget_s)

    def sought(self, cpus: int) -> Sought:
        """Return what its folder says of it; `cpus` are those of the server."""
        return Sought(
            "capacity",
            tuple(map(write_condition, self.demands.must)),
            arrivals=self.arrivals,
            closed=self.closed,
            cpus=cpus,
            budget_s=self.budget_s,
            seconds=self.seconds,
        )

    @classmethod
    def of(cls, results: Results) -> "Search":
        """Return what a folder says was searched."""
        sought, study = results.header.sought, results.header.study
        assert sought is not None, "the header of a search says what it sought"
        (question,), (who,) = study.questions, study.contestants
        trial = trial_of(study.name, question.recipe, who, study.limits, app=question.app, link=question.link)
        return cls(
            trial,
            Demands(must=tuple(map(read_stored, sought.conditions))),
            sought.closed,
            sought.seconds or SECONDS,
            sought.arrivals,
            sought.budget_s,
        )


@contextmanager
def _hold(search: Search, lab: Lab, follower: Preparing, wait_s: float | None) -> Iterator[Lab]:
    """Yield the lab in which it can be booted. Raises as `open_lab` does."""
    what = f"{'knee' if search.closed else 'capacity'} of {search.trial.cell}"
    with open_lab([search.trial], lab, what, follower, wait_s) as ready:
        yield ready


def run_search(search: Search, lab: Lab, follower: Events, record: Record) -> RateCapacity | Knee:
    """Return what the search comes to in a lab that is ready; measured is what the record has not.

    Raises as `highest` does, and ResultsError where the record has other loads than the search makes.
    """
    with Bench(
        search.trial,
        lab,
        search.seconds,
        warn=follower.preparing,
        record=record,
        arrivals=search.arrivals,
    ) as bench:
        # Environments are made once; the budget is for what is measured.
        record.begin()
        record.replay()
        return _search(search, _Loads(bench, record, search.budget, live=True), lab.stacks, follower)


def highest(
    trial: Trial,
    lab: Lab,
    demands: Demands,
    follower: Events,
    *,
    seconds: float = SECONDS,
    rates: RateSearch = LOOK_FIRST,
    wait_s: float | None = 0.0,
    arrivals: Arrivals = INDEPENDENT,
    proven: bool = True,
) -> RateCapacity:
    """Search the highest rate at which what is demanded holds and the server keeps up, and nothing else; store nothing.

    Its claim is proven by a longer load, or there is none. Where `rates.first` is 0 a short look finds what to try
    first. Raises NoServerError, BusyError, LimitError, DriverError, and AppAnswersWrongError where an app, booted for
    the first time or once more, does not answer.
    """
    search = Search(
        trial, demands, seconds=seconds, arrivals=arrivals, rates=rates, beside=False, proven=proven
    )
    with _hold(search, lab, follower, wait_s) as ready:
        found = run_search(search, ready, follower, Record())
    assert isinstance(found, RateCapacity)
    return found


# --- The search, on a bench: measured or replayed.


@dataclass(frozen=True)
class _Loads:
    """What loads come from."""

    bench: Bench
    record: Record
    budget: Budget
    live: bool = False
    """Whether those that are not stored can be measured."""

    @property
    def at_an_end(self) -> bool:
        """Whether there is no further load to be had."""
        return not self.live and not self.record.replays


def _search(
    search: Search, loads: _Loads, stacks: Mapping[str, Stack], follower: Events
) -> RateCapacity | Knee:
    """Return what the search comes to."""
    searching = (_Counts if search.closed else _Rates)(search, loads, follower)
    found = searching.run()
    best = searching.best
    stack = stacks.get(search.trial.contestant.stack)
    took_s = cold_starts(loads.record.results)
    return replace(
        found,
        best=best,
        bottom=_bottom(best, search.trial.contestant, stack) if best and stack else None,
        trials=sum(map(_was_loaded, loads.record.results)),
        seconds=loads.record.at_s,
        cold_start_s=cold_start(took_s),
        cold_starts=len(took_s),
    )


def _was_loaded(result: Result) -> bool:
    return isinstance(result, Measurement) or result.failure in {FailureKind.DIED, FailureKind.LOAD}


def _bottom(best: Measurement, who: Contestant, stack: Stack) -> Bottom:
    settings = stack.settings(who.knobs)
    return bounding(best, stack.slots(settings), int(settings.get("workers", 1)))


class _Rates:
    """The search for the highest rate, and what is measured once that is known."""

    def __init__(self, search: Search, loads: _Loads, follower: Events) -> None:
        self._search, self._loads, self._follower = search, loads, follower
        self._bench, self._budget, self._demands = loads.bench, loads.budget, search.demands
        self._took: list[float] = []
        """Seconds that each load took, with the boot before it."""
        self._probes: list[Probe] = []
        self._proofs = 0
        self._left_out: list[str] = []
        self.best: Measurement | None = None
        """Of the highest rate that held; where a rate was proven, of the proof."""

    def run(self) -> RateCapacity:
        """Return what came of it; what `_search` knows is not filled in."""
        try:
            found = self._found()
        except NotStoredError as error:
            because = error.reason or INTERRUPTED
            boots = len({probe.boot for probe in self._probes})
            found = RateFound(Ending.CANNOT, None, because, tuple(self._probes), boots)
        shown: tuple[LoadLatency, ...] = ()
        overload: tuple[Overload, ...] = ()
        if self._search.beside and found.interval is not None and found.ending in PROVABLE:
            if found.ending is not Ending.BEYOND:
                shown = tuple(self._latencies(found.interval.mid))
                overload = tuple(self._overloads(found.interval.mid))
            else:
                why = "the capacity itself is not known"
                self._left_out.append(f"latency over load and overload: {why}")
        return RateCapacity(
            tuple(map(write_condition, self._demands.every)),
            found,
            None,
            None,
            0,
            0.0,
            self._search.arrivals,
            shown,
            overload,
            left_out=tuple(self._left_out),
        )

    def _found(self) -> RateFound:
        measuring = Measuring(
            self._look,
            self._near,
            self._bench.stop,
            self._prove if self._search.proven else None,
            stopped=self._why_stopped,
        )
        alone = self._bench.alone()
        if why := self._bench.wrong_anyway(self._demands):
            return RateFound(Ending.NEVER, None, why, ())
        rates = self._search.rates
        return highest_rate(measuring, rates if rates.first else self._begin_from_look(rates, alone))

    def _begin_from_look(self, search: RateSearch, alone: Measurement) -> RateSearch:
        """Return a search that begins where a short look says."""
        rps = alone.load.ended_rps
        names = {
            comparison.metric.statistic
            for condition in self._demands.every
            for comparison in comparisons(condition)
        }
        of_load = not names.isdisjoint(OF_LOAD)
        tried = Tried(rps, alone.load.outcomes, rps, figures_of(alone.load, open_loop=False))
        if not of_load and probe(tried, self._demands).held is False:
            # What breaks with nobody before it breaks at every rate: a few requests a second show that.
            few = max(search.lowest, LITTLE * rps)
            return replace(search, first=few, lowest=few)
        look, _ = self._bench.connections(LOOK_CONNECTIONS, LOOK_S)
        return replace(search, first=max(search.lowest, FIRST * max(look.rps, rps)))

    def _look(self, rate: float) -> Probe:
        return self._try(rate)

    def _near(self, rate: float) -> Probe:
        return self._try(rate, self._demands.seconds_near(rate, self._search.seconds))

    def _try(self, rate: float, seconds: float | None = None) -> Probe:
        tried, measured = self._rate(rate, seconds, Purpose.RATE)
        if tried.held and measured is not None and (self.best is None or rate >= _rate(self.best)):
            self.best = measured
        return tried

    def _rate(self, rate: float, seconds: float | None, purpose: Purpose) -> tuple[Probe, Measurement | None]:
        before_s = self._loads.record.at_s
        tried, measured = self._bench.rate(rate, self._demands, seconds, purpose)
        self._took.append(self._loads.record.at_s - before_s)
        self._probes.append(tried)
        self._follower.tried(tried, measured)
        return tried, measured

    def _why_stopped(self) -> str:
        """Return why the search makes no further load; empty: it may."""
        if self._budget.search_ends(self._loads.record.at_s, self._next_s(), self._search.seconds):
            return self._budget.too_little
        return INTERRUPTED if self._loads.at_an_end else ""

    def _next_s(self) -> float:
        """Return how long the next load may take, seconds: as the longest of the last few, or a load near the edge."""
        length = self._search.seconds
        if {earlier.held for earlier in self._probes} >= {True, False}:
            length = self._demands.seconds_near(self._probes[-1].rate, length)
        return max([length + AROUND_S, *self._took[-LATELY:]])

    def _prove(self, rate: float) -> Probe | None:
        """Load at the rate that is to be claimed; the first time however late it is."""
        length, at_s = self._budget.proof_s(self._search.seconds), self._loads.record.at_s
        again = self._proofs > 0
        late = again and self._budget.lacks(at_s, START_S + length)
        if late or self._loads.at_an_end:
            why = self._budget.too_little if late else INTERRUPTED
            self._left_out.append(f"{'a further' if again else 'the'} proof: {why}")
            return None
        if not self._loads.record.replays:
            self._follower.preparing(
                f"proof: {quantity.rate(rate)} for {quantity.duration(length)} on a fresh boot"
            )
        tried, measured = self._rate(rate, length, Purpose.PROOF)
        self._proofs += 1
        if tried.held and measured is not None:
            # What is claimed is what is reported on: its latency, its CPU, its memory.
            self.best = measured
        return tried

    # What is shown beside the answer.

    def _latencies(self, capacity: float) -> Iterator[LoadLatency]:
        """Yield the latency at parts of the capacity: the boot of the proof, and two more, are loaded with all."""
        metric = shown_metric(self._demands.every)
        lengths = {share: seconds_at(share * capacity, metric, self._search.seconds) for share in SHARES}
        block_s = START_S + sum(length + AROUND_S for length in lengths.values())
        found: dict[float, list[Result]] = {share: [] for share in SHARES}
        for boot in range(BOOTS):
            if why := self._unaffordable(block_s):
                on = f" on {BOOTS - boot} of {BOOTS} boots" if boot else ""
                self._left_out.append(f"latency over load{on}: {why}")
                break
            if boot:
                self._bench.stop()
            for share in in_turn(boot):
                pace = Open(share * capacity, self._search.arrivals)
                measured, why = self._show_load(pace, lengths[share], Purpose.LATENCY)
                if measured is None:
                    self._left_out.append(f"latency at {share * 100:g} %: {why}")
                else:
                    found[share].append(measured)
                    self._tell(f"{share * 100:g} % of it, {quantity.rate(pace.rate)}", measured)
        for share, results in found.items():
            if results:
                yield latency_at(share, share * capacity, metric, results)

    def _overloads(self, capacity: float) -> Iterator[Overload]:
        """Yield what came of more than the capacity, each on a server that was not overloaded before."""
        for number, times in enumerate(TIMES):
            pace = schedule(capacity, times, self._search.seconds, self._search.arrivals)
            what = f"overload at {times * 100:g} %"
            if why := self._unaffordable(START_S + pace.span_s + AROUND_S):
                self._left_out.append(f"{what}: {why}")
                continue
            if number:
                self._bench.stop()
            measured, why = self._show_load(pace, pace.span_s, Purpose.OVERLOAD)
            if measured is None:
                self._left_out.append(f"{what}: {why}")
                continue
            self._tell(what, measured)
            yield after_overload(times, pace, measured)
        self._bench.stop()

    def _unaffordable(self, needed_s: float) -> str:
        """Return why something that takes so long is left out; empty: it is not."""
        if self._budget.lacks(self._loads.record.at_s, needed_s):
            return self._budget.too_little
        return INTERRUPTED if self._loads.at_an_end else ""

    def _show_load(
        self, pace: Open | Schedule, seconds: float, purpose: Purpose
    ) -> tuple[Result | None, str]:
        """Return what a load came to, or none and why: the answer that is there is not lost by it."""
        try:
            return self._bench.run_to_end(pace, seconds, purpose), ""
        except NotStoredError as error:
            return None, error.reason or INTERRUPTED
        except (NoServerError, AppAnswersWrongError, AppNotServedError):
            self._bench.stop()
            last = self._loads.record.results[-1]
            return None, last.reason if isinstance(last, Failed) else "nothing was answered"

    def _tell(self, what: str, result: Result) -> None:
        p99 = (
            quantity.milliseconds(result.load.due.p99)
            if isinstance(result, Measurement)
            else quantity.MISSING
        )
        self._follower.preparing(f"{what}: p99 {p99} ms from due")


class _Counts:
    """The search for the connections at which throughput stops rising, and the law that all of them follow."""

    def __init__(self, search: Search, loads: _Loads, follower: Events) -> None:
        self._search, self._bench, self._follower = search, loads.bench, follower
        self._samples: list[Sample] = []
        self.best: Measurement | None = None
        """Of the closed loop with the most right answers."""

    def run(self) -> Knee:
        """Return what came of it; what `_search` knows is not filled in."""
        law: Scalability | None = None
        try:
            self._bench.alone()
            found = enough_connections(self._sample, self._search.counts)
            law = scalability([*found.samples, *self._further(found.samples)])
        except NotStoredError as error:
            because = error.reason or INTERRUPTED
            found = ConnectionsFound(Ending.CANNOT, None, None, because, tuple(self._samples))
        return Knee(found, law, None, None, 0, 0.0)

    def _sample(self, count: int) -> Sample:
        sample, measured = self._bench.connections(count)
        self._samples.append(sample)
        self._follower.sampled(sample, measured)
        most = self.best.load.throughput_rps if self.best is not None else -1.0
        if not sample.spoilt and measured is not None and sample.rps > most:
            self.best = measured
        return sample

    def _further(self, samples: Sequence[Sample]) -> Iterator[Sample]:
        """Yield closed loops of more connections, where the search for the knee needed too few for a law."""
        counts = {sample.connections for sample in samples if not sample.spoilt}
        most = max(counts, default=0)
        while counts and len(counts) < LAW_NUMBERS and most < MOST_CONNECTIONS:
            most *= 2
            counts.add(most)
            sample = self._sample(most)
            yield sample
            if sample.spoilt:
                return


def _rate(measured: Measurement) -> float:
    return getattr(measured.trial.load.pace, "rate", 0.0)

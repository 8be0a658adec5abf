"""Which stack, with which settings, is best for an app or a recipe within limits: the race among settings, measured.

    tune(TuneSpec(ServedSpec(app), slo=(condition,)), follower)
    judge_stored(store.read(folder), catalog.stacks())

Each load is stored in a run folder before the next begins (`recording.py`). What the race knows, what is left of the
budget, and what is recommended are all made of what is stored (`Progress`), so that a tuning that was interrupted goes
on, and judging its folder again comes to the same answer.
"""

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.judge.deploying import circumstances, deploy, deploy_app, starts_something, variables_of
from velodrome.judge.search.holding import (
    Demands,
    OneByOne,
    of_the_lab,
    of_the_moment,
    wrong_anyway,
)
from velodrome.judge.tuning.forecasting import changes, leak
from velodrome.judge.tuning.hosts import SharedRace
from velodrome.judge.tuning.knowing import LEAST_BOOTS
from velodrome.judge.tuning.racing import (
    CONFIRM_S,
    CONFIRMING,
    CONFIRMING_COST,
    MORE_BOOTS,
    MOST_BOOTS,
    Field,
    Loads,
    Share,
    confirming,
    drive,
    race,
    racing,
    whole,
)
from velodrome.judge.workers import judge_check
from velodrome.model import quantity
from velodrome.model.app import App
from velodrome.model.condition import Condition, read_stored, write_condition
from velodrome.model.errors import (
    AppAnswersWrongError,
    NoServerError,
    StudyChangedError,
    UnknownNameError,
    UsageError,
)
from velodrome.model.load import INDEPENDENT, RATE_HELD, Arrivals, Closed, Limits, Open
from velodrome.model.measurement import Failed, Measurement, Purpose
from velodrome.model.quantity import Interval
from velodrome.model.results import Header, Result, Results, Sought
from velodrome.model.trial import Contestant, Session, Trial
from velodrome.model.tuning import (
    Ask,
    AsPasted,
    Candidate,
    Entry,
    Fate,
    Goal,
    Growth,
    Observation,
    Proven,
    Recommendation,
    Tuned,
    TuneEnding,
    Wanted,
)
from velodrome.model.workers import WorkerCheck
from velodrome.plan.matrix import grid, neighbours
from velodrome.run.lab import Lab
from velodrome.run.racing.opening import open_lab
from velodrome.run.racing.plan import RunPlan, plan_of, seat
from velodrome.run.racing.race import AT_START, MOST_WRONG, session_runner
from velodrome.run.racing.session import Refused, most_telling, refusal
from velodrome.run.racing.store import NAME
from velodrome.usecases import apps, workers
from velodrome.usecases import race as races
from velodrome.usecases.apps import Served, ServedSpec
from velodrome.usecases.bench import UNLIMITED, Bench, alone_load, not_served, of_rate, trial_of, why_nothing
from velodrome.usecases.events import Events
from velodrome.usecases.recording import (
    AROUND_S,
    LEAST_PROOF_S,
    PROVING,
    START_S,
    Record,
    cold_start,
    cold_starts,
    header,
    open_record,
)
from velodrome.usecases.suspects import machine_cpus, suspects

# --- Progress, from stored results.


@dataclass(frozen=True)
class Made:
    """A requested load, and what it showed."""

    contestant: Contestant
    observed: Observation
    purpose: Purpose
    result: Result
    took_s: float
    """With the start of its server and what the machine spoilt."""

    @property
    def host(self) -> str:
        """That made it; empty: this machine."""
        return host_of(self.result)

    @property
    def final(self) -> bool:
        """Whether it was made on the host of the proof, where several hosts measure."""
        return self.result.step is not None and self.result.step.final


def host_of(result: Result) -> str:
    """Return the host that measured it; empty: this machine."""
    return result.machine.name if result.machine is not None else ""


class Progress:
    """What has been measured of a search, load by load."""

    def __init__(self, demands: Demands) -> None:
        self.demands = demands
        self._alone: dict[str, OneByOne] = {}
        """By stack: outcomes of requests that were sent one after the other."""
        self.made: list[Made] = []
        self.spent_s = 0.0
        self._ended_s: dict[str, float] = {}
        """By host, when its last load had ended."""

    def take(self, results: Sequence[Result]) -> list[Made]:
        """Take stored results in and return what was made; loads that belong together come together."""
        found = []
        for _, group in groupby(results, key=lambda result: result.step.number if result.step else 0):
            made = self._of([*group])
            if made is not None:
                self.made.append(made)
                found.append(made)
        return found

    @property
    def alone_ms(self) -> dict[str, float]:
        """What an answer takes alone, by stack."""
        return {
            made.contestant.stack: made.observed.mean_ms
            for made in self.made
            if made.purpose is Purpose.ALONE and made.observed.mean_ms
        }

    def _of(self, results: Sequence[Result]) -> Made | None:
        """Return what loads of one number come to; None: a server was warmed up."""
        host = host_of(results[0])
        began_s = self._ended_s.get(host, 0.0)
        for result in results:
            assert result.step is not None, "loads of a search say where they stand in it"
            self.spent_s = max(self.spent_s, result.step.spent_s)
            if isinstance(result, Measurement) and result.step.purpose is Purpose.ALONE:
                stack = result.trial.contestant.stack
                self._alone[stack] = self._asked(stack).and_of(result.load.outcomes)
        self._ended_s[host] = self.spent_s
        took_s = self.spent_s - began_s
        if host:  # which waits for others at times
            took_s = min(took_s, math.fsum(_at_most_s(result) for result in results))
        main = next((result for result in reversed(results) if not _is_beside(result)), results[-1])
        if main.step is None or main.step.purpose is Purpose.WARM_UP:
            return None
        observed = replace(self._observation(main), boot=main.step.boot, host=host)
        return Made(main.trial.contestant, observed, main.step.purpose, main, took_s)

    def _asked(self, stack: str) -> OneByOne:
        return self._alone.get(stack, OneByOne())

    def _observation(self, found: Result) -> Observation:
        """Return what one load gave."""
        load, step = found.trial.load, found.step
        assert step is not None
        pace = load.pace
        ask = Ask(
            load.duration_s,
            rate=pace.rate if isinstance(pace, Open) else 0.0,
            connections=pace.connections if isinstance(pace, Closed) else 0,
            purpose=step.purpose,
        )
        if isinstance(found, Failed):
            of_look = step.purpose in (Purpose.ALONE, Purpose.CLOSED)
            return Observation(
                replace(ask, connections=ask.connections if of_look else 0), failed=_why_failed(found)
            )
        alone = self._asked(found.trial.contestant.stack)
        facts = _facts(ask, found)
        if isinstance(pace, Open):
            probe = of_rate(pace.rate, found, self.demands, alone)
            return replace(
                facts,
                held=probe.held,
                why=probe.why,
                overdone=not pace.kept_up(facts.throughput_rps, found.load.duration_s, RATE_HELD),
                spoilt=probe.spoilt,
                everywhere=probe.everywhere,
            )
        if step.purpose is Purpose.ALONE:
            if not found.load.answers or not found.load.sent.mean:
                return Observation(ask, failed=why_nothing(found))
            why = wrong_anyway(alone, self.demands.every)
            return replace(facts, why=why, everywhere=bool(why))
        flag = of_the_lab(found) or of_the_moment(found)
        return replace(facts, spoilt=flag.sentence if flag else "")


def _at_most_s(result: Result) -> float:
    """Return how long a load takes with the start of a server, about."""
    return result.trial.load.duration_s + result.trial.load.warmup_s + AROUND_S + START_S


def _is_beside(result: Result) -> bool:
    """Whether a load was made beside what was asked for: to be sure of wrong answers, or to warm up."""
    return result.step is not None and result.step.purpose in (Purpose.ALONE, Purpose.WARM_UP)


def _why_failed(found: Failed) -> str:
    """Return what ended it: an exception of its server first, as tables show how a sentence begins."""
    reason = found.reason.removeprefix(f"{found.trial.contestant.label}: ")
    return f"{found.raised} ({reason})" if found.raised else reason


def _facts(ask: Ask, measured: Measurement) -> Observation:
    found, load = leak(measured), measured.load
    return Observation(
        ask,
        throughput_rps=load.ended_rps,
        mean_ms=load.sent.mean,
        cpu_us=measured.server.cpu_s * 1e6 / (load.ended_rps * load.duration_s) if load.ended_rps else None,
        memory_bytes=measured.memory_bytes,
        grew_bytes=found.bytes_per_request if found else None,
    )


# --- The budget.

PROOF_S = 60.0
"""A proof is so long, or what its part of the budget allows."""
CONFIRMS, CONFIRMS_COST = (0.35, 0.45, 130.0), (0.2, 0.3, 90.0)
"""Of the budget, for the starts that confirm a rate, or a cost, for which each makes half as many loads: this part, or
of a short budget the next, up to so many seconds."""
CHECKING, CHECK_S = 0.1, 25.0
"""Of the budget, for the check with more workers, and how long that takes at most, about."""
LOOKS = 0.5
"""Of the time that the race has, what looks at stacks may take: what was only looked at is no answer."""
LATELY = 5
"""So many loads are remembered, to estimate how long the next may take."""
LEAST_CONFIRM_S = 1.0
LOW_LOAD_S = 20.0
"""While no rate has held, a load at a low rate is longer than this only if all rates of the candidate are low."""


@dataclass(frozen=True)
class Budget:
    """The time to measure in: first for the race, then for what confirms it, then for the proof."""

    seconds: float
    demands: Demands
    costs: bool = False
    """Whether a cost is sought, and not a rate."""

    @property
    def proof_s(self) -> float:
        """How long a proof is to be."""
        return max(min(PROOF_S, PROVING * self.seconds), LEAST_PROOF_S)

    @property
    def confirmed_s(self) -> float:
        """When the last start that confirms has to have ended."""
        check_s = min(CHECK_S, CHECKING * self.seconds)
        return max(self.seconds - self.proof_s - START_S - check_s, 0.0)

    @property
    def racing_s(self) -> float:
        """When the race has to have ended."""
        part, more, most_s = CONFIRMS_COST if self.costs else CONFIRMS
        confirms = max(part * self.seconds, min(more * self.seconds, most_s))
        return max(self.confirmed_s - confirms, 0.0)

    def goes_on(self, progress: Progress) -> bool:
        """Return whether the race may make another load."""
        return progress.spent_s + self._next_s(progress) < self.racing_s

    def looks_on(self, progress: Progress) -> bool:
        """Return whether one more stack may be looked at: it takes as long as the longest look so far."""
        looks: dict[str, float] = {}
        for made in progress.made:
            if made.purpose in (Purpose.ALONE, Purpose.CLOSED):
                looks[made.contestant.stack] = looks.get(made.contestant.stack, 0.0) + made.took_s
        return progress.spent_s + max(looks.values(), default=0.0) < LOOKS * self.racing_s

    def out_of_time(self, progress: Progress) -> bool:
        """Return whether it was time that ended the race, by what was spent when its last load had ended."""
        racing = [made for made in progress.made if made.purpose in RACE]
        spent_s = max((made.result.step.spent_s for made in racing if made.result.step), default=0.0)
        return spent_s + self._next_s(progress) >= self.racing_s

    def confirms(self, progress: Progress, at_once: int = 1) -> float:
        """Return how long each load of one more start that confirms may be, in seconds; 0: there is no time.

        So many hosts measure at once.
        """
        left_s = self.confirmed_s - progress.spent_s
        starts = {made.observed.boot for made in progress.made if made.purpose is Purpose.CONFIRM}
        each_s = left_s / max(math.ceil((2 * LEAST_BOOTS - len(starts)) / at_once), 1)
        loads = CONFIRMING_COST if self.costs else CONFIRMING
        load_s = (each_s - START_S) / loads - AROUND_S
        least_s = START_S + loads * (LEAST_CONFIRM_S + AROUND_S)
        return min(max(load_s, LEAST_CONFIRM_S), CONFIRM_S) if left_s > least_s else 0.0

    def proves(self, progress: Progress, tried: int) -> float:
        """Return how long the next proof may be; 0: there is no time. The first is made however late it is."""
        left_s = self.seconds - progress.spent_s - START_S
        if not tried:
            return max(min(self.proof_s, left_s), LEAST_PROOF_S)
        return min(self.proof_s, left_s) if left_s >= LEAST_PROOF_S else 0.0

    def _next_s(self, progress: Progress) -> float:
        """How long the next load may take: as the longest of the last few, or as its percentiles need."""
        racing = [made for made in progress.made if made.purpose in RACE]
        most_rps = max((made.observed.throughput_rps for made in racing), default=0.0)
        needs = self.demands.seconds(most_rps, 0.0) if most_rps else 0.0
        return max([needs, *(made.took_s for made in racing[-LATELY:])])


RACE = (Purpose.ALONE, Purpose.CLOSED, Purpose.RATE)
"""What loads of the race are made for."""

# --- Measuring.


class Benches:
    """Measures loads of any candidate; the server of the last one stays up until another is requested."""

    def __init__(
        self,
        template: Trial,
        lab: Lab,
        follower: Events,
        record: Record,
        progress: Progress,
        *,
        arrivals: Arrivals = INDEPENDENT,
    ) -> None:
        self._template, self._lab, self._follower = template, lab, follower
        self._record, self._progress = record, progress
        self._demands, self._arrivals = progress.demands, arrivals
        self._bench: Bench | None = None
        self._doubts = Doubts(template.app, progress)
        self.known_alone_ms: dict[str, float] = {}
        """By stack, what an answer takes alone as another host measured it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def measure(self, candidate: Candidate, ask: Ask) -> Observation:
        """Make one load and say what it gave.

        Raises AppAnswersWrongError or AppNotServedError once several stacks could not serve an app, and none could.
        """
        before = len(self._record.results)
        if error := self.load(candidate, ask):
            self._doubts.note_failure(candidate.contestant, error)
        made = self._progress.take(self._record.results[before:])
        if made:
            observed = made[-1].observed
        else:
            assert error is not None, "every load is recorded"
            observed = Observation(ask, failed=error.reason)
        self._follower.observed(candidate, observed)
        return observed

    def load(self, candidate: Candidate, ask: Ask) -> NoServerError | AppAnswersWrongError | None:
        """Make one load, and return why there was no server for it; None: there was."""
        try:
            self._load(self._bench_of(candidate, ask.purpose), ask)
        except (NoServerError, AppAnswersWrongError) as why:
            self.stop()
            return why
        return None

    def _load(self, bench: Bench, ask: Ask) -> None:
        if ask.fresh:
            bench.warm(ask.purpose)
        if ask.rate:
            bench.rate(ask.rate, self._demands, ask.seconds, ask.purpose)
        elif ask.purpose is Purpose.ALONE:
            bench.alone(ask.seconds)
        else:
            bench.connections(ask.connections, ask.seconds)

    def _bench_of(self, candidate: Candidate, purpose: Purpose) -> Bench:
        as_pasted = purpose is Purpose.PASTED
        if self._bench is None or self._bench.trial.contestant != candidate.contestant or as_pasted:
            self.stop()
            trial = replace(self._template, contestant=candidate.contestant)
            stack = candidate.contestant.stack
            known = self._progress.alone_ms.get(stack) or self.known_alone_ms.get(stack)
            # Once of a stack is enough.
            warn = self._follower.preparing if known is None else None
            self._bench = Bench(
                trial,
                self._lab,
                alone_ms=known or 0.0,
                warn=warn,
                record=self._record,
                arrivals=self._arrivals,
                pasted=partial(self._lines, candidate.contestant) if as_pasted else None,
            )
        return self._bench

    def _lines(self, contestant: Contestant, port: int, packages: Mapping[str, str]) -> str:
        """Return what is pasted, for a port."""
        app, stack = self._template.app, self._lab.stacks[contestant.stack]
        assert app is not None, "what is pasted is of an app"
        return deploy_app(app, contestant, stack, packages, port=port)

    def make(self, run: Callable[[str, int], Loads]) -> None:
        """Make the loads of a race, or of what confirms. Raises as `measure` does."""
        drive(run("", 1), self.measure)

    def serve(self, session: Session) -> Generator[Result]:
        """Run a server session; nothing else may be up meanwhile."""
        return session_runner(self._lab)(session)

    def stop(self) -> None:
        """End the server that is up; the next load boots another."""
        if self._bench is not None:
            self._bench.stop()
        self._bench = None


class Doubts:
    """Whether it is an app's fault that no stack serves it."""

    def __init__(self, app: App | None, progress: Progress) -> None:
        self._app, self._progress = app, progress
        self._refused: dict[str, Refused] = {}
        """By stack, until one serves the app."""

    def note_failure(self, who: Contestant, error: NoServerError | AppAnswersWrongError) -> None:
        """Take in that a stack could not. Raises AppAnswersWrongError, AppNotServedError where that is enough."""
        if self._app is None or (isinstance(error, NoServerError) and not error.tried):
            return
        reason = not_served(self._app, who.label, error) if isinstance(error, NoServerError) else error
        self._add(who, reason, error)

    def see(self, results: Sequence[Result]) -> None:
        """Take in what another host measured. Raises as `note_failure` does."""
        for result in results:
            if self._app is not None and isinstance(result, Failed) and result.failure in AT_START:
                who = result.trial.contestant
                reason = refusal(self._app, who.label, result.failure, result.reason, result.last_lines)
                if isinstance(reason, AppAnswersWrongError) or reason.tried:
                    self._add(who, reason)

    def _add(self, who: Contestant, reason: Refused, error: Exception | None = None) -> None:
        if self._progress.alone_ms:
            return
        self._refused[who.stack] = reason
        if len(self._refused) >= MOST_WRONG:
            raise most_telling([*self._refused.values()]) from error


# --- The search.

DEPLOYED = ("wsgi", "asgi")
"""Interfaces by which a recipe is tuned, unless stacks are named: apps are written to these."""
GRID_LOADS = 15
"""A search for the highest rate of one candidate takes about so many loads, and the whole grid that for each."""
SHARE = 0.2
"""Of the loads that the whole grid would take, the race makes no more; those that confirm are on top."""
LEAST_LOADS = 24
PROOFS = 3
"""Rates that are tried to be proven, each lower than the one before."""
LOWERED = 0.9
"""Times a rate at which a proof failed, or what the server did then, the next is tried."""
PASTED_TRIES, PASTED_S = 2, 20.0
"""What is pasted is started so often at most, as one start of a server may be slower than the claim allows, and loaded
for so many seconds, or as long as a proof."""
FAR = 0.7
"""Of the lower end of an interval: where less than this is proven, shorter loads say little of long ones."""
KEPT_FREE = 0.5
"""Of the memory that is left at first, what leaks may take before a worker is replaced."""


@dataclass(frozen=True)
class TuneSpec:
    """What is tuned, by whom it may be served, and for what."""

    served: ServedSpec
    stacks: tuple[str, ...] = ()
    """Names, patterns with `*` and `?`, or files; empty: all that can serve it."""
    goal: Goal = Goal.CAPACITY
    rate: float = 0.0
    """Requests a second to be carried, where the goal is the least CPU or memory."""
    slo: tuple[Condition, ...] = ()
    """What must hold."""
    limits: Limits = UNLIMITED
    budget_s: float = 600.0
    wait: bool = False
    """Wait while another velodrome measures."""
    study: str = "tune"
    """The study that its trials are of."""
    paste: bool = False
    """Give what to paste although nothing is settled."""
    arrivals: Arrivals = INDEPENDENT
    """Of the open loops."""
    out: Path | None = None
    """Folder of the run; None: one of `runs/`."""
    resume: bool = False
    """Go on with what is in the folder."""
    agents: str = ""
    """Address of a coordinator, or a number of agents of this machine, that measure; empty: this machine does."""
    keys: Path | None = None
    """Folder of the certificates for that; None: the usual one."""


def tune(spec: TuneSpec, follower: Events) -> Recommendation:
    """Search the stack and settings with the most capacity at the SLO, or the least CPU or memory for a rate.

    Raises what is wrong with the app, UnknownNameError, NoStackFitsError, BusyError, what `open_record` does, and what
    `best_setting` does; with agents what `tune_hosts.best_setting` does.
    """
    apps.refuse_commands_beside(spec.agents, spec.served.app)
    with _prepare(spec, follower) as (served, search):
        name = f"tune-{search.trial.question.partition(':')[0]}"
        folder = races.folder(name, spec.out, spec.resume)
        if spec.agents:
            from velodrome.usecases import tune_hosts  # noqa: PLC0415 - brings Dask

            return tune_hosts.best_setting(spec, search, served.lab, follower, folder)
        wait_s = None if spec.wait else 0.0
        return best_setting(search, served.lab, follower, folder, resume=spec.resume, wait_s=wait_s)


def _served(
    spec: TuneSpec, extra: Sequence[str], follower: Events, *, commands: bool
) -> AbstractContextManager[Served]:
    """Yield what is served, with the user's `commands` around the block; where only hosts have it, they look at it."""
    app = spec.served.app
    if app is None or not apps.only_hosts_have(app, spec.agents):
        return apps.prepare_app(spec.served, extra, follower.said, commands=commands)
    from velodrome.usecases import look_on_hosts  # noqa: PLC0415 - most apps are here

    (found,), _ = look_on_hosts.look_there((app,), spec.agents, spec.keys, races.BY_ROLES, follower)
    return nullcontext(Served(found.recipe, found, apps.lab_for(app, extra)))


@contextmanager
def _prepare(spec: TuneSpec, follower: Events, *, commands: bool = True) -> Iterator[tuple[Served, "Search"]]:
    """Yield what is served, and what is searched of it. Raises as `tune` does."""
    names, extra = apps.split_stacks(spec.stacks)
    with _served(spec, extra, follower, commands=commands) as served:
        stacks = _candidates(served, names)
        apps.say_unread((served.app,), stacks, follower.said)
        trial = trial_of(
            spec.study, served.recipe, Contestant(""), spec.limits, app=served.app, python=served.python
        )
        yield (
            served,
            Search(
                trial,
                stacks,
                spec.goal,
                Demands(must=spec.slo),
                spec.rate,
                spec.budget_s,
                spec.paste,
                spec.arrivals,
            ),
        )


def dry_run(spec: TuneSpec, follower: Events) -> RunPlan:
    """Return what `tune` would start: the first load of each stack, and how the search goes on from there.

    The app is imported to see what it is; its user's commands do not run. Raises as `tune` does.
    """
    with _prepare(spec, follower, commands=False) as (served, search):
        begun = begin_search(search, served.lab)
        template, sought = begun.template, begun.sought
        replayed = Replayed(sought, search.trial.limits)
        firsts: list[Session] = []

        def first_look(candidate: Candidate, ask: Ask) -> Observation:
            load = alone_load(template.recipe, ask.seconds)
            firsts.append(Session((replace(template, contestant=candidate.contestant, load=load),)))
            return Observation(ask, failed="not started")

        # The search itself says which it begins with: it looks at the next stack where one does not serve.
        race(first_look, replayed.field)
        numbers = " and ".join(map(str, workers.counts(search.trial.limits.for_cpus(sought.cpus))))
        adaptive = (
            f"each of these once or twice more, with many connections, for at most {LOOKS:.0%} of the race's time",
            f"the most promising of {len(sought.candidates)} settings, once or twice each, in open loop with "
            f"{search.arrivals} arrivals, at a rate a little above what the leader holds",
            "the strongest of those left and the leader in turn, each time on a fresh start of the server, until none "
            f"can be better; {replayed.field.wanted.most} loads at most from the first on",
            f"the two best once more, on {LEAST_BOOTS} fresh starts each and {MORE_BOOTS} to {MOST_BOOTS} of the best",
            f"the setting that would be recommended, with {numbers} workers, about 15 s, and the next best if it fails",
            f"the recommended setting at the claimed rate, for {replayed.budget.proof_s:g} s",
            *(
                (
                    "what is pasted, started as it stands, at the claimed rate for "
                    f"{min(replayed.budget.proof_s, PASTED_S):g} s, and once more if it does not hold",
                )
                if template.app is not None
                else ()
            ),
        )
        what = f"tuning of {search.trial.recipe.name}"
        return plan_of(what, firsts, served.lab, adaptive=adaptive, budget_s=search.budget_s)


def _candidates(served: Served, names: Sequence[str]) -> tuple[Stack, ...]:
    """Return the stacks that are tried. Raises UnknownNameError, NoStackFitsError, UsageError."""
    every = served.lab.stacks
    for name in names:
        if not any(fnmatchcase(each, name) for each in every):
            raise UnknownNameError("stack", name, tuple(every))
    named = [each for each in every if any(fnmatchcase(each, name) for name in names)]
    if served.app is not None:
        able_names = apps.stacks_for(served.app, served.lab)
        fits = [each for each in able_names if each in named or not names]
        return tuple(every[each] for each in fits or apps.stacks_for(served.app, served.lab, named))
    stacks = [every[each] for each in named] or [*apps.servers_of(tuple(every.values()), DEPLOYED)]
    able = tuple(each for each in stacks if catalog.serves(each, served.recipe) is None)
    if not able:
        why = catalog.serves(stacks[0], served.recipe)
        raise UsageError(f"none of these stacks can serve {served.recipe.name}: {why}")
    return able


@dataclass(frozen=True)
class Search:
    """What is measured: a trial, who may serve it, and for what."""

    trial: Trial
    """Its contestant and load are not looked at."""
    stacks: tuple[Stack, ...]
    goal: Goal
    demands: Demands
    rate: float = 0.0
    """To be carried, where the goal is the least CPU or memory."""
    budget_s: float = 600.0
    paste: bool = False
    """Give what to paste although nothing is settled."""
    arrivals: Arrivals = INDEPENDENT

    def sought(self, cpus: int) -> Sought:
        """Return what its folder says of it."""
        return Sought(
            "tune",
            tuple(map(write_condition, self.demands.must)),
            self.goal.value,
            self.rate,
            cpus=cpus,
            arrivals=self.arrivals,
            budget_s=self.budget_s,
            candidates=grid(apps.common_first(self.stacks), self.trial.limits.for_cpus(cpus)),
        )


def best_setting(
    search: Search,
    lab: Lab,
    follower: Events,
    folder: Path,
    *,
    resume: bool = False,
    wait_s: float | None = 0.0,
) -> Recommendation:
    """Search the best setting, and store each load in `folder`. A stack that does not start is out.

    Raises BusyError, LimitError, DriverError, AppAnswersWrongError, AppNotServedError and what `open_record` does.
    """
    begun = begin_search(search, lab)
    with (
        open_lab(begun.firsts, lab, begun.about, follower, wait_s) as ready,
        open_record(folder, begun.header, resume) as record,
    ):
        if any(result.machine is not None for result in record.results):
            raise StudyChangedError(
                str(folder / NAME), ["agents measured it, and now there are none: give --agents"]
            )
        deciding = begun.take_up(ready.stacks, record, follower)
        with Benches(
            begun.template, ready, follower, record, deciding.replayed.progress, arrivals=search.arrivals
        ) as benches:
            # Environments are made once; the budget is for what is measured.
            record.begin()
            deciding.by(benches)
    return begun.judge(record, lab.stacks, folder)


@dataclass(frozen=True)
class Beginning:
    """What is searched, and how its loads and its folder begin, whoever measures."""

    search: "Search"
    template: Trial
    """Of which each load is made."""
    sought: Sought

    @property
    def about(self) -> str:
        """Return what is made, for those who wait for it."""
        return f"tuning of {self.search.trial.recipe.name}"

    @cached_property
    def header(self) -> Header:
        """Return the header of its folder."""
        contestants = tuple(candidate.contestant for candidate in self.sought.candidates)
        return header(self.search.trial, self.sought, "Which setting to deploy", contestants)

    @property
    def firsts(self) -> list[Trial]:
        """Return a trial of each stack."""
        firsts = {
            candidate.contestant.stack: replace(self.template, contestant=candidate.contestant)
            for candidate in self.sought.candidates
        }
        return [*firsts.values()]

    def take_up(self, stacks: Mapping[str, Stack], record: Record, follower: Events) -> "Deciding":
        """Return the search as far as it is stored, once the follower has heard of that."""
        replayed = Replayed(self.sought, self.search.trial.limits)
        for made in replayed.take(record.results):
            follower.observed(replayed.candidate_of(made.contestant), made.observed)
        return Deciding(self, stacks, replayed, record, follower)

    def judge(self, record: Record, stacks: Mapping[str, Stack], folder: Path) -> Recommendation:
        """Return what its folder recommends."""
        found = Results(self.header, tuple(record.results), 0, torn=False, checks=tuple(record.checks))
        return judge_stored(found, stacks, str(folder), paste=self.search.paste)


class Place(Protocol):
    """Where settings are measured: this machine, or several hosts, one of which measures what is claimed."""

    def measure(self, candidate: Candidate, ask: Ask) -> Observation:
        """Make one load and say what it gave."""

    def make(self, run: Callable[[str, int], Loads]) -> None:
        """Make the loads of a race, or of what confirms.

        `run` yields those of a host (empty: this machine) of so many.
        """

    def serve(self, session: Session) -> Generator[Result]:
        """Run a server session; no server is up meanwhile."""

    def stop(self) -> None:
        """End the server that is up."""


@dataclass
class Deciding:
    """The race to its end, and all that follows it: in one place."""

    begun: Beginning
    stacks: Mapping[str, Stack]
    replayed: "Replayed"
    record: Record
    follower: Events

    def by(self, place: Place) -> None:
        """Measure until it is decided what to recommend, and that is proven."""
        replayed = self.replayed
        by_name = {stack.name: stack for stack in self.begun.search.stacks}
        numbers = workers.counts(self.begun.search.trial.limits.for_cpus(self.begun.sought.cpus))
        replayed.take_checks(self.record.checks, self.stacks, numbers)
        survives = False
        while not survives:
            self._race(place, by_name)
            place.stop()
            self._check_best(place, numbers)
            survives = not replayed.take_checks(self.record.checks, self.stacks, numbers)
        while (proof := replayed.next_proof()) is not None:
            place.measure(*proof)
        while (pasted := replayed.next_pasted(self.begun.template.app, self.stacks)) is not None:
            self.follower.preparing("what is pasted, started as it stands")
            place.measure(*pasted)

    def _race(self, place: Place, by_name: Mapping[str, Stack]) -> None:
        """Race and confirm, and anew where a host was told apart that did not count any more."""
        budget, replayed = self.replayed.budget, self.replayed

        def race_there(host: str, _: int) -> Loads:
            return racing(
                replayed.share(host),
                lambda: budget.goes_on(replayed.progress),
                lambda best: neighbours(best, by_name[best.contestant.stack]),
                lambda: budget.looks_on(replayed.progress),
            )

        def confirm_there(host: str, hosts: int) -> Loads:
            return confirming(replayed.share(host), lambda: budget.confirms(replayed.progress, hosts))

        known = None
        while known is not replayed.field:
            known = replayed.field
            place.make(race_there)
            place.make(confirm_there)

    def _check_best(self, place: Place, numbers: Sequence[int]) -> None:
        """Serve whoever would be recommended with more workers, before that is done; the budget is not for this."""
        best = self.replayed.field.best
        if best is None or "workers" not in self.stacks[best.candidate.contestant.stack].knobs:
            return
        began = time.monotonic()
        stack = self.stacks[best.candidate.contestant.stack]
        trial = replace(self.begun.template, contestant=best.candidate.contestant)
        self.follower.preparing(f"checking {best.candidate.label} with more workers before it is recommended")
        rate = self.replayed.field.wanted.rate or best.reported.mid
        every = workers.loads(rate, fresh=workers.closes(stack, trial))
        before = self.replayed.checks_that_count(self.record.checks)
        for result in workers.settle(trial, every, numbers, place.serve, before):
            self.record.keep_check(result)
        self.record.leave_out(time.monotonic() - began)


def begin_search(search: Search, lab: Lab) -> Beginning:
    """Return how a search begins on this machine. Raises LimitError."""
    # The memory limit is judged by what was measured: a server that is killed at it yields no figures.
    template = replace(search.trial, limits=Limits(search.trial.limits.cpus))
    cpus = len(seat(template.limits, lab).placement.server_cpus)
    return Beginning(search, template, search.sought(cpus))


class Replayed:
    """A search as far as it is stored: the race, the time that is left, the proofs."""

    def __init__(self, sought: Sought, limits: Limits) -> None:
        demands = Demands(must=tuple(map(read_stored, sought.conditions)))
        most = max(LEAST_LOADS, round(SHARE * GRID_LOADS * len(sought.candidates)))
        self._wanted = Wanted(
            Goal(sought.goal),
            sought.cpus,
            sought.rate,
            limits.memory_bytes,
            most,
            slow_rate=demands.requests / LOW_LOAD_S,
        )
        self._grid = sought.candidates
        self._field = Field(sought.candidates, self._wanted)
        self.shared: SharedRace | None = None
        """Where several hosts measure."""
        self.progress = Progress(demands)
        self.budget = Budget(sought.budget_s or 600.0, demands, self._wanted.goal is not Goal.CAPACITY)

    def over_hosts(self) -> SharedRace:
        """Return what hosts race; from now on they do."""
        self.shared = self.shared or SharedRace(self._grid, self._wanted)
        return self.shared

    def share(self, host: str) -> Share:
        """Return what a host sees and does of the race; empty: this machine."""
        return self.shared.share(host) if self.shared is not None else whole(self._field)

    @property
    def field(self) -> Field:
        """What is known of the candidates."""
        return self.shared.field if self.shared is not None else self._field

    @property
    def home(self) -> str:
        """Host whose measurements may be claimed; empty: this machine, or it is not chosen yet."""
        return self.shared.home if self.shared is not None else ""

    def take(self, results: Sequence[Result]) -> list[Made]:
        """Take stored results in."""
        found = self.progress.take(results)
        for made in found:
            raced = made.purpose in (*RACE, Purpose.CONFIRM)
            if made.host:
                shared = self.over_hosts()
                if made.final and made.host != shared.home:
                    shared.claim_at(made.host)
                if raced:
                    shared.take(self.candidate_of(made.contestant), made.observed)
            elif raced:
                self.field.take(self.candidate_of(made.contestant), made.observed)
        return found

    def candidate_of(self, contestant: Contestant) -> Candidate:
        """Return a candidate of the grid, or a neighbour of one. Raises KeyError for none of these."""
        return self.field.candidate_of(contestant)

    def checks_that_count(self, checks: Sequence[Result]) -> list[Result]:
        """Return those that were made where what is claimed is measured."""
        return [check for check in checks if host_of(check) == self.home]

    def _race_result(self) -> Tuned:
        """Return what came of the race."""
        return (self.shared or self.field).result(self.budget.out_of_time(self.progress))

    def take_checks(
        self, checks: Sequence[Result], stacks: Mapping[str, Stack], numbers: Sequence[int]
    ) -> bool:
        """Put out who does not survive more workers; return whether anybody was put out that was not before."""
        put_out, checks = False, self.checks_that_count(checks)
        for arm in self.field.arms if checks else ():
            contestant = arm.candidate.contestant
            found = judge_check(contestant, stacks.get(contestant.stack), numbers, checks)
            if found is not None and found.survived is False and arm.out is None:
                arm.put_out(Fate.FAILED, found.sentence)
                put_out = True
        return put_out

    @property
    def proofs(self) -> list[Made]:
        """Loads that were to prove what is claimed of the best."""
        best = self.field.best
        label = best.candidate.label if best else ""
        every = [made for made in self.progress.made if made.purpose is Purpose.PROOF]
        return [made for made in every if made.contestant.label == label and made.host == self.home]

    def next_proof(self) -> tuple[Candidate, Ask] | None:
        """Return the next proof: at the lower end of the best one's interval, or lower than one that failed.

        None: one has held, or there is no time, or nothing to prove.
        """
        best, proofs = self.field.best, self.proofs
        if best is None or any(proof.observed.held or proof.observed.failed for proof in proofs):
            return None
        broken = [proof for proof in proofs if proof.observed.held is False]
        seconds = self.budget.proves(self.progress, len(proofs))
        fixed = self.field.wanted.rate
        if not seconds or len(broken) >= (1 if fixed else PROOFS) or len(proofs) > PROOFS:
            return None
        rate = fixed or _lower(best.reported.low, broken)
        return best.candidate, Ask(seconds, rate=rate, fresh=True, purpose=Purpose.PROOF)

    @property
    def claim(self) -> float | None:
        """The rate that was proven, requests per second; None: none was."""
        return next((proof.observed.ask.rate for proof in self.proofs if proof.observed.held), None)

    @property
    def pasted(self) -> list[Made]:
        """Loads of what is pasted for the best one, at the rate that was proven, or starts of it that failed."""
        best = self.field.best
        label = best.candidate.label if best else ""
        every = [made for made in self.progress.made if made.purpose is Purpose.PASTED]
        rates = {self.claim, 0.0}
        own = [made for made in every if made.contestant.label == label and made.host == self.home]
        return [made for made in own if made.observed.ask.rate in rates]

    def next_pasted(self, app: App | None, stacks: Mapping[str, Stack]) -> tuple[Candidate, Ask] | None:
        """Return the next load of what is pasted, on a fresh start of that.

        None: it was found to be what was measured, or twice not to be, or there is nothing that can be started.
        """
        best, claim, made = self.field.best, self.claim, self.pasted
        if best is None or claim is None or app is None or len(made) >= PASTED_TRIES:
            return None
        stack = stacks.get(best.candidate.contestant.stack)
        if stack is None or not _starts(best.candidate.contestant, app, stack):
            return None
        if any(one.observed.failed or self.within(one) for one in made):
            return None
        seconds = min(self.budget.proof_s, PASTED_S)
        return best.candidate, Ask(seconds, rate=claim, fresh=True, purpose=Purpose.PASTED)

    def within(self, made: Made) -> bool | None:
        """Return whether a load of what is pasted lies within what is recommended; None: it cannot be told.

        The claimed rate is the lower end of the interval of rates: what holds it lies within or above it. A cost lies
        within the interval of one start: that of the mean of n starts, √(n + 1) times as wide (`of_one_start`).
        """
        observed = made.observed
        if observed.failed or observed.held is False:
            return False
        if observed.held is None:
            return None
        cost, most = self._cost(observed), self._most
        return True if most is None else None if cost is None else cost <= most

    def _cost(self, observed: Observation) -> float | None:
        """Return what a load cost of what is to be least: microseconds of CPU a request, or bytes."""
        return observed.memory_bytes if self.field.wanted.goal is Goal.MEMORY else observed.cpu_us

    @property
    def _most(self) -> float | None:
        """What one start of the best may cost, if it is as recommended; None: the rate is what is sought."""
        best = self._race_result().best
        if self.field.wanted.goal is Goal.CAPACITY or best is None or best.value is None:
            return None
        return of_one_start(best.value, best.boots).high

    def result(self) -> Tuned:
        """Return what came of it; what is not what was measured, once it is pasted, is not settled."""
        found = self._proven_result()
        last = self.pasted[-1] if self.pasted else None
        if found.ending is not TuneEnding.SETTLED or last is None or self.within(last) is not False:
            return found
        because = f"pasted as it stands, it is not what was measured: {self.why_not(last)}"
        return replace(found, ending=TuneEnding.SPENT, because=because)

    def why_not(self, made: Made) -> str:
        """Return why a load of what is pasted does not lie within what is recommended, or cannot be told."""
        observed = made.observed
        if sentence := observed.failed or observed.why or observed.spoilt:
            return sentence
        cost, most = self._cost(observed), self._most
        if most is None or cost is None or cost <= most:
            return ""
        if self.field.wanted.goal is Goal.MEMORY:
            return f"it has {quantity.memory(cost)}, and one start of it should have {quantity.memory(most)} at most"
        found, limit = quantity.number(cost), quantity.number(most)
        return f"it takes {found} µs of CPU a request, and one start of it should take {limit} µs at most"

    def _proven_result(self) -> Tuned:
        """Return what came of the race and of the proofs."""
        found = self._race_result()
        proofs = self.proofs
        claim = self.claim
        if found.best is None or self.field.best is None:
            return found
        if claim is not None:
            low = self.field.best.reported.low
            if self.field.wanted.rate or claim >= FAR * low:
                return found
            held = quantity.rate(low)
            because = f"no more than {quantity.rate(claim)} was proven, although shorter loads held {held}"
            return replace(found, ending=TuneEnding.SPENT, because=because)
        tried = " and ".join(
            f"at {quantity.rate(proof.observed.ask.rate)}" for proof in proofs if proof.observed.ask.rate
        )
        last = proofs[-1].observed if proofs else None
        why = (last.failed or last.why or last.spoilt) if last else "there was no time"
        sentence = f"loaded once more {tried}, it" if tried else "loaded once more, it"
        ended = "was disturbed" if last and last.spoilt and not last.failed else "did not hold"
        because = f"{sentence} {ended}: {why[:1].lower()}{why[1:].rstrip('.')}"
        return replace(found, ending=TuneEnding.SPENT, because=because)


def _lower(low: float, broken: Sequence[Made]) -> float:
    """Return the rate to claim: the lower end of the interval, or a part of what was done where a proof failed."""
    for made in broken:
        did = made.observed.throughput_rps if made.observed.overdone else made.observed.ask.rate
        low = min(low, LOWERED * min(did, made.observed.ask.rate))
    return quantity.round_down(low)


def judge_stored(
    results: Results, stacks: Mapping[str, Stack], folder: str = "", *, paste: bool = False
) -> Recommendation:
    """Return what a tuning that is stored recommends; with `paste`, what to paste although nothing is settled.

    Raises KeyError for what is no tuning's.
    """
    sought, study = results.header.sought, results.header.study
    assert sought is not None, "the header of a tuning says what it sought"
    (question,) = study.questions
    replayed = Replayed(sought, study.limits)
    replayed.take(results.trials)
    replayed.take_checks(results.checks, stacks, workers.counts(study.limits.for_cpus(sought.cpus)))
    tuned = replayed.result()
    check = _worker_check(tuned, sought, study.limits, stacks, replayed.checks_that_count(results.checks))
    best, second, app = tuned.best, tuned.runner_up, question.app
    proofs = replayed.proofs
    proof = next((made.result for made in reversed(proofs) if isinstance(made.result, Measurement)), None)

    def called(entry: Entry | None) -> str:
        if entry is None:
            return ""
        return entry.candidate.contestant.called(stacks.get(entry.candidate.contestant.stack))

    pasted = _lines_to_paste(best.candidate.contestant, proof, app, stacks) if best and proof else ""
    withheld = bool(pasted) and tuned.ending is not TuneEnding.SETTLED and not paste
    before, _, command = ("" if withheld else pasted).rpartition("\n")
    stack = stacks.get(best.candidate.contestant.stack) if best else None
    return Recommendation(
        of=f"{question.recipe.name}: {question.recipe.about}",
        conditions=sought.conditions,
        rate=sought.rate,
        limits=study.limits,
        tuned=tuned,
        title=called(best),
        runner_up=called(second),
        proof=proof,
        growth=_growth(best, proof, study.limits.memory_bytes) if best and proof else None,
        mind=changes(tuned, sought.cpus, sought.rate),
        before=before,
        command=command,
        python=app.python if app else "",
        cwd=app.cwd if app else "",
        grid_trials=GRID_LOADS * tuned.candidates,
        seconds=replayed.progress.spent_s,
        variables=variables_of(app) if app else (),
        stack=stack,
        knobs=stack.settings(best.candidate.contestant.knobs) if best and stack else {},
        measured=circumstances(proof, stack.server if stack else None) if proof else "",
        withheld=withheld,
        arrivals=sought.arrivals,
        claim=replayed.claim,
        pasted=_as_pasted(replayed),
        proofs=tuple(_proof_of(made) for made in proofs),
        cold_start_s=cold_start(
            cold_starts(
                trial
                for trial in results.trials
                if best
                and trial.trial.contestant == best.candidate.contestant
                and host_of(trial) == replayed.home
            )
        ),
        folder=folder,
        workers=check,
        cpus=study.limits.for_cpus(sought.cpus),
        scope=study.limits.scope(sought.cpus),
        suspects=suspects((*results.trials, *results.checks), stacks, machine_cpus(results.header)),
    )


def _worker_check(
    tuned: Tuned, sought: Sought, limits: Limits, stacks: Mapping[str, Stack], checks: Sequence[Result]
) -> WorkerCheck | None:
    """Return what the best one came to with more workers; None: nobody looked."""
    if tuned.best is None or not checks:
        return None
    who = tuned.best.candidate.contestant
    return judge_check(who, stacks.get(who.stack), workers.counts(limits.for_cpus(sought.cpus)), checks)


def _starts(contestant: Contestant, app: App, stack: Stack) -> bool:
    """Whether there are lines to paste that start something."""
    return starts_something(deploy_app(app, contestant, stack, {}))


def of_one_start(reported: Interval, starts: int) -> Interval:
    """Return the interval of the next start of a server, where that of the mean of some starts is known.

    Student's interval of a mean has a width of t·s ÷ √n, that of one more observation t·s·√(1 + 1/n) (G. J. Hahn and
    W. Q. Meeker, «Statistical Intervals», 1991, section 4.7): √(n + 1) times as much. In logarithms, as starts differ.
    """
    wider = math.sqrt(max(starts, 1) + 1)
    low, mid, high = reported.low, reported.mid, reported.high
    return Interval(mid * (low / mid) ** wider, mid, mid * (high / mid) ** wider)


def _as_pasted(replayed: Replayed) -> AsPasted | None:
    """Return what the last start of what is pasted came to; None: there was none."""
    if not replayed.pasted:
        return None
    made = replayed.pasted[-1]
    result, within = made.result, replayed.within(made)
    if not isinstance(result, Measurement):
        return AsPasted(0.0, 0.0, within, replayed.why_not(made))
    return AsPasted(
        made.observed.ask.rate,
        result.load.duration_s,
        within,
        replayed.why_not(made),
        result.load.due.p99,
        made.observed.cpu_us,
    )


def _proof_of(made: Made) -> Proven:
    observed = made.observed
    seconds = made.result.load.duration_s if isinstance(made.result, Measurement) else 0.0
    return Proven(
        observed.ask.rate, seconds, observed.held, observed.failed or observed.why or observed.spoilt
    )


def _lines_to_paste(
    contestant: Contestant, proof: Measurement, app: App | None, stacks: Mapping[str, Stack]
) -> str:
    """Return the lines to paste for a deployment, the command line last; empty where the stack has none."""
    stack = stacks.get(contestant.stack)
    if stack is None:
        return ""
    if app is not None:
        text = deploy_app(app, contestant, stack, proof.packages)
    else:
        text = deploy(proof.command, contestant.stack)
    return text if starts_something(text) else ""


def _growth(best: Entry, proof: Measurement, limit: int | None) -> Growth | None:
    found = leak(proof)
    if found is None:
        return None
    now = proof.memory_bytes
    # Without a limit a server may double before its workers are replaced.
    room = max((limit if limit is not None else 2 * now) - now, now // 10)
    processes = best.candidate.processes
    each = KEPT_FREE * room / processes
    to_limit = found.seconds_to(limit, now, found.at_rps) if limit is not None else None
    requests = max(int(float(f"{each / found.bytes_per_request:.1g}")), 100)
    # Of a worker by itself, as its server sees it: pages that it shares are counted in each.
    has = proof.server.rss_peak_bytes / processes
    return Growth(
        found.bytes_per_request,
        found.at_rps,
        to_limit,
        requests,
        round(has + each),
        found.seen_s,
        found.goes_on,
    )

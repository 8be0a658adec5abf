"""The time that a tuning may take: so much for looks, so much for the race, and the rest for its proof."""

import time
from collections import deque
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol, Self

from velodrome.guest.stack import Stack
from velodrome.judge import deploying_app
from velodrome.judge.deploying import deploy
from velodrome.judge.search.holding import Demands, fell_behind
from velodrome.judge.tuning.forecasting import changes, leak
from velodrome.judge.tuning.racing import tune as raced
from velodrome.model import quantity
from velodrome.model.app import App
from velodrome.model.condition import written
from velodrome.model.errors import AppAnswersWrongError, NoServerError
from velodrome.model.load import Limits
from velodrome.model.measurement import Measurement
from velodrome.model.trial import Contestant, Trial
from velodrome.model.tuning import (
    Ask,
    Candidate,
    Entry,
    Goal,
    Growth,
    Recommendation,
    Told,
    Tuned,
    TuneEnding,
    Wanted,
)
from velodrome.plan.matrix import grid, refined
from velodrome.run.lab import Lab
from velodrome.run.racing.opening import Preparing, opened
from velodrome.run.racing.plan import seat
from velodrome.run.racing.race import MOST_WRONG
from velodrome.run.racing.session import Refused, most_telling
from velodrome.usecases.bench import Bench, not_served
from velodrome.usecases.load_blocks import common_first

RESERVED_S, RESERVED = 20.0, 1 / 3
"""Of the budget, for the first proof: so long, and no more than this part."""
LOOKS = 0.5
"""Of the time that is left then, what looks at stacks may take: what was only looked at is no answer."""


@dataclass(frozen=True)
class Budget:
    """The time to measure in, of which a part is kept for the proof."""

    began: float
    """On the clock of `time.monotonic`."""
    seconds: float

    @property
    def racing_s(self) -> float:
        """What the race may take."""
        return self.seconds - min(RESERVED_S, RESERVED * self.seconds)

    def allows(self, seconds: float) -> bool:
        """Return whether the race may do something that takes so long."""
        return self._spent_s + seconds < self.racing_s

    def allows_look(self, seconds: float) -> bool:
        """Return whether one more stack may be looked at, which takes so long."""
        return self._spent_s + seconds < LOOKS * self.racing_s

    def allows_proof(self, seconds: float) -> bool:
        """Return whether there is time left for a proof that takes so long."""
        return self._spent_s + seconds < self.seconds

    @property
    def _spent_s(self) -> float:
        return time.monotonic() - self.began


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


GRID_LOADS = 15
"""A search for the highest rate of one candidate takes about so many loads, and the whole grid that for each."""
SHARE = 0.2
"""Of the loads that the whole grid would take, no more are made."""
LEAST_LOADS = 24
PROOF_S, PROOFS = 8.0, 3
"""How long the last load is, and how often it is made where the condition does not hold in it."""
PROOF = 0.8
"""Of the lower end of what the best can do, the rate of the last load."""
KEPT_FREE = 0.5
"""Of the memory that is left at first, what leaks may take before a worker is replaced."""


@dataclass(frozen=True)
class Asked:
    """What is tuned, by whom it may be served, and for what."""

    trial: Trial
    """Its contestant and load are not looked at."""
    stacks: tuple[Stack, ...]
    goal: Goal
    demands: Demands
    rate: float = 0.0
    """To be carried, where the goal is the least CPU or memory."""
    budget_s: float = 600.0

    @property
    def of(self) -> str:
        """What is served."""
        return f"{self.trial.recipe.name}: {self.trial.recipe.about}"


def tune(asked: Asked, lab: Lab, follower: Follower, wait_s: float | None = 0.0) -> Recommendation:
    """Search the best setting. A stack that does not start is out.

    Raises BusyError, LimitError, DriverError, AppAnswersWrongError, AppNotServedError.
    """
    began = time.monotonic()
    limits = asked.trial.limits
    # The memory limit is judged by what was measured: a server that is killed at it tells nothing.
    template = replace(asked.trial, limits=Limits(limits.cpus))
    cpus = len(seat(template.limits, lab).placement.server_cpus)
    every = grid(common_first(asked.stacks), cpus)
    firsts = {one.contestant.stack: replace(template, contestant=one.contestant) for one in every}
    most = max(LEAST_LOADS, round(SHARE * GRID_LOADS * len(every)))
    wanted = Wanted(asked.goal, cpus, asked.rate, limits.memory_bytes, most)
    with (
        opened([*firsts.values()], lab, f"tuning of {asked.trial.recipe.name}", follower, wait_s) as ready,
        Benches(template, ready, asked.demands, follower) as benches,
    ):
        # Environments are made once; the budget is for what is measured.
        budget = Budget(time.monotonic(), asked.budget_s)
        by_name = {stack.name: stack for stack in asked.stacks}
        tuned = raced(
            benches.measure,
            every,
            wanted,
            lambda: budget.allows(benches.next_s),
            lambda best: refined(best, by_name[best.contestant.stack]),
            looks_on=lambda: budget.allows_look(benches.look_s),
        )
        proof = None
        if tuned.best:
            proof, why = _proof(tuned.best, asked, benches, budget)
            if why:
                tuned = replace(tuned, ending=TuneEnding.SPENT, because=why)
    return _recommendation(asked, tuned, proof, cpus, lab, seconds=time.monotonic() - began)


def _proof(best: Entry, asked: Asked, benches: Benches, budget: Budget) -> tuple[Measurement | None, str]:
    """Load the recommended setting once more, longer, at the rate it is for; return why that proves nothing.

    Where it does not hold it is loaded again while there is time.
    """
    rate = asked.rate or (PROOF * best.value.low if best.value else 0.0)
    measured, why, times, took_s = None, "", 0, 0.0
    while times < PROOFS and (not times or budget.allows_proof(took_s)):
        began = time.monotonic()
        try:
            probe, measured = benches.bench(best.candidate).rate(rate, asked.demands, PROOF_S)
        except (NoServerError, AppAnswersWrongError) as error:
            return measured, f"loaded once more, {error.reason}"
        if probe.held:
            return measured, ""
        came = probe.why or probe.spoilt
        why = f"{came[:1].lower()}{came[1:]}"
        times, took_s = times + 1, time.monotonic() - began
    more = "once" if times == 1 else f"{times} times"
    return measured, f"loaded {more} more at {quantity.rate(rate)}, it never held: {why.rstrip('.')}"


def _recommendation(
    asked: Asked, tuned: Tuned, proof: Measurement | None, cpus: int, lab: Lab, *, seconds: float
) -> Recommendation:
    best, second = tuned.best, tuned.runner_up

    def called(one: Entry | None) -> str:
        if one is None:
            return ""
        return one.candidate.contestant.called(lab.stacks[one.candidate.contestant.stack])

    app = asked.trial.app
    pasted = _pasted(best.candidate.contestant, proof, app, lab) if best and proof else ""
    before, _, command = pasted.rpartition("\n")
    return Recommendation(
        of=asked.of,
        conditions=tuple(map(written, (*asked.demands.must, *asked.demands.must_not))),
        rate=asked.rate,
        limits=asked.trial.limits,
        tuned=tuned,
        title=called(best),
        runner_up=called(second),
        proof=proof,
        growth=_growth(best, proof, asked.trial.limits.memory_bytes) if best and proof else None,
        mind=changes(tuned, cpus, asked.rate),
        before=before,
        command=command,
        python=app.python if app else "",
        cwd=app.cwd if app else "",
        grid_trials=GRID_LOADS * tuned.candidates,
        seconds=seconds,
        variables=deploying_app.variables_of(app) if app else (),
    )


def _pasted(contestant: Contestant, proof: Measurement, app: App | None, lab: Lab) -> str:
    """Return the lines to paste for a deployment, the command line last; empty where the stack has none."""
    if app is not None:
        told = deploying_app.deploy(app, contestant, lab.stacks[contestant.stack], proof.packages)
    else:
        told = deploy(proof.command, contestant.stack)
    return "" if told.rpartition("\n")[2].startswith("velodrome ") else told


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
    return Growth(found.bytes_per_request, found.at_rps, to_limit, requests, round(has + each))

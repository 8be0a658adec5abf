"""Which stack, with which settings, is best for one service within limits: the race among settings, measured.

tune(Asked(trial, stacks, Goal.CAPACITY, Demands(must=(slo,))), lab, follower)
"""

import time
from dataclasses import dataclass, replace

from velodrome.guest.stack import Stack
from velodrome.judge import deploying_app
from velodrome.judge.deploying import deploy
from velodrome.judge.search.holding import Demands
from velodrome.judge.tuning.forecasting import changes, leak
from velodrome.judge.tuning.racing import tune as raced
from velodrome.model import quantity
from velodrome.model.app import App
from velodrome.model.condition import written
from velodrome.model.errors import AppAnswersWrongError, NoServerError
from velodrome.model.load import Limits
from velodrome.model.measurement import Measurement
from velodrome.model.trial import Contestant, Trial
from velodrome.model.tuning import Entry, Goal, Growth, Recommendation, Tuned, TuneEnding, Wanted
from velodrome.plan.candidates import grid, refined
from velodrome.run.lab import Lab
from velodrome.run.machine import placement
from velodrome.run.racing.opening import opened
from velodrome.track.benches import Benches, Follower
from velodrome.track.budget import Budget
from velodrome.track.loading import common_first

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
    cpus = len(placement.place(lab.cpus, template.limits).server_cpus)
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

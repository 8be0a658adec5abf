"""A race: experiments, the server sessions of a study in order, profiles; each result on the disk before the next.

finished = run(race, lab, follower)      # Ctrl-C: RaceInterruptedError; what was finished is kept
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from velodrome import _native
from velodrome.model.claim import Experiment
from velodrome.model.errors import AppAnswersWrongError, AppNotServedError, RaceInterruptedError
from velodrome.model.measurement import Failed, FailureKind, Measurement
from velodrome.model.results import Header, Result, Results
from velodrome.model.study import Study
from velodrome.model.trial import Session, Trial
from velodrome.run.experiments.running import run_experiment
from velodrome.run.lab import Lab
from velodrome.run.machine import facts
from velodrome.run.racing.opening import Follower, held, host_beside, prepared, proven
from velodrome.run.racing.plan import PlannedSession, RunPlan, plan_of
from velodrome.run.racing.session import Refused, most_telling, refused, run_session
from velodrome.run.racing.store import Store


@dataclass(frozen=True)
class Race:
    """What to run and where to write it: plain data."""

    study: Study
    sessions: tuple[Session, ...]
    out: Path
    resume: bool = False
    redo: bool = False
    """Of what is there already, run again what the machine spoilt: its host or other programs took its CPUs."""
    wait_s: float | None = 0.0
    """How long to wait for another velodrome to end; None: as long as it takes."""
    experiments: tuple[Experiment, ...] = ()
    """Run before the sessions."""
    profiles: tuple[Trial, ...] = ()
    """Taken after the sessions, where the lab takes profiles."""
    must_answer: bool = False
    """Whether the race ends early where one of its apps answers on no stack, so that nothing is measured in vain."""


@dataclass(frozen=True)
class Finished:
    """How a race ended."""

    path: Path
    done: int
    total: int
    how: str
    """`complete` or `budget spent`."""


def plan_of_race(
    race: Race,
    lab: Lab,
    estimate_s: Callable[[Session], float] | None = None,
    before: Results | None = None,
) -> RunPlan:
    """Return what a race will start, in order; starts nothing. `before` is what its file holds already.

    Raises LimitError.
    """
    there = {result.trial.key for result in before.trials} if before else set()
    left = [Session(tuple(t for t in one.trials if t.key not in there)) for one in race.sessions]
    experiments = [finding.experiment for finding in before.findings] if before else []
    profiles = {profile.trial.key for profile in before.profiles} if before else set()
    return plan_of(
        f"study {race.study.name}",
        [one for one in left if one.trials],
        lab,
        estimate_s,
        experiments=[one for one in race.experiments if one not in experiments],
        profiles=[trial for trial in race.profiles if lab.profile and trial.key not in profiles],
        budget_s=race.study.budget_s,
    )


def run(
    race: Race,
    lab: Lab,
    follower: Follower,
    estimate_s: Callable[[Session], float] | None = None,
    warn: Callable[[str], None] | None = None,
) -> Finished:
    """Run all that the file does not hold yet. `estimate_s`: how long a session should take, if known.

    `warn` hears once of each app what of its requests is answered wrongly; None: the follower does.
    Raises RaceInterruptedError on Ctrl-C, SIGTERM or SIGHUP, BusyError, LimitError, OutputError, and for a resume
    ResultsError or StudyChangedError. A stack's failure is a result and raises nothing, but where an app must answer:
    AppAnswersWrongError or AppNotServedError.
    """
    whole = plan_of_race(race, lab, estimate_s)
    total = len(whole.trials)
    with held(whole, follower, race.wait_s):
        store, before = _open(race)
        done = len(before.trials)
        with store:
            try:
                _retell(before, follower)
                lab = proven(whole, lab)
                plan = plan_of_race(race, lab, estimate_s, before)
                lab = prepared(plan, lab, follower)
                _experiment(plan, store, lab, follower)
                schedule = Scheduler(plan, warn)
                answers = Answers(plan, before)
                for result in schedule.results(lab, follower):
                    if race.must_answer:
                        answers.see(result)
                    store.append(result)
                    done += 1
                    follower.finished(result)
                _profile(plan, store, lab, race.out, follower)
            except KeyboardInterrupt:
                raise RaceInterruptedError(str(store.path), done, total) from None
            except (AppAnswersWrongError, AppNotServedError):
                if not answers.measured:
                    store.discard()
                raise
    return Finished(store.path, done, total, schedule.how)


def _retell(before: Results, follower: Follower) -> None:
    """Show what a resumed race has already."""
    for finding in before.findings:
        follower.found(finding)
    for result in before.trials:
        follower.finished(result)
    for profile in before.profiles:
        follower.profiled(profile)


def _experiment(plan: RunPlan, store: Store, lab: Lab, follower: Follower) -> None:
    for experiment in plan.experiments:
        follower.experiment_started(experiment)
        finding = run_experiment(experiment, lab)
        store.append(finding)
        follower.found(finding)


def _profile(plan: RunPlan, store: Store, lab: Lab, out: Path, follower: Follower) -> None:
    for trial in plan.profiles:
        if lab.profile is not None:
            follower.profile_started(trial)
            profile = lab.profile(trial, lab, out)
            store.append(profile)
            follower.profiled(profile)


def _open(race: Race) -> tuple[Store, Results]:
    """Open the file; return what of it is not to be run again."""
    header = Header(race.study, race.study.seed, facts.facts(), _native.VERSION, _now())
    if not race.resume:
        return Store.create(race.out, header), Results(header, (), 0, torn=False)
    store, found = Store.resume(race.out, header)
    trials = tuple(one for one in found.trials if not _again(one, race.redo))
    findings = tuple(one for one in found.findings if not one.failed)
    profiles = tuple(one for one in found.profiles if not one.failed)
    return store, replace(found, trials=trials, findings=findings, profiles=profiles)


def _again(result: Result, redo: bool) -> bool:
    """Return whether a resumed race measures something that it has a result of once more."""
    if isinstance(result, Failed):
        # What was missing may be there now.
        return result.failure.is_missing
    return redo and any(kind.of_the_moment for kind in result.doubts)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Scheduler:
    """Runs the sessions of a plan in order, as long as the budget allows another block."""

    def __init__(self, plan: RunPlan, warn: Callable[[str], None] | None = None) -> None:
        self.plan, self._warn = plan, warn
        self._warned: set[str] = set()
        self.how = "complete"
        self._began = time.monotonic()
        self._estimated_s = self._took_s = 0.0

    def results(self, lab: Lab, follower: Follower) -> Iterator[Result]:
        """Yield the result of each trial, in order, until the budget is spent."""
        sessions = self.plan.sessions
        block = sessions[0].block if sessions else 0
        for number, session in enumerate(sessions):
            left = sessions[number:]
            if session.block != block:
                block = session.block
                if self._over_budget(one for one in left if one.block == block):
                    self.how = "budget spent"
                    return
            began = time.monotonic()
            follower.heat_started(session.cell, self._seconds(left))
            warn = partial(self._once, session.trials[0].question, self._warn or follower.preparing)
            with closing(run_session(session, lab, warn)) as results, host_beside(session.seat.placement):
                yield from results
            self._estimated_s += session.seconds
            self._took_s += time.monotonic() - began

    def _once(self, question: str, warn: Callable[[str], None], sentence: str) -> None:
        if question not in self._warned:
            self._warned.add(question)
            warn(sentence)

    def _seconds(self, sessions: Iterable[PlannedSession]) -> float:
        """Return how long sessions will take: as estimated, times how wrong the estimate was so far."""
        pace = self._took_s / self._estimated_s if self._estimated_s else 1.0
        return sum(one.seconds for one in sessions) * pace

    def _over_budget(self, block: Iterable[PlannedSession]) -> bool:
        """Whether a block would end after the budget. Never checked of the first: no answer is worth less."""
        if self.plan.budget_s is None:
            return False
        return time.monotonic() - self._began + self._seconds(block) > self.plan.budget_s


MOST_WRONG = 2
"""Stacks on which an app may answer wrongly or not at all before it is the app's fault, and not a stack's."""
AT_START = (
    FailureKind.WRONG_ANSWER,
    FailureKind.NEVER_ANSWERED,
    FailureKind.START,
    FailureKind.INSTALL,
    FailureKind.UNAVAILABLE,
)
"""Failures of a server that has not given a right answer yet."""


class Answers:
    """Which apps have answered on no stack so far."""

    def __init__(self, plan: RunPlan, before: Results) -> None:
        """`before` is what was measured earlier."""
        measured = [one.trial.question for one in before.trials if isinstance(one, Measurement)]
        self.measured = bool(measured)
        """Whether anything was measured."""
        self._answered = set(measured)
        self._failed: dict[str, dict[str, Refused]] = {}
        self._contestants: dict[str, set[str]] = {}
        for trial in plan.trials:
            self._contestants.setdefault(trial.question, set()).add(trial.contestant.label)

    def see(self, result: Result) -> None:
        """Take note of a result. Raises AppAnswersWrongError or AppNotServedError where its app answers nowhere."""
        trial = result.trial
        app, label = trial.app, trial.contestant.label
        self.measured = self.measured or isinstance(result, Measurement)
        if app is None or trial.question in self._answered:
            return
        if not isinstance(result, Failed) or result.failure not in AT_START:
            self._answered.add(trial.question)
            return
        failed = self._failed.setdefault(trial.question, {})
        failed[label] = refused(app, label, result.failure, result.reason, result.last_lines)
        tried = sum(isinstance(one, AppAnswersWrongError) or one.tried for one in failed.values())
        if tried >= MOST_WRONG or failed.keys() == self._contestants[trial.question]:
            raise most_telling([*failed.values()])

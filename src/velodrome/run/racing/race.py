"""A race: experiments, the server sessions of a study in order, profiles; each result on the disk before the next.

finished = run(race, lab, follower)      # Ctrl-C: RaceInterruptedError; what was finished is kept
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Protocol

from velodrome import _native
from velodrome.model.claim import Experiment
from velodrome.model.errors import AppAnswersWrongError, AppNotServedError, RaceInterruptedError
from velodrome.model.measurement import Failed, FailureKind, Measurement
from velodrome.model.results import Header, Result, Results, Sought
from velodrome.model.study import Study
from velodrome.model.trial import Session, Trial
from velodrome.run.experiments.running import run_experiment
from velodrome.run.lab import Lab
from velodrome.run.machine import facts, known_noise
from velodrome.run.racing.opening import Follower, held, host_beside, prepared, proven
from velodrome.run.racing.plan import PlannedSession, RunPlan, plan_of, rough_s
from velodrome.run.racing.session import Refused, most_telling, refused, run_session
from velodrome.run.racing.store import Store


class Check(Protocol):
    """Further measurements, chosen by what the race came to."""

    def __call__(
        self, results: Sequence[Result], before: Results, lab: Lab, tell: Callable[[str], None]
    ) -> Iterator[Result]:
        """Yield each as it ends; `results` are the race's, `before` what its file held already, with its header."""


class Settling(Protocol):
    """Chooses where the blocks of a race go while it runs."""

    @property
    def most_blocks(self) -> int:
        """After so many the race ends, whatever is open."""

    def still_open(
        self, results: Sequence[Result], before: Results, lab: Lab, blocks: int
    ) -> Collection[str] | None:
        """Return the cells that go on after so many blocks; None: as before, it is not looked at then.

        `results` are the race's so far, `before` has the header that they are judged by.
        """

    def sessions(self, block: int) -> Sequence[Session]:
        """Return what a block beyond those planned consists of, if all goes on."""


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
    check: Check | None = None
    """Measures, once the sessions have ended, what is to be known of whoever leads."""
    settling: Settling | None = None
    """Chooses where blocks go; None: every cell has all of them."""
    must_answer: bool = False
    """Whether the race ends early where one of its apps answers on no stack, so that nothing is measured in vain."""


@dataclass(frozen=True)
class Finished:
    """How a race ended."""

    path: Path
    done: int
    total: int
    how: str
    """`complete`, `settled` or `budget spent`."""


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
                answers = Answers(plan, before, {one.name for one in race.study.answered})
                every = {one.trial.key: one for one in before.trials}
                further = None
                # A race is judged by how it began.
                if race.settling is not None and before.header.study.until_settled:
                    estimate_s = estimate_s or rough_s
                    further = _Further(race.settling, before, every, lab, whole=whole, estimate_s=estimate_s)
                schedule = Scheduler(plan, warn, further)
                for result in schedule.results(lab, follower):
                    if race.must_answer:
                        answers.see(result)
                    store.append(result)
                    every[result.trial.key] = result  # the later of two, as whoever reads the file takes it
                    done = len(every)
                    follower.finished(result)
                if race.check is not None:
                    for result in race.check([*every.values()], before, lab, follower.preparing):
                        store.append(result)
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
    header = begun_now(race.study)
    if not race.resume:
        return Store.create(race.out, header), Results(header, (), 0, torn=False)
    store, found = Store.resume(race.out, header)
    trials = tuple(one for one in found.trials if not _again(one, race.redo))
    findings = tuple(one for one in found.findings if not one.failed)
    profiles = tuple(one for one in found.profiles if not one.failed)
    return store, replace(found, trials=trials, findings=findings, profiles=profiles)


def begun_now(study: Study, sought: Sought | None = None) -> Header:
    """Return the header of results of which the first is made now, on this machine; `sought`: by a search."""
    machine = facts.facts()
    known = known_noise.of(machine)
    return Header(study, study.seed, machine, _native.VERSION, _now(), noise=known, sought=sought)


def _again(result: Result, redo: bool) -> bool:
    """Return whether a resumed race measures something that it has a result of once more."""
    if isinstance(result, Failed):
        # What was missing may be there now.
        return result.failure.is_missing
    return redo and _disturbed(result)


def _disturbed(result: Result) -> bool:
    """Return whether the machine spoilt a measurement, which says nothing of the server and may go well next time."""
    return isinstance(result, Measurement) and any(kind.of_the_moment for kind in result.doubts)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


AGAIN_SHARE = 0.25
"""Part of the time of a plan that may go into measuring again what the machine disturbed."""
AGAIN_TIMES = 2
"""How often a session is run again at most: what is disturbed each time stays set aside, and says so."""


class _Further:
    """Where the blocks of a race go that is run until it is settled."""

    def __init__(
        self,
        settling: Settling,
        before: Results,
        every: Mapping[str, Result],
        lab: Lab,
        *,
        whole: RunPlan,
        estimate_s: Callable[[Session], float],
    ) -> None:
        """`every` are the results so far, and grows; `whole` is the plan of all blocks planned, run before or not."""
        self._settling, self._before, self._every, self._lab = settling, before, every, lab
        self._what, self._estimate_s = whole.what, estimate_s
        servers: dict[tuple[str, int], list[Trial]] = {}
        for one in before.trials:
            servers.setdefault((one.trial.cell, one.trial.block), []).append(one.trial)
        self.left_s = whole.seconds - sum(estimate_s(Session(tuple(own))) for own in servers.values())
        """What may still be begun, as estimated."""
        self._open: Collection[str] | None = None

    def going(self, sessions: Iterable[PlannedSession]) -> list[PlannedSession]:
        """Return those of the sessions whose cell is open."""
        return [one for one in sessions if self._open is None or one.cell in self._open]

    def look(self, blocks: int) -> bool:
        """Take note of what is open after so many blocks. Returns whether anything is."""
        found = self._settling.still_open([*self._every.values()], self._before, self._lab, blocks)
        if found is not None:
            self._open = found
        return self._open is None or bool(self._open)

    def block(self, number: int) -> list[PlannedSession] | None:
        """Return what is to be run of a block beyond those planned; None: there is no such block."""
        if number >= self._settling.most_blocks:
            return None
        every = [
            Session(tuple(trial for trial in one.trials if trial.key not in self._every))
            for one in self._settling.sessions(number)
        ]
        left = [one for one in every if one.trials]
        return self.going(plan_of(self._what, left, self._lab, self._estimate_s).sessions)


class Scheduler:
    """Runs the sessions of a plan in order, as long as the budget allows another block.

    What the machine disturbed is measured again at the end of its block, so that the repeat is as near to its rivals
    as may be; what is disturbed once more, at the end of the next.
    """

    def __init__(
        self, plan: RunPlan, warn: Callable[[str], None] | None = None, further: _Further | None = None
    ) -> None:
        self.plan, self._warn, self._further = plan, warn, further
        self._warned: set[str] = set()
        self.how = "complete"
        self._began = time.monotonic()
        self._estimated_s = self._took_s = 0.0
        self._spare_s = AGAIN_SHARE * plan.seconds
        self._disturbed: dict[tuple[str, int], PlannedSession] = {}
        self._times: Counter[tuple[str, int]] = Counter()

    def results(self, lab: Lab, follower: Follower) -> Iterator[Result]:
        """Yield the result of each trial, in order, and those of repeats, until the budget is spent."""
        if self._further is None:
            yield from self._planned(lab, follower)
        else:
            yield from self._until_settled(self._further, lab, follower)
        yield from self._again((), lab, follower)

    def _planned(self, lab: Lab, follower: Follower) -> Iterator[Result]:
        left = [*self.plan.sessions]
        while left:
            block = [one for one in left if one.block == left[0].block]
            if len(left) < len(self.plan.sessions) and self._over_budget(block):
                self.how = "budget spent"
                return
            del left[: len(block)]
            yield from self._block(block, left, lab, follower)

    def _until_settled(self, further: _Further, lab: Lab, follower: Follower) -> Iterator[Result]:
        """Yield block after block of what is open; one that was run before is only looked at once more."""
        planned = 1 + max((one.block for one in self.plan.sessions), default=0)
        for number in count():
            later = [one for one in self.plan.sessions if one.block > number]
            if number < planned:
                block = further.going(one for one in self.plan.sessions if one.block == number)
            elif (beyond := further.block(number)) is not None:
                block = beyond
            else:
                return
            takes_s = sum(one.seconds for one in block)
            spent = (
                takes_s > further.left_s + 1e-6 if self.plan.budget_s is None else self._over_budget(block)
            )
            if block and number and spent:
                self.how = "budget spent"
                return
            further.left_s -= takes_s
            yield from self._block(block, further.going(later), lab, follower)
            if not further.look(number + 1):
                self.how = "settled"
                return

    def _block(
        self,
        block: Sequence[PlannedSession],
        later: Sequence[PlannedSession],
        lab: Lab,
        follower: Follower,
    ) -> Iterator[Result]:
        """Yield the results of a block, and of what is run again at its end."""
        for number, session in enumerate(block):
            yield from self._run(session, [*block[number:], *later], lab, follower)
        yield from self._again(later, lab, follower)

    def _run(
        self, session: PlannedSession, left: Sequence[PlannedSession], lab: Lab, follower: Follower
    ) -> Iterator[Result]:
        """Yield the results of a session, and keep which of its trials are to be run again."""
        began = time.monotonic()
        follower.heat_started(session.cell, self._seconds(left))
        warn = partial(self._once, session.trials[0].question, self._warn or follower.preparing)
        disturbed = []
        with closing(run_session(session, lab, warn)) as results, host_beside(session.seat.placement):
            for result in results:
                if _disturbed(result):
                    disturbed.append(result.trial)
                yield result
        self._estimated_s += session.seconds
        self._took_s += time.monotonic() - began
        if disturbed:
            seconds = session.seconds * len(disturbed) / len(session.trials)
            self._disturbed[session.cell, session.block] = replace(
                session, trials=tuple(disturbed), seconds=seconds
            )

    def _again(self, left: Sequence[PlannedSession], lab: Lab, follower: Follower) -> Iterator[Result]:
        """Yield the results of what is run again, as far as the time for that and the budget allow."""
        waiting, self._disturbed = self._disturbed, {}
        for server, session in waiting.items():
            if self._times[server] >= AGAIN_TIMES or self._over_budget([session]):
                continue
            if (takes := self._seconds([session])) > self._spare_s:
                continue
            self._spare_s -= takes
            self._times[server] += 1
            yield from self._run(session, [session, *left], lab, follower)

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

    def __init__(self, plan: RunPlan, before: Results, asked: Collection[str]) -> None:
        """`before` is what was measured earlier; of questions that are not `asked` nothing is required."""
        measured = [one.trial.question for one in before.trials if isinstance(one, Measurement)]
        self.measured = bool(measured)
        """Whether anything was measured."""
        self._answered, self._asked = set(measured), asked
        self._failed: dict[str, dict[str, Refused]] = {}
        self._contestants: dict[str, set[str]] = {}
        for trial in plan.trials:
            self._contestants.setdefault(trial.question, set()).add(trial.contestant.label)

    def see(self, result: Result) -> None:
        """Take note of a result. Raises AppAnswersWrongError or AppNotServedError where its app answers nowhere."""
        trial = result.trial
        app, label = trial.app, trial.contestant.label
        self.measured = self.measured or isinstance(result, Measurement)
        if app is None or trial.question in self._answered or trial.question not in self._asked:
            return
        if not isinstance(result, Failed) or result.failure not in AT_START:
            self._answered.add(trial.question)
            return
        failed = self._failed.setdefault(trial.question, {})
        failed[label] = refused(app, label, result.failure, result.reason, result.last_lines)
        tried = sum(isinstance(one, AppAnswersWrongError) or one.tried for one in failed.values())
        if tried >= MOST_WRONG or failed.keys() == self._contestants[trial.question]:
            raise most_telling([*failed.values()])

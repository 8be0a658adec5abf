"""A race: experiments, the server sessions of a study in order, profiles; each result on the disk before the next.

with start(race, lab, follower) as running:      # Ctrl-C: RaceInterruptedError; what was finished is kept
    for step in (*running.steps(), *running.profiles()):
        ...                                        # what begins, and each entry, which is on the disk then
print(running.finished)

Whoever starts a race takes its steps, and shows them: a race calls nobody with what it measured.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Protocol, Self

from velodrome import _native
from velodrome.model.claim import Experiment, Finding
from velodrome.model.errors import (
    AgentLostError,
    AgentRefusedError,
    AgentsDifferError,
    AgentsRefuseRaceError,
    AppAnswersWrongError,
    AppNotServedError,
    CoordinatorError,
    NoAgentsError,
    PlacingError,
    RaceInterruptedError,
    StudyChangedError,
)
from velodrome.model.measurement import Failed, FailureKind, Measurement
from velodrome.model.noise import SHIPPED, Noise
from velodrome.model.profile import Profile
from velodrome.model.results import Entry, Header, Result, Results, Sought
from velodrome.model.study import Study
from velodrome.model.trial import Session, Trial
from velodrome.run.experiments.running import run_experiment
from velodrome.run.lab import Lab
from velodrome.run.machine import facts, known_noise
from velodrome.run.racing.opening import (
    Follower,
    find_usable_limits,
    hold_machine,
    host_beside,
    prepare_environments,
)
from velodrome.run.racing.plan import PlannedSession, RunPlan, plan_of, plan_session, rough_s
from velodrome.run.racing.session import Refused, most_telling, refusal, run_session
from velodrome.run.racing.store import NAME, Store, now
from velodrome.run.supervision.undisturbed import stoppable


@dataclass(frozen=True)
class Begins:
    """A step of a race: an experiment begins, or the profile of a trial."""

    what: Experiment | Trial


Step = Begins | Entry
"""What a race yields. An entry is on the disk; a resumed race yields first those that were there already."""

Serve = Callable[[Session], Generator[Result]]
"""Runs a server session and yields its results."""


def session_runner(lab: Lab) -> Serve:
    """Return what runs sessions one by one on this machine, for which all is there already."""

    def serve(session: Session) -> Generator[Result]:
        plan = plan_session(session, lab)
        with closing(run_session(plan, lab)) as results, host_beside(plan.seat.placement):
            yield from results

    return serve


@dataclass(frozen=True)
class WorkUnit:
    """What one host does as a whole: a block, or one session, experiment or profile."""

    name: str
    """For whoever follows: `block 3`."""
    sessions: tuple[Session, ...] = ()
    experiment: Experiment | None = None
    profile: Trial | None = None
    again: bool = False
    """Whether sessions that the machine disturbed are run again at its end."""


class Elsewhere(Protocol):
    """Other hosts, which run a race block by block (`run/cluster/handing.py`)."""

    @property
    def gone(self) -> str:
        """Why there is no host left; empty: there is."""

    @property
    def hosts(self) -> int:
        """How many there are now."""

    @property
    def who(self) -> Sequence[str]:
        """Sentences on which hosts do what."""

    def lab(self, lab: Lab) -> Lab:
        """Return the lab by which a race is planned: its CPUs are those of the server's host, where that is one."""

    def begin(self, plan: RunPlan, study: Study, lab: Lab, follower: Follower) -> None:
        """Have every host see that it can run this. Raises what one of them refuses, before anything is loaded."""

    def entries(
        self,
        upcoming: Callable[[], WorkUnit | None],
        follower: Follower,
        out: Path,
        left_s: Callable[[], float | None],
    ) -> Iterator[Entry]:
        """Yield what work units come to, as it arrives, until `upcoming` has no more and all are done, or `gone`.

        A host gets its next work unit when it is free. One that is lost gives its own back: another begins it anew, and
        what it yields then takes the place of what came before. Profiles write into `out`.
        """


@dataclass(frozen=True)
class Settling:
    """How the blocks of a race are spent where it is still open: pure functions, and the limits they hold to."""

    most_blocks: int
    """After so many the race ends, whatever is open."""
    looks: Sequence[int]
    """After how many blocks it is looked at."""
    still_open: Callable[[Sequence[Result], Noise, int], Collection[str] | None]
    """Return the cells that go on by the race's results so far, the noise that they are judged by, and the number of
    blocks; None: as before, it is not looked at then."""
    sessions: Callable[[int], Sequence[Session]]
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
    settling: Settling | None = None
    """Where blocks go; None: every cell has all of them."""
    must_answer: bool = False
    """Whether the race ends early where one of its apps answers on no stack, so that nothing is measured in vain."""
    elsewhere: Elsewhere | None = None
    """Hosts that run it; None: this machine does."""


COMPLETE, AGENTS_GONE = "complete", "agents gone"


@dataclass(frozen=True)
class Finished:
    """How a race ended."""

    path: Path
    done: int
    total: int
    how: str
    """`complete`, `settled`, `budget spent` or `agents gone`."""


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
    left = [Session(tuple(t for t in session.trials if t.key not in there)) for session in race.sessions]
    experiments = [finding.experiment for finding in before.findings] if before else []
    profiles = {profile.trial.key for profile in before.profiles} if before else set()
    return plan_of(
        f"study {race.study.name}",
        [session for session in left if session.trials],
        lab,
        estimate_s,
        experiments=[experiment for experiment in race.experiments if experiment not in experiments],
        profiles=[trial for trial in race.profiles if lab.profile and trial.key not in profiles],
        budget_s=race.study.budget_s,
    )


@contextmanager
def start(
    race: Race,
    lab: Lab,
    follower: Follower,
    estimate_s: Callable[[Session], float] | None = None,
    warn: Callable[[str], None] | None = None,
) -> Iterator["Running"]:
    """Hold the machine, open the file, and yield the race, of which its user takes the steps.

    `estimate_s`: how long a session should take, if known. `warn` hears once of each app what of its requests is
    answered wrongly; None: the follower does. With `race.elsewhere` other hosts run it, and this machine measures
    nothing.
    Raises RaceInterruptedError on Ctrl-C, SIGTERM or SIGHUP, BusyError, LimitError, OutputError, and for a resume
    ResultsError or StudyChangedError. A stack's failure is a result and raises nothing, but where an app must answer:
    AppAnswersWrongError or AppNotServedError.
    """
    whole = plan_of_race(race, lab, estimate_s)
    place = _There(race.elsewhere, race, lab, follower) if race.elsewhere else _Here(race, lab, follower)
    with place.hold(whole):
        store, before = _open(race)
        running = Running(
            race,
            lab,
            whole=whole,
            place=place,
            store=store,
            before=before,
            estimate_s=estimate_s,
            warn=warn,
        )
        with store, running:
            try:
                yield running
            except KeyboardInterrupt:
                ended = running.finished
                raise RaceInterruptedError(str(ended.path), ended.done, ended.total) from None
            except (AppAnswersWrongError, AppNotServedError):
                if not running.measured:
                    store.discard()
                raise
            except (
                AgentLostError,
                AgentRefusedError,
                AgentsRefuseRaceError,
                AgentsDifferError,
                NoAgentsError,
                PlacingError,
                CoordinatorError,
            ):
                if not before.whole_bytes:  # begun by this run, and nothing is in it
                    store.discard()
                raise


class Running:
    """A race that runs: its steps, each when it is due, and more sessions once these have ended."""

    def __init__(
        self,
        race: Race,
        lab: Lab,
        *,
        whole: RunPlan,
        place: "_Here | _There",
        store: Store,
        before: Results,
        estimate_s: Callable[[Session], float] | None,
        warn: Callable[[str], None] | None,
    ) -> None:
        """`whole` is the plan of all of it, `before` what the file held already."""
        self.before = before
        self._race, self._lab, self._whole, self._place, self._store = race, lab, whole, place, store
        self._estimate_s, self._warn = estimate_s, warn
        self._plan = plan_of_race(race, lab, estimate_s, before)
        self._answers = Answers(self._plan, before, {question.name for question in race.study.answered})
        self._every = {trial.trial.key: trial for trial in before.trials}
        self._how = COMPLETE
        self._taken = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._taken.close()  # no server outlives a race whose steps nobody takes any more

    @property
    def results(self) -> list[Result]:
        """Of its trials so far, with those of before."""
        return [*self._every.values()]

    @property
    def measured(self) -> bool:
        """Whether anything was."""
        return self._answers.measured

    @property
    def gone(self) -> bool:
        """Whether hosts run it of which none is left."""
        return self._place.gone

    @property
    def finished(self) -> Finished:
        """How it ended, or where it is."""
        how = AGENTS_GONE if self.gone else self._how
        return Finished(self._store.path, len(self._every), len(self._whole.trials), how)

    def steps(self) -> Iterator[Step]:
        """Yield what is there already, the experiments, and the result of each trial."""
        return self._taken.enter_context(closing(self._steps()))

    def serve(self, session: Session) -> Generator[Result]:
        """Run a session beside the plan and yield its results, each when it is on the disk."""
        with closing(self._place.serve(session)) as results:
            for result in results:
                self._store.append(result)
                yield result

    def profiles(self) -> Iterator[Step]:
        """Yield the profiles, and which of them begins."""
        return self._taken.enter_context(closing(self._store_steps(self._place.profiles(self._plan))))

    def _steps(self) -> Generator[Step]:
        before, place = self.before, self._place
        yield from (*before.findings, *before.trials, *before.profiles)
        lab = place.find_usable_limits(self._whole, self._lab)
        self._plan = plan = plan_of_race(self._race, lab, self._estimate_s, before)
        place.prepare(plan, before, lab)
        yield from self._store_steps(place.findings(plan))
        schedule = place.schedule(plan, self._further(), Shares(self._whole, self._every), self._warn)
        with closing(schedule.results(place.lab, place.follower)) as results:
            for result in results:
                if self._race.must_answer:
                    self._answers.see(result)
                self._store.append(result)
                self._every[result.trial.key] = result  # the later of two, as whoever reads the file takes it
                yield result
        self._how = schedule.how

    def _further(self) -> "_Further | None":
        # A race is judged by how it began.
        if self._race.settling is None or not self.before.header.study.until_settled:
            return None
        self._estimate_s = self._estimate_s or rough_s
        return _Further(
            self._race.settling,
            self.before,
            self._every,
            self._place.lab,
            whole=self._whole,
            estimate_s=self._estimate_s,
        )

    def _store_steps(self, steps: Iterable[Step]) -> Generator[Step]:
        for step in steps:
            if not isinstance(step, Begins):
                self._store.append(step)
            yield step


class _Here:
    """This machine, as what runs a race."""

    gone = False
    """A race over other hosts may lose them all; this machine stays."""

    def __init__(self, race: Race, lab: Lab, follower: Follower) -> None:
        self.race, self.lab, self.follower = race, lab, follower

    def hold(self, whole: RunPlan) -> AbstractContextManager[None]:
        """Hold the machine."""
        return hold_machine(whole, self.follower, self.race.wait_s)

    def find_usable_limits(self, whole: RunPlan, lab: Lab) -> Lab:
        """Return the lab with the control groups that may be used here."""
        return find_usable_limits(whole, lab)

    def prepare(self, plan: RunPlan, before: Results, lab: Lab) -> None:
        """Make what a plan needs. Raises StudyChangedError where other hosts began it: a block would be torn."""
        if any(trial.machine is not None for trial in before.trials):
            path = str(self.race.out / NAME)
            raise StudyChangedError(path, ["agents ran its blocks, and now there are none: give --agents"])
        self.lab = prepare_environments(plan, lab, self.follower)

    def findings(self, plan: RunPlan) -> Iterator[Step]:
        """Yield what the experiments come to, and which begins."""
        for experiment in plan.experiments:
            yield Begins(experiment)
            yield run_experiment(experiment, self.lab)

    def schedule(
        self, plan: RunPlan, further: "_Further | None", _shares: "Shares", warn: Callable[[str], None] | None
    ) -> "Scheduler":
        """Return what runs the sessions."""
        return Scheduler(plan, warn, further)

    def serve(self, session: Session) -> Generator[Result]:
        """Run one session."""
        return session_runner(self.lab)(session)

    def profiles(self, plan: RunPlan) -> Iterator[Step]:
        """Yield the profiles, and which begins."""
        for trial in plan.profiles:
            if self.lab.profile is not None:
                yield Begins(trial)
                yield self.lab.profile(trial, self.lab, self.race.out)


class _There:
    """Other hosts, as what runs a race; this machine is free meanwhile."""

    def __init__(self, elsewhere: Elsewhere, race: Race, lab: Lab, follower: Follower) -> None:
        self.elsewhere, self.race, self.lab, self.follower = elsewhere, race, lab, follower

    @property
    def gone(self) -> bool:
        """Whether no host is left."""
        return bool(self.elsewhere.gone)

    def hold(self, whole: RunPlan) -> AbstractContextManager[None]:
        """Hold nothing: each host is held while it runs a block."""
        self._whole = whole
        return stoppable()

    def find_usable_limits(self, _whole: RunPlan, lab: Lab) -> Lab:
        """Return the lab as it is: each host finds out about itself."""
        return lab

    def prepare(self, plan: RunPlan, before: Results, lab: Lab) -> None:
        """Have the hosts look whether they can run it; each makes its environments before its first block.

        Raises StudyChangedError where a block would be torn: a part of it (`--only`) is there, and not to be run again.
        """
        self.lab = lab
        asked = {trial.key for trial in self._whole.trials}
        begun = {session.block for session in plan.sessions}
        if others := [
            result.trial
            for result in before.trials
            if result.trial.block in begun and result.trial.key not in asked
        ]:
            number, path = others[0].block + 1, str(self.race.out / NAME)
            why = f"of block {number} there is {others[0].cell}, and hosts run blocks whole: leave --only out"
            raise StudyChangedError(path, [why])
        # Of a block that is there in part, all is run again: environments of all sessions are needed.
        every = replace(plan, sessions=self._whole.sessions)
        self.elsewhere.begin(every, self.race.study, lab, self.follower)

    def findings(self, plan: RunPlan) -> Iterator[Finding]:
        """Yield what the experiments come to, on whoever is free."""
        for entry in self._each(
            WorkUnit(f"experiment {experiment.name}", experiment=experiment)
            for experiment in plan.experiments
        ):
            assert isinstance(entry, Finding)
            yield entry

    def schedule(
        self, plan: RunPlan, further: "_Further | None", shares: "Shares", _warn: object
    ) -> "SharedScheduler":
        """Return what gives the blocks out."""
        return SharedScheduler(plan, further, shares, self.elsewhere, self.race.out)

    def serve(self, session: Session) -> Generator[Result]:
        """Have whoever is free run one session."""
        for entry in self._each([WorkUnit(f"check of {session.trials[0].cell}", (session,))]):
            assert isinstance(entry, Measurement | Failed)
            yield entry

    def profiles(self, plan: RunPlan) -> Iterator[Profile]:
        """Yield the profiles, by whoever is free."""
        for entry in self._each(
            WorkUnit(f"profile of {profile.cell}", profile=profile) for profile in plan.profiles
        ):
            assert isinstance(entry, Profile)
            yield entry

    def _each(self, units: Iterable[WorkUnit]) -> Iterator[Entry]:
        left = iter(units)
        return self.elsewhere.entries(lambda: next(left, None), self.follower, self.race.out, lambda: None)


def _open(race: Race) -> tuple[Store, Results]:
    """Open the file; return what of it is not to be run again."""
    header = new_header(race.study)
    if race.elsewhere is not None:  # what is known of the noise here says nothing of other hosts
        header = replace(header, noise=SHIPPED)
    if not race.resume:
        return Store.create(race.out, header), Results(header, (), 0, torn=False)
    store, found = Store.resume(race.out, header)
    trials = tuple(trial for trial in found.trials if not _again(trial, race.redo))
    findings = tuple(finding for finding in found.findings if not finding.failed)
    profiles = tuple(profile for profile in found.profiles if not profile.failed)
    return store, replace(found, trials=trials, findings=findings, profiles=profiles)


def new_header(study: Study, sought: Sought | None = None) -> Header:
    """Return the header of results of which the first is made now, on this machine; `sought`: by a search."""
    machine = facts.facts()
    known = known_noise.of(machine)
    return Header(study, study.seed, machine, _native.VERSION, now(), noise=known, sought=sought)


def _again(result: Result, redo: bool) -> bool:
    """Return whether a resumed race measures something that it has a result of once more."""
    if isinstance(result, Failed):
        # What was missing may be there now.
        return result.failure.is_missing
    return redo and _disturbed(result)


def _disturbed(result: Result) -> bool:
    """Return whether the machine spoilt a measurement, which says nothing of the server and may go well next time."""
    return isinstance(result, Measurement) and any(kind.of_the_moment for kind in result.doubts)


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
        self._settling, self._noise, self._every, self._lab = settling, before.header.noise, every, lab
        self._what, self._estimate_s, self._whole = whole.what, estimate_s, whole
        servers: dict[tuple[str, int], list[Trial]] = {}
        for trial in before.trials:
            servers.setdefault((trial.trial.cell, trial.trial.block), []).append(trial.trial)
        self.left_s = whole.seconds - sum(estimate_s(Session(tuple(own))) for own in servers.values())
        """What may still be begun, as estimated."""
        self._open: Collection[str] | None = None

    def going(self, sessions: Iterable[PlannedSession]) -> list[PlannedSession]:
        """Return those of the sessions whose cell is open."""
        return [session for session in sessions if self._open is None or session.cell in self._open]

    def look(self, blocks: int) -> bool:
        """Take note of what is open after so many blocks. Returns whether anything is."""
        found = self._settling.still_open([*self._every.values()], self._noise, blocks)
        if found is not None:
            self._open = found
        return self._open is None or bool(self._open)

    def block(self, number: int) -> list[PlannedSession] | None:
        """Return what is to be run of a block beyond those planned; None: there is no such block."""
        if number >= self._settling.most_blocks:
            return None
        every = [
            Session(tuple(trial for trial in session.trials if trial.key not in self._every))
            for session in self._settling.sessions(number)
        ]
        left = [session for session in every if session.trials]
        return self.going(plan_of(self._what, left, self._lab, self._estimate_s).sessions)

    @property
    def looks(self) -> Sequence[int]:
        """After how many blocks it is looked at."""
        return self._settling.looks

    @property
    def most_blocks(self) -> int:
        """After so many it ends."""
        return self._settling.most_blocks

    def whole_block(self, number: int) -> list[PlannedSession]:
        """Return what of a block is open, planned or beyond, whether there are results of it or not."""
        planned = [session for session in self._whole.sessions if session.block == number]
        beyond = () if planned else self._settling.sessions(number)
        return self.going(planned or plan_of(self._what, beyond, self._lab, self._estimate_s).sessions)


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
        self.how = COMPLETE
        self._began = time.monotonic()
        self._estimated_s = self._took_s = 0.0
        self._spare_s = AGAIN_SHARE * plan.seconds
        self._disturbed: dict[tuple[str, int], PlannedSession] = {}
        self._times: Counter[tuple[str, int]] = Counter()

    def results(self, lab: Lab, follower: Follower) -> Generator[Result]:
        """Yield the result of each trial, in order, and those of repeats, until the budget is spent."""
        if self._further is None:
            yield from self._run_planned(lab, follower)
        else:
            yield from self._until_settled(self._further, lab, follower)
        yield from self._again((), lab, follower)

    def _run_planned(self, lab: Lab, follower: Follower) -> Iterator[Result]:
        left = [*self.plan.sessions]
        while left:
            block = [session for session in left if session.block == left[0].block]
            if len(left) < len(self.plan.sessions) and self._over_budget(block):
                self.how = "budget spent"
                return
            del left[: len(block)]
            yield from self._block(block, left, lab, follower)

    def _until_settled(self, further: _Further, lab: Lab, follower: Follower) -> Iterator[Result]:
        """Yield block after block of what is open; one that was run before is only looked at once more."""
        planned = 1 + max((session.block for session in self.plan.sessions), default=0)
        for number in count():
            later = [session for session in self.plan.sessions if session.block > number]
            if number < planned:
                block = further.going(session for session in self.plan.sessions if session.block == number)
            elif (beyond := further.block(number)) is not None:
                block = beyond
            else:
                return
            takes_s = sum(session.seconds for session in block)
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
        follower.session_started(session.cell, self._seconds(left))
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
        return sum(session.seconds for session in sessions) * pace

    def _over_budget(self, block: Iterable[PlannedSession]) -> bool:
        """Whether a block would end after the budget. Never checked of the first: no answer is worth less."""
        if self.plan.budget_s is None:
            return False
        return time.monotonic() - self._began + self._seconds(block) > self.plan.budget_s


@dataclass(frozen=True)
class Shares:
    """What blocks are given out whole by."""

    whole: RunPlan
    """Of all blocks, run before or not."""
    every: Mapping[str, Result]
    """The results so far; it grows."""


class SharedScheduler:
    """Gives the blocks of a plan to several hosts, each as a whole, as long as the budget allows another one.

    Of a block that is there in part, all is run again: by whom its first part was measured may be gone.
    """

    def __init__(
        self, plan: RunPlan, further: _Further | None, shares: Shares, elsewhere: Elsewhere, out: Path
    ) -> None:
        self.plan, self._further, self._shares = plan, further, shares
        self._elsewhere, self._out = elsewhere, out
        self.how = COMPLETE
        self._began = time.monotonic()
        self._left_s = 0.0
        self._given = False
        self._stopped = False

    def results(self, _lab: Lab, follower: Follower) -> Generator[Result]:
        """Yield the result of each trial as it arrives, until the budget is spent or no host is left."""
        if self._further is None:
            numbers = list(dict.fromkeys(session.block for session in self._shares.whole.sessions))
            yield from self._blocks(numbers, follower)
            return
        begin = 0
        while begin < self._further.most_blocks and not self._elsewhere.gone:
            # What is up to the next look may run at once: it rests on nothing that is still to come.
            end = min(
                (look for look in self._further.looks if look > begin), default=self._further.most_blocks
            )
            end = min(end, self._further.most_blocks)
            yield from self._blocks(range(begin, end), follower)
            if self._elsewhere.gone or self._stopped:
                return
            for blocks in range(begin + 1, end + 1):
                if not self._further.look(blocks):
                    self.how = "settled"
                    return
            begin = end

    def _blocks(self, numbers: Iterable[int], follower: Follower) -> Iterator[Result]:
        waiting = [*numbers]
        self._left_s = sum(session.seconds for number in waiting for session in self._sessions(number))

        def upcoming() -> WorkUnit | None:
            while waiting and not self._stopped:
                number = waiting.pop(0)
                sessions = self._sessions(number)
                seconds = sum(session.seconds for session in sessions)
                self._left_s -= seconds
                if not sessions:
                    continue
                if self._given and self._spent(seconds):
                    self.how, self._stopped = "budget spent", True
                    return None
                if self._further is not None:
                    self._further.left_s -= seconds
                self._given = True
                own = tuple(Session(session.trials) for session in sessions)
                return WorkUnit(f"block {number + 1}", own, again=True)
            return None

        def left_s() -> float | None:
            return self._left_s / max(1, self._elsewhere.hosts)

        for entry in self._elsewhere.entries(upcoming, follower, self._out, left_s):
            assert isinstance(entry, Measurement | Failed)
            yield entry

    def _sessions(self, number: int) -> list[PlannedSession]:
        """Return all of a block that is open, if any of that is not there yet."""
        if self._further is None:
            every = [session for session in self._shares.whole.sessions if session.block == number]
        else:
            every = self._further.whole_block(number)
        there = all(trial.key in self._shares.every for session in every for trial in session.trials)
        return [] if there else every

    def _spent(self, seconds: float) -> bool:
        """Return whether a block that takes so long would end after the budget."""
        if self.plan.budget_s is not None:
            return time.monotonic() - self._began + seconds > self.plan.budget_s
        return self._further is not None and seconds > self._further.left_s + 1e-6


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
        failed[label] = refusal(app, label, result.failure, result.reason, result.last_lines)
        tried = sum(isinstance(one, AppAnswersWrongError) or one.tried for one in failed.values())
        if tried >= MOST_WRONG or failed.keys() == self._contestants[trial.question]:
            raise most_telling([*failed.values()])

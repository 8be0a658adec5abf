"""What is wrong with an app on a server: screens, then the likeliest experiments, then once more without the cause.

    diagnose(DoctorSpec(ServedSpec(app), "uvicorn", budget_s=300), follower).causes

Two faults at once are common, and one hides the other: once a cause is cured, all that follows runs with its cure.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer
from typing import Any, TypeVar

from velodrome.diagnoses.fault import (
    WAVES,
    Absent,
    Experiment,
    Fault,
    Suspect,
    Unknown,
    catalogue,
    glances,
)
from velodrome.judge import diagnosis as judge
from velodrome.judge.search.holding import Demands
from velodrome.judge.search.rate import RateSearch
from velodrome.model import quantity
from velodrome.model.condition import Condition, write_condition
from velodrome.model.diagnosis import (
    AS_IT_IS,
    BEATING,
    COLLECTING,
    Arms,
    Counts,
    Diagnosis,
    Evidence,
    Examination,
    Figures,
    Met,
    Probe,
    Ruling,
    SloHolds,
    SloRate,
    Timeline,
    Treatment,
    Untried,
    surest_first,
)
from velodrome.model.errors import (
    AppAnswersWrongError,
    AppNotServedError,
    NoServerError,
    TooSlowError,
    UnknownNameError,
    UpstreamError,
    UsageError,
)
from velodrome.model.load import Limits, Link
from velodrome.model.measurement import Flag
from velodrome.model.search import Ending, RateCapacity, RateFound
from velodrome.model.symptoms import (
    Collected,
    InUse,
    Reused,
    Setting,
    Slope,
    Stepped,
    Symptoms,
    Watched,
    Worn,
)
from velodrome.model.trial import Trial
from velodrome.run.instruments import allocations, arms, heartbeat, screens, situations
from velodrome.run.instruments.standing import Standing, contestant_of, say_warm, serve_treated, standing
from velodrome.run.lab import Lab
from velodrome.run.racing.opening import open_lab
from velodrome.usecases import apps
from velodrome.usecases.apps import Served, ServedSpec
from velodrome.usecases.bench import UNLIMITED, trial_of
from velodrome.usecases.capacity import Search, run_search
from velodrome.usecases.events import Events
from velodrome.usecases.recording import Record
from velodrome.usecases.screen_evidence import screen_evidence
from velodrome.usecases.suspects import setting_of, symptoms
from velodrome.usecases.terms import DEFAULT_KNOBS, Knobs
from velodrome.usecases.workers import closes

BUDGET_S = 300.0
WATCHED_S, ALONE_S = 3.0, 1.5
"""Of the load with a heartbeat in the server, and of one connection alone before it."""
LEAST_CONNECTIONS, MOST_CONNECTIONS = 8, 256
"""Of that load: those of the plateau, within these."""
MANY_CONNECTIONS = 32
"""With third parties that take longer, at least: what bounds the calls is to be fewer."""
STEPPED_S = 6.0
"""Of both steps, beside the starts of their servers."""
AROUND_S = 1.2
"""Of warming up and settling, around each load of an arm, beside the start of its server."""
SLOW_S, SLOW_SCREENS = 0.3, 40
"""From where on the screens take longer for what a request takes, and about so many times as long."""
CLIMB_SHARE = 0.4
"""Of what is left of the budget: an app of seconds a request has no time for all numbers of connections."""
LOOKS_SHARE = 0.5
"""Of the budget, after which no further situation is looked at: what the screens make likely has to be proven yet."""
MOST_LOSS = 0.95
"""Of the throughput, by a fault in which requests are counted."""
LOOK_SERVERS = 4
"""Fresh servers on which situations are looked at, at most, where one after the other does not answer any more, or
another instrument is needed."""
WEARING = Probe("worn", "requests one after the other", "late, or failed")
"""On a server that answered others before."""
MOST_AT_ONCE = 200
"""Requests that are sent to a server which answers none once it was loaded."""
ROUNDS = 6
"""So many causes are cured and looked behind, at most."""

MORE = "give more time (--budget)"
SLO_SHARE, LEAST_SLO_S, MOST_SLO_S = 0.2, 25.0, 60.0
"""Of the budget, for each of two searches of the rate up to which an SLO holds, within these."""
SLO_LOAD_S, SLO_TOLERANCE, SLO_BOOTS = 2.0, 0.15, 2
"""Of each load of such a search, half its interval, and starts of the server: a look, no `velodrome capacity`."""
WAITS_FOR_WARMTH, WARM_AFTER_S = "collector", 4.0
"""The treatment that begins when the app is warm, and when it is, in a search that starts its servers itself."""

NOT_SERVED = (NoServerError, AppAnswersWrongError, AppNotServedError)


@dataclass(frozen=True)
class DoctorSpec:
    """What is examined, on which stack, and how long that may take."""

    served: ServedSpec
    stack: str = ""
    """Its name, or the file of one; empty: a common one that can serve the app."""
    knobs: Knobs = DEFAULT_KNOBS
    limits: Limits = UNLIMITED
    link: Link | None = None
    budget_s: float = BUDGET_S
    only: tuple[str, ...] = ()
    """Faults that are looked for; empty: all of the catalogue."""
    skip: tuple[str, ...] = ()
    """Faults that are not."""
    wait: bool = False
    """Wait while another velodrome measures."""
    slo: tuple[Condition, ...] = ()
    """What must hold; whether it does, and up to which rate, is searched as the app is and with all causes cured."""
    study: str = "doctor"
    agents: str = ""
    """Address of a coordinator, or a number of agents of this machine, of which one examines; empty: this machine."""
    keys: Path | None = None
    """Folder of the certificates for that; None: the usual one."""
    send: bool = False
    """Send the app's folder there, without what git ignores."""


class Sentences(Events):
    """Writes what goes on in an examination as sentences."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def said(self, sentence: str) -> None:
        """Write it."""
        self._tell(sentence)

    def preparing(self, text: str) -> None:
        """Write it."""
        self._tell(text)

    def screened(self, screens: Sequence[Evidence]) -> None:
        """Write what the screens saw."""
        for evidence in screens:
            self._tell(f"  {evidence.said}")

    def trying(self, fault: str, why: str, seconds: float) -> None:
        """Write what is tried next."""
        self._tell(f"trying {fault}, about {quantity.duration(seconds)}: {why}")

    def diagnosed(self, diagnosis: Diagnosis) -> None:
        """Write a diagnosis."""
        self._tell(f"{diagnosis.id}: {diagnosis.ruling}: {diagnosis.reason}")


def choose_faults(only: tuple[str, ...], skip: tuple[str, ...]) -> dict[str, Fault]:
    """Return the faults that are looked for, by id. Raises UnknownNameError, UsageError where none is left."""
    every = catalogue()
    for name in (*only, *skip):
        if name not in every:
            raise UnknownNameError("fault", name, tuple(every))
    chosen = {name: fault for name, fault in every.items() if (not only or name in only) and name not in skip}
    if not chosen:
        raise UsageError("--only and --skip leave no fault to look for; leave one of them out")
    return chosen


def diagnose(spec: DoctorSpec, follower: Events) -> Examination:
    """Examine an app on a stack.

    Raises what is wrong with the app, TooSlowError, UnknownNameError, UnknownKnobError, NoServerError, BusyError; with
    agents what `diagnose_on_hosts.diagnose_there` does.
    """
    if spec.send and not (spec.agents and spec.served.app):
        raise UsageError(
            "--send is for agents, which have no folder of the app; name an app and --agents, or leave it out"
        )
    if spec.agents:
        from velodrome.usecases import diagnose_on_hosts  # noqa: PLC0415 - would import in a circle

        return diagnose_on_hosts.diagnose_there(spec, follower)
    began, started = time.monotonic(), datetime.now(UTC)
    faults = choose_faults(spec.only, spec.skip)
    with (
        _prepare(spec, follower) as (served, trial),
        open_lab(
            [trial, *_elsewhere(trial, faults)],
            served.lab,
            f"doctor of {trial.cell}",
            follower,
            None if spec.wait else 0.0,
        ) as lab,
    ):
        # Environments that had to be made first are not taken off the budget.
        case = Case(trial, lab, faults, time.monotonic() + spec.budget_s, follower)
        case.examine(Slo(spec.slo, slo_s(spec.budget_s)) if spec.slo else None)
        who = trial.contestant
        return Examination(
            served.label,
            who.called(lab.stacks[who.stack]),
            surest_first(case.diagnoses),
            tuple(case.untried),
            case.screens,
            case.unexplained(),
            time.monotonic() - began,
            served.app.cwd if served.app else "",
            slo=case.slo,
            timeline=case.timeline,
            started=started.isoformat(timespec="seconds"),
            disturbed=judge.disturbances(case.flags),
        )


@contextmanager
def _prepare(spec: DoctorSpec, follower: Events) -> Iterator[tuple[Served, Trial]]:
    with apps.prepare_on(spec.served, spec.stack, spec.knobs, follower.said) as (served, who):
        yield (
            served,
            trial_of(
                spec.study,
                served.recipe,
                who,
                spec.limits,
                app=served.app,
                python=served.python,
                link=spec.link,
            ),
        )


def _elsewhere(trial: Trial, faults: Mapping[str, Fault]) -> Iterator[Trial]:
    """Yield the trial on each other stack that an experiment may serve it on: its environment is made beforehand."""
    who = trial.contestant
    for name in sorted(
        {fault.elsewhere[who.stack] for fault in faults.values() if who.stack in fault.elsewhere}
    ):
        yield replace(trial, contestant=replace(who, stack=name, knobs={}))


@dataclass(frozen=True)
class Slo:
    """What must hold, and how long each search of the rate up to which it does may take."""

    conditions: tuple[Condition, ...]
    seconds: float


def slo_s(budget_s: float) -> float:
    """Return how long each of the two searches may take."""
    return min(max(SLO_SHARE * budget_s, LEAST_SLO_S), MOST_SLO_S)


def slo_rate(found: RateFound) -> SloRate:
    """Return what a search for a rate came to."""
    holds = {Ending.NEVER: False, Ending.CANNOT: None}.get(found.ending, True)
    rate = found.interval if holds else None
    return SloRate(holds if rate or not holds else None, rate, str(found.ending), found.because)


Compared = tuple[Arms | Counts, judge.Judged] | Absent | str
"""What an experiment came to, or why there was none."""
Made = TypeVar("Made", Arms, Counts)
T = TypeVar("T", Figures, Met)


class Case:
    """One app on one stack while it is examined."""

    def __init__(
        self, trial: Trial, lab: Lab, faults: Mapping[str, Fault], deadline: float, follower: Events
    ) -> None:
        """`deadline` is on the clock of `time.monotonic`; the screens of the app as it is are made in any case."""
        self.diagnoses: list[Diagnosis] = []
        self.untried: list[Untried] = []
        self.screens: tuple[Evidence, ...] = ()
        self.timeline: Timeline | None = None
        """Of the screens as it is."""
        self.slo: SloHolds | None = None
        self.flags: list[Sequence[Flag]] = []
        """Of each load so far."""
        self._trial, self._faults = trial, faults
        self._lab = replace(lab, measured=lambda measured: self.flags.append(measured.flags))
        self._deadline, self._follower = deadline, follower
        self._looks_end = self._half = time.monotonic() + LOOKS_SHARE * (deadline - time.monotonic())
        self._base = AS_IT_IS
        """The cures so far."""
        self._reserved_s = 0.0
        """What the search of a rate with the cures is to have of the budget, once there is a cure."""
        self._postponed: set[str] = set()
        """Faults whose situation was not made, because half of the budget was spent before."""
        self._tried: set[tuple[str, str]] = set()
        """Faults with the treatments that were there when they were tried."""
        self._proven: set[tuple[str, str]] = set()
        """Faults with the treatments by which they were proven: what cures nothing here is still seen behind others."""
        self._needless: dict[tuple[str, str, str], tuple[int, Absent]] = {}
        """Treatments that met nothing to change, with which cures in which probe, and under how many connections."""
        self._slopes: list[Slope | None] = []
        """As it is, and after each cure that was looked behind."""
        self._met: dict[str, Met] = {}
        """What the looks met on the app as it is: a cure of another fault changes nothing of them."""
        self._in_use = InUse()
        self._worn: Worn | None = None
        """Of the app as it is."""
        self._crowded: Met | None = None
        """As well."""
        self._boot_s, self._cpus = 2.0, 1
        self._each_s = 0.0
        """What a request takes that is alone, once that is known."""

    def examine(self, slo: Slo | None = None) -> None:
        """Screen, try what is likeliest, and look again once a cause is cured. Raises as `diagnose` does.

        With an SLO its rate is searched after the first screens, and once more at the end where something was cured.
        """
        lacks = [Evidence("lacking", one) for one in screens.list_lacking()]
        for evidence in lacks:
            self._follower.said(evidence.said)
        seen = self._screen(first=True)
        self.screens = (*lacks, *screen_evidence(seen))
        self.timeline = seen.watched.timeline if seen.watched else None
        self._follower.screened(self.screens)
        if slo is None:
            self._look_for_causes(seen)
            return
        as_it_is = self._rate(slo)
        self._reserved_s = slo.seconds
        self._look_for_causes(seen)
        conditions = tuple(map(write_condition, slo.conditions))
        if not self._base:
            why = "no cause was cured" if self._causes() else "no cause was proven"
            self.slo = SloHolds(conditions, as_it_is, None, why)
            return
        if self._deadline - time.monotonic() < slo.seconds / 2:
            self.slo = SloHolds(conditions, as_it_is, None, f"the budget was spent; {MORE}")
            return
        cured = self._rate(slo)
        self.slo = SloHolds(conditions, as_it_is, cured)
        if len(self._causes()) == 1 and (lost := judge.rate_lost(as_it_is, cured)) is not None:
            # Of several causes none has this effect by itself.
            self.diagnoses = [
                replace(diagnosis, effect={**diagnosis.effect, "slo_rps": lost})
                if diagnosis.ruling is Ruling.CAUSE
                else diagnosis
                for diagnosis in self.diagnoses
            ]

    def _causes(self) -> list[Diagnosis]:
        return [diagnosis for diagnosis in self.diagnoses if diagnosis.ruling is Ruling.CAUSE]

    def _rate(self, slo: Slo) -> SloRate:
        """Search the highest rate at which an SLO holds with the cures so far."""
        self._follower.preparing(f"the SLO: {self._base.about}, about {quantity.duration(slo.seconds)}")
        # What waits for a warm app takes the first server for warm after a while, and a later one at once.
        waits = WAITS_FOR_WARMTH in self._base.give
        try:
            with serve_treated(self._trial, self._lab, self._base) as (trial, lab, folder):
                search = Search(
                    trial,
                    Demands(must=slo.conditions),
                    seconds=SLO_LOAD_S,
                    budget_s=slo.seconds,
                    rates=RateSearch(first=0.0, tolerance=SLO_TOLERANCE, boots=1 if waits else SLO_BOOTS),
                    beside=False,
                )
                warm = Timer(WARM_AFTER_S, say_warm, (folder,))
                warm.daemon = True
                warm.start()
                try:
                    found = run_search(search, lab, Events(), Record())
                finally:
                    warm.cancel()
                    warm.join()
        except NOT_SERVED as error:
            return SloRate(None, None, str(Ending.CANNOT), str(error).splitlines()[0])
        assert isinstance(found, RateCapacity)
        return slo_rate(found.found)

    def _look_for_causes(self, seen: Symptoms) -> None:
        for _ in range(ROUNDS):
            if self._round(seen):
                if self._left_s() < self._screens_s():
                    self._give_up(seen)
                    break
                seen = self._screen()
            elif (later := self._look_later(seen)) is not None:
                seen = later
            else:
                self._give_up(seen)
                break
        known = {diagnosis.id for diagnosis in self.diagnoses}
        why = f"half of the budget was spent before it could be looked at; {MORE}"
        self.untried += [Untried(name, why) for name in sorted(self._postponed - known)]

    def unexplained(self) -> float | None:
        """Return the share of a request's time that is left (`judge.diagnosis.unexplained`); None: not known."""
        first, last = (self._slopes[0], self._slopes[-1]) if self._slopes else (None, None)
        cures = sum(
            diagnosis.ruling is Ruling.CAUSE
            and diagnosis.proof == "cure"
            and not any(evidence.kind == "counts" for evidence in diagnosis.evidence)
            for diagnosis in self.diagnoses
        )
        if first is None or last is None or cures >= len(self._slopes):
            return None
        return judge.unexplained(first, last, float(self._room()))

    def _left_s(self) -> float:
        return self._deadline - time.monotonic() - (self._reserved_s if self._base else 0.0)

    def _room(self) -> int:
        return min(self._workers(), self._cpus)

    def _workers(self) -> int:
        stack = self._lab.stacks[self._trial.contestant.stack]
        return int(stack.settings(self._trial.contestant.knobs).get("workers", 1))

    def _screens_s(self) -> float:
        """Return about how long all screens take."""
        slow = SLOW_SCREENS * self._each_s if self._each_s > SLOW_S else 0.0
        has_third_parties = self._trial.app is not None and bool(self._trial.app.third_parties)
        stepping = 2 * self._boot_s + STEPPED_S if self._is_stepped() and has_third_parties else 0.0
        return 2 * self._boot_s + 15 + slow + stepping

    # --- Screens.

    def _screen(self, *, first: bool = False) -> Symptoms:
        """Run all screens on the app with the cures so far. Those of the first server must stand."""
        failed: list[str] = []
        found: tuple[Slope, Reused | None] | None = None
        watched: Watched | None = None
        alone: Watched | None = None
        compressed, called_ms = False, 0.0
        self._follower.preparing(f"screens: {self._base.about}")
        began = time.monotonic()
        try:
            found = self._climb(failed)
        except NOT_SERVED as error:
            if first and not (isinstance(error, NoServerError) and self._is_used_up_at_once()):
                raise
            failed.append(str(error).splitlines()[0])
        self._slopes.append(found[0] if found else None)
        many = found[0].plateau.connections if found else LEAST_CONNECTIONS
        try:
            looked = self._base.plus(BEATING).plus(screens.NOTING if self._is_stepped() else AS_IT_IS)
            with standing(self._trial, self._lab, looked) as server:
                self._boot_s = server.booted.boot_s
                server.warm()
                since = time.monotonic()
                connections = min(max(many, LEAST_CONNECTIONS), MOST_CONNECTIONS)
                least_s = WAVES * self._each_s
                alone = heartbeat.watch(server, 1, max(ALONE_S, least_s))
                called_ms = screens.called_ms(server, since)
                watched = heartbeat.watch(server, connections, max(WATCHED_S, least_s))
                self._cpus = len(server.booted.placed.server_cpus)
                compressed = screens.is_compressed(server)
        except NOT_SERVED as error:
            failed.append(str(error).splitlines()[0])
        collected = self._time_collections(watched, failed)
        steps = self._step_third_parties(found[0] if found else None, called_ms, failed)
        self._follower.preparing(f"screened in {quantity.duration(time.monotonic() - began)}")
        return Symptoms(
            found[0] if found else None,
            watched if watched is not None and watched.seconds else None,
            found[1] if found else None,
            self._workers(),
            self._cpus,
            alone,
            tuple(failed),
            self._setting(),
            dict(self._met),
            self._in_use,
            steps,
            collected=collected,
            compressed=compressed,
            worn=self._worn,
            crowded=self._crowded,
        )

    def _time_collections(self, watched: Watched | None, failed: list[str]) -> Collected | None:
        """Time collections of garbage without a heartbeat, where there was much of that with one."""
        found = watched.collected if watched else None
        asked = [fault.collects for fault in self._faults.values() if fault.collects is not None]
        if found is None or not any(is_much(found) for is_much in asked):
            return None
        try:
            with standing(self._trial, self._lab, self._base.plus(COLLECTING)) as server:
                server.warm()
                seconds = max(WATCHED_S, WAVES * self._each_s)
                return heartbeat.time_collections(server, LEAST_CONNECTIONS, seconds)
        except NOT_SERVED as error:
            failed.append(str(error).splitlines()[0])
            return None

    def _is_stepped(self) -> bool:
        """Return whether a fault is looked for that third parties show which take longer."""
        return any(fault.steps for fault in self._faults.values())

    def _step_third_parties(self, found: Slope | None, called_ms: float, failed: list[str]) -> Stepped | None:
        """Have third parties take longer: where none is simulated, those that clients in the app call."""
        if not self._is_stepped():
            return None
        knee = found.knee if found else LEAST_CONNECTIONS
        connections = min(max(2 * knee, MANY_CONNECTIONS), MOST_CONNECTIONS)
        try:
            return screens.step(
                self._trial, self._lab, self._base, connections, each_s=self._each_s, called_ms=called_ms
            )
        except (*NOT_SERVED, UpstreamError) as error:
            failed.append(f"third parties that take longer: {str(error).splitlines()[0]}")
            return None

    def _climb(self, failed: list[str]) -> tuple[Slope, Reused | None]:
        """Return the slope, and what reused connections do; a server that dies of it is followed by a fresh one."""
        stack = self._lab.stacks[self._trial.contestant.stack]
        climbed = screens.Climbed((), "")
        pairs: tuple[tuple[float, float], ...] = ()
        reused, ended = None, False
        looks = self._looks()
        as_it_is = self._slopes[0] if self._slopes else None
        also = as_it_is.plateau.connections if as_it_is else 0  # what is left is judged there (`unexplained`)
        until = time.monotonic() + CLIMB_SHARE * self._left_s()
        with standing(self._trial, self._lab, self._base) as server:
            if not self._slopes:
                self._refuse_slow(server)
            server.warm()
            alone = screens.alone(server)
            self._each_s = 1 / alone.rps
            until = until if self._each_s > SLOW_S else math.inf
            try:
                if closes(stack, self._trial):
                    reused = screens.fresh_and_reused(server, alone)
                climbed = screens.climb(server, first=alone, also=also, until=until)
                died = climbed.died
            except NoServerError as error:
                died = f"one connection: {error.reason}"
            if not died:
                try:
                    pairs = screens.ends(server, climbed)
                except NoServerError as error:
                    died, ended = f"with the most throughput: {error.reason}", True
                self._in_use = server.in_use()
            self._meet_worn(server)
            looks = self._likely_first(looks, server)
            if not died:
                self._crowded = self._crowded or screens.crowd(server, climbed)
                looks = self._look(server, looks, failed)
        if died:
            failed.append(died)
            with standing(self._trial, self._lab, self._base) as server:
                server.warm()
                if not climbed.points:
                    climbed = screens.climb(server, first=alone, also=also, until=until)
                    failed += [climbed.died] if climbed.died else []
                try:
                    pairs = screens.ends(server, climbed)
                except NoServerError as error:
                    failed.append(f"once more, with the most throughput: {error.reason}")
                    pairs = ((alone.rps, max(point.rps for point in climbed.points)),)
                else:
                    self._in_use = server.in_use()
                    looks = self._look(server, looks, failed)
        self._look_on_fresh_servers(looks, failed)
        return (
            judge.slope(climbed.points, pairs, cut=climbed.cut, died=bool(climbed.died), ended=ended),
            reused,
        )

    def _refuse_slow(self, server: Standing) -> None:
        """Refuse an app for whose screens the budget is too short. Raises TooSlowError, NoServerError.

        A slow one keeps those waiting who come after a crowd, so this is before all else, and once more where the first
        request was slow: it may have been the one that everything is made for.
        """
        for _ in range(2):
            self._each_s = screens.first(server)
            if self._each_s <= SLOW_S:
                return
        if self._screens_s() > (left_s := self._left_s()):
            raise TooSlowError(self._trial.recipe.name, self._each_s, self._screens_s(), max(left_s, 0.0))

    def _meet_worn(self, server: Standing) -> None:
        """Look at what requests meet on the server that carried the slope."""
        most = max((load.trial.load.pace.connections for load in server.loads), default=1)
        rest_s = situations.REST_TIMES * most * self._each_s
        if self._worn or rest_s > situations.LONGEST_REST_S or not self._is_worn_looked_at():
            return
        answered = round(sum(load.load.answers for load in server.loads))
        settings = {"connections": most, "usual_ms": 1000 * self._each_s}
        with suppress(NoServerError):
            self._worn = Worn(answered, situations.meet(server, replace(WEARING, settings=settings)))

    def _is_worn_looked_at(self) -> bool:
        """Whether a fault is looked for that a worn server shows, and its requests can be sent by hand."""
        return self._setting().plain and any(fault.wears for fault in self._faults.values())

    def _is_used_up_at_once(self) -> bool:
        """Whether a fresh server answers some requests that come one after the other, and then none."""
        if not self._is_worn_looked_at():
            return False
        with suppress(*NOT_SERVED), standing(self._trial, self._lab, self._base) as server:
            settings = {"requests": MOST_AT_ONCE, "connections": 0}
            met = situations.meet(server, replace(WEARING, settings=settings))
            self._worn = Worn(round(met.figures["answered"]), met)
        return self._worn is not None and self._worn.met.hits == self._worn.met.of

    def _looks(self) -> list[tuple[str, Probe]]:
        """Return the situations that a fault is to be seen in, where they are still to be made, the shortest first."""
        return [] if self._met else self._probes(self._faults)

    def _probes(self, names: Iterable[str]) -> list[tuple[str, Probe]]:
        """Return in which situation each of these faults is looked for, the shortest first."""
        setting = self._setting()
        if not setting.plain:
            return []
        faults = [self._faults[name] for name in names]
        every = {fault.name: fault.look(setting) for fault in faults if fault.look is not None}
        chosen = [(name, probe) for name, probe in every.items() if probe is not None]
        # A burst is still being answered when it is over: what is short is tried first.
        return sorted(chosen, key=lambda one: (*_on_one_server(one[1]), one[1].seconds))

    def _likely_first(self, looks: list[tuple[str, Probe]], server: Standing) -> list[tuple[str, Probe]]:
        """Put first those that the loads so far speak for: half of the budget may be too short for all."""
        if not server.loads:
            return looks
        stack = self._lab.stacks[server.loads[-1].trial.contestant.stack]
        likely = glances(symptoms(server.loads, stack))
        return sorted(looks, key=lambda look: (*_on_one_server(look[1]), look[0] not in likely))

    def _look(
        self,
        server: Standing,
        looks: list[tuple[str, Probe]],
        failed: list[str],
        *,
        fresh: bool = False,
        seen_by: Treatment = AS_IT_IS,
    ) -> list[tuple[str, Probe]]:
        """Make each situation once; return those that are left to a fresh server, because this one hangs or is gone.

        `fresh`: nothing could be made on it yet, so a situation that cannot be made on it cannot be made at all.
        `seen_by` is the instrument that the server has: who needs another is left, too.
        """
        for number, (name, probe) in enumerate(looks):
            if probe.seen_by != seen_by:
                return looks[number:]
            if self._met and time.monotonic() + self._longer_s(probe) > self._looks_end:
                self._postponed.add(name)
                continue
            try:
                self._met[name] = situations.meet(server, probe)
                fresh = False
            except NoServerError as error:
                if not fresh:
                    return looks[number:]
                failed.append(f"{name}: {error.reason}")
            if probe.ends or server.booted.server.exit() is not None:
                return looks[number + 1 :]
        return []

    def _look_later(self, seen: Symptoms) -> Symptoms | None:
        """Make the situations for which half of the budget was too short, where no experiment needs the rest of it.

        None: there are none, or no time for one.
        """
        chosen = self._probes(sorted(self._postponed))
        if not chosen or self._left_s() < self._boot_s + self._takes_s(chosen[0][1]):
            return None
        self._postponed.clear()
        longest = max(probe.seconds for _, probe in chosen)
        self._looks_end = time.monotonic() + max(self._left_s() - longest, 0.0)
        failed = list(seen.failed)
        self._look_on_fresh_servers(chosen, failed)
        return replace(seen, met=dict(self._met), failed=tuple(failed))

    def _look_on_fresh_servers(self, looks: list[tuple[str, Probe]], failed: list[str]) -> None:
        """Make what is left, each time a server does not answer any more on another one."""
        for _ in range(LOOK_SERVERS):
            if not looks:
                return
            seen_by = looks[0][1].seen_by
            try:
                with standing(self._trial, self._lab, self._base.plus(seen_by)) as server:
                    server.warm()
                    looks = self._look(server, looks, failed, fresh=True, seen_by=seen_by)
            except NOT_SERVED as error:
                failed.append(str(error).splitlines()[0])
                return
        failed += [f"{name}: {LOOK_SERVERS + 1} servers did not answer any more" for name, _ in looks]

    def _takes_s(self, probe: Probe) -> float:
        """Return how long a situation takes."""
        return probe.seconds + self._longer_s(probe)

    def _longer_s(self, probe: Probe) -> float:
        """Return how much longer a situation takes because each request does."""
        return probe.in_turn * self._each_s if self._each_s > SLOW_S else 0.0

    def _setting(self) -> Setting:
        """Return how the server is set, the cures included."""
        who = contestant_of(self._trial.contestant, self._base, self._lab.stacks)
        return setting_of(replace(self._trial, contestant=who), self._lab.stacks[who.stack])

    # --- Experiments.

    def _round(self, seen: Symptoms) -> bool:
        """Try what the screens make likely, the most gain per second first; return whether a cause was cured."""
        suspects = self._suspects(seen)
        self._rule_out_bounds([suspect.experiments[0] for _, suspect in suspects], seen)
        for fault, suspect in suspects:
            needed = self._seconds(suspect.experiments[0], seen)
            if self._left_s() < needed:
                continue
            self._tried.add((fault.name, self._base.about))
            self._follower.trying(fault.name, suspect.why, needed)
            found = self._test(fault, suspect, seen)
            self._replace(found)
            self._follower.diagnosed(found)
            probe = suspect.experiments[0].probe
            if found.ruling is Ruling.CAUSE and found.proof == "cure" and (probe is None or probe.hides):
                return True
        return False

    def _rule_out_bounds(self, experiments: Sequence[Experiment], seen: Symptoms) -> None:
        """Look once, with all suspected bounds raised, which of them are never reached: alone each takes a block."""
        raising = {
            what: experiment
            for experiment in experiments
            if experiment.raises and (what := _change(experiment, self._base)) not in self._needless
        }
        if len(raising) < 2:
            return
        treated = self._base
        for experiment in raising.values():
            treated = treated.plus(experiment.seen_by).plus(experiment.treatment)
        load = arms.Loaded(
            max(experiment.connections for experiment in raising.values()),
            max(experiment.load_s(seen) for experiment in raising.values()),
        )
        if self._left_s() < self._boot_s + AROUND_S + load.seconds:
            return
        self._follower.preparing("one look with all bounds raised that may hold requests up")
        try:
            took = arms.measure_arm(self._trial, self._lab, treated, load).took
        except NOT_SERVED:
            return  # each by itself may be served
        for what, experiment in raising.items():
            if isinstance(absent := experiment.missed(took, first=True), Absent):
                self._needless[what] = load.connections, absent

    def _suspects(self, seen: Symptoms) -> list[tuple[Fault, Suspect]]:
        """Return what to try, the most promising first; what the screens rule out, or leave open, is a diagnosis."""
        found: list[tuple[float, Fault, Suspect]] = []
        proven = {diagnosis.id for diagnosis in self.diagnoses if diagnosis.ruling is Ruling.CAUSE}
        for fault in self._faults.values():
            screened = fault.screen(seen)
            if isinstance(screened, Suspect) and screened.experiments:
                tried = (fault.name, self._base.about) in self._tried
                again = any((fault.name, one.treatment.about) in self._proven for one in screened.experiments)
                if not (tried or again) and not self._has(screened.experiments):
                    seconds = self._seconds(screened.experiments[0], seen)
                    found.append((screened.likelihood * screened.loss / seconds, fault, screened))
            elif fault.name in self._postponed and isinstance(screened, Unknown):
                continue
            elif fault.name not in proven:
                self._replace(_ruled_by_screen(fault, screened))
            elif fault.follows and isinstance(screened, Absent):
                self._note_consequence(fault)
        found.sort(key=lambda one: -one[0])
        return [(fault, suspect) for _, fault, suspect in found]

    def _note_consequence(self, fault: Fault) -> None:
        """Note of a cause whose symptoms the last cure has taken away that it comes of what was cured."""
        cured = next((cause.id for cause in reversed(self._causes()) if cause.proof == "cure"), "")
        self.diagnoses = [
            replace(diagnosis, comes_of=diagnosis.comes_of or cured)
            if diagnosis.id == fault.name and diagnosis.proof == "dose"
            else diagnosis
            for diagnosis in self.diagnoses
        ]

    def _has(self, experiments: tuple[Experiment, ...]) -> bool:
        """Whether its cure is there already: of call sites the same one, of a bound any that was raised."""
        base = self._base
        return any(
            (experiment.treatment and experiment.treatment.about in base.about)
            or any(
                name in base.give and not isinstance(value, list)
                for name, value in experiment.treatment.give.items()
            )
            for experiment in experiments
        )

    def _seconds(self, experiment: Experiment, seen: Symptoms) -> float:
        """Return how long an experiment takes at least."""
        if (probe := experiment.probe) is not None:
            return judge.COUNT_LOOKS[0] * 2 * (self._boot_s + AROUND_S + self._takes_s(probe))
        each = self._boot_s + AROUND_S + experiment.load_s(seen)
        return judge.LOOKS[0] * 2 * each

    def _test(self, fault: Fault, suspect: Suspect, seen: Symptoms) -> Diagnosis:
        """Make the first experiment that can be made, and others of the same treatment until one decides.

        Where a treatment changes nothing that refutes the fault, or breaks the app, any further experiment may decide.
        """
        why = []
        for number, experiment in enumerate(suspect.experiments):
            what = _change(experiment, self._base)
            under, absent = self._needless.get(what, (0, None))
            found = absent if absent and experiment.connections <= under else self._compare(experiment, seen)
            if isinstance(found, str):
                why.append(found)
                continue
            if isinstance(found, Absent):
                self._needless[what] = max(under, experiment.connections), found
                return Diagnosis(fault.name, Ruling.NOT_A_CAUSE, found.why, evidence=suspect.evidence)
            measured, judged = found
            undecided = judged.ruling is Ruling.CANNOT_TELL
            open_yet = judged.breaks or (judged.ruling is Ruling.NOT_A_CAUSE and not experiment.refutes)
            others = (
                one
                for one in suspect.experiments[number + 1 :]
                if open_yet or one.treatment == experiment.treatment
            )
            following = next(others, None)
            if (undecided or open_yet) and following and self._left_s() > self._seconds(following, seen):
                why.append(judged.reason)
                continue
            proven = judged.ruling is Ruling.CAUSE
            if proven:
                self._proven.add((fault.name, experiment.treatment.about))
            counted = isinstance(measured, Counts)
            better = f"both arms under {measured.load}, {len(measured.blocks)} blocks: {judged.reason}"
            ruled = Diagnosis(
                fault.name,
                judged.ruling,
                f"{suspect.why}; {judged.reason}",
                judged.effect,
                (*suspect.evidence, _evidence(better, measured)),
                experiment.cure if proven else None,
                experiment.proof if proven else "",
                1 / (1 - min(suspect.loss, MOST_LOSS)) if counted and proven else judged.gain,
            )
            return self._allocated(ruled) if proven and experiment.leaves_memory else ruled
        return Diagnosis(fault.name, Ruling.CANNOT_TELL, "; ".join(why), evidence=suspect.evidence)

    def _allocated(self, found: Diagnosis) -> Diagnosis:
        """Return a diagnosis of memory that stays with the line that allocates most of it, where that can be seen."""
        if self._left_s() < self._boot_s + allocations.TAKES_S:
            return found
        self._follower.preparing("which line allocates what stays")
        try:
            return allocations.name_line(found, allocations.kept(self._trial, self._lab, self._base))
        except NOT_SERVED:
            return found

    def _compare(self, experiment: Experiment, seen: Symptoms) -> Compared:
        """Measure both arms until they decide; return why that cannot be done where it cannot, or need not."""
        if experiment.probe is not None:
            return self._count(experiment, experiment.probe)
        load = arms.Loaded(experiment.connections, experiment.load_s(seen))
        seen_by = self._base.plus(experiment.seen_by)
        sides = ((seen_by, load), (seen_by.plus(experiment.treatment), load))

        def decide(made: Arms) -> judge.Judged | None:
            if len(made.blocks) not in judge.LOOKS:
                return None
            # Looks beyond the second are for who has most of the budget left.
            last = len(made.blocks) >= judge.LOOKS[1] and time.monotonic() > self._half
            return judge.judge_arms(
                made, experiment.metrics, experiment.proof, experiment.most_rps, last=last
            )

        first = Arms(load.label, sides[0][0], sides[1][0], ())
        compared = self._measure_blocks(experiment, sides, first, decide, judge.LOOKS)
        if _is_cause(compared) and experiment.proof == "cure":
            self._base = self._base.plus(experiment.treatment)
        return compared

    def _count(self, experiment: Experiment, probe: Probe) -> Compared:
        """Make a situation in both arms until they decide, as `_compare` does."""
        dose, treated = experiment.proof == "dose", self._base.plus(experiment.treatment)
        sides = (
            (self._base.plus(experiment.seen_by), arms.Probed(probe.calm if dose else probe)),
            (treated.plus(experiment.seen_by), arms.Probed(probe)),
        )

        def decide(made: Counts) -> judge.Judged | None:
            looked_at = len(made.blocks) in (1, *judge.COUNT_LOOKS)
            return judge.judge_counts(made, experiment.proof) if looked_at else None

        first = Counts(probe, self._base, treated, ())
        compared = self._measure_blocks(experiment, sides, first, decide, judge.COUNT_LOOKS)
        # Another stack is no base for what follows: that is about the one that was named.
        if _is_cause(compared) and not dose and not experiment.treatment.stack:
            old, self._base = self._base.about, treated
            if not probe.hides:  # it changes nothing of what was tried before, nor of the screens
                self._tried |= {(name, treated.about) for name, about in self._tried if about == old}
        return compared

    def _measure_blocks(
        self,
        experiment: Experiment,
        sides: tuple[arms.Side[T], arms.Side[T]],
        made: Made,
        decide: Callable[[Made], judge.Judged | None],
        looks: Sequence[int],
    ) -> Compared:
        """Measure block after block of both arms until it is decided; `made` has none yet.

        The first of the looks may be waited for beyond the budget, and the last decides.
        """
        block_s = 0.0
        for number in range(looks[-1]):
            if number >= looks[0] and self._left_s() < block_s:
                return made, _spent(number)
            began = time.monotonic()
            try:
                before, after = self._block(sides, number)
            except arms.NotMeasuredError as error:
                died = _death(error, experiment, number)
                return (made, died) if number else died.reason
            if (missed := experiment.missed(after.took, first=not number)) is not None:
                return missed
            blocks: tuple[Any, ...] = (*made.blocks, (before.found, after.found))
            made = replace(made, blocks=blocks)
            block_s = time.monotonic() - began
            if (found := decide(made)) is not None:
                return made, found
        raise AssertionError("the last look decides")

    def _block(
        self, sides: tuple[arms.Side[T], arms.Side[T]], number: int
    ) -> tuple[arms.Arm[T], arms.Arm[T]]:
        """Measure a block; where a server dies of it, once more on fresh ones. Raises NotMeasuredError."""
        try:
            return arms.block(self._trial, self._lab, sides, number)
        except arms.NotMeasuredError as error:
            self._follower.preparing(f"block {number + 1} once more, on fresh servers: {error.reason}")
            return arms.block(self._trial, self._lab, sides, number)

    def _replace(self, found: Diagnosis) -> None:
        """Note a diagnosis in the place of an earlier one of the same fault that was no cause."""
        self.diagnoses = [
            diagnosis
            for diagnosis in self.diagnoses
            if diagnosis.id != found.id or diagnosis.ruling is Ruling.CAUSE
        ]
        if found.ruling is Ruling.CAUSE or not any(diagnosis.id == found.id for diagnosis in self.diagnoses):
            self.diagnoses.append(found)

    def _give_up(self, seen: Symptoms) -> None:
        """Tell what would have been tried next."""
        for fault, suspect in self._suspects(seen):
            needed = quantity.duration(self._seconds(suspect.experiments[0], seen))
            why = f"likely, since {suspect.why}, but the budget has not the {needed} it takes; {MORE}"
            self.untried.append(Untried(fault.name, why))


def _on_one_server(probe: Probe) -> tuple[bool, bool]:
    """Return what sorts situations by the servers that they are made on, and last those that end theirs."""
    return bool(probe.seen_by), probe.ends


def _change(experiment: Experiment, base: Treatment) -> tuple[str, str, str]:
    """Return what an experiment changes, beside which cures, and in which probe."""
    return experiment.treatment.about, base.about, experiment.probe.about if experiment.probe else ""


def _death(error: arms.NotMeasuredError, experiment: Experiment, blocks: int = 0) -> judge.Judged:
    """Return that an experiment came to an end because a server twice could not be measured."""
    who = f"with {experiment.treatment.about}" if error.treated else "as it is"
    after = f" after {blocks} blocks" if blocks else ""
    load = experiment.probe.about if experiment.probe else f"closed-{experiment.connections}"
    return judge.Judged(
        Ruling.CANNOT_TELL, f"{who} it cannot be measured under {load}{after}, twice: {error.reason}"
    )


def _is_cause(compared: Compared) -> bool:
    return isinstance(compared, tuple) and compared[1].ruling is Ruling.CAUSE


def _spent(blocks: int) -> judge.Judged:
    return judge.Judged(Ruling.CANNOT_TELL, f"the budget was spent after {blocks} blocks")


def _ruled_by_screen(fault: Fault, screened: Absent | Unknown | Suspect) -> Diagnosis:
    if isinstance(screened, Absent):
        return Diagnosis(fault.name, Ruling.NOT_A_CAUSE, screened.why, evidence=screened.evidence)
    evidence = screened.evidence if isinstance(screened, Suspect) else ()
    return Diagnosis(fault.name, Ruling.CANNOT_TELL, screened.why, evidence=evidence)


def _evidence(sentence: str, measured: Arms | Counts) -> Evidence:
    """Return both arms as evidence, block by block, and of figures with the interval of each arm."""
    if isinstance(measured, Counts):
        return Evidence("counts", sentence, measured.document())
    return Evidence("arms", sentence, {**measured.document(), "levels": judge.levels(measured)})

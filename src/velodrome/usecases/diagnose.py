"""What is wrong with an app on a server: screens, then the likeliest experiments, then once more without the cause.

    diagnose(DoctorSpec(ServedSpec(app), "uvicorn", budget_s=300), follower).causes

Two faults at once are common, and one hides the other: once a cause is cured, all that follows runs with its cure.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Suspect, Unknown, catalogue, plateau
from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.judge import diagnosis as judge
from velodrome.model import quantity
from velodrome.model.diagnosis import (
    AS_IT_IS,
    Arms,
    Counts,
    Diagnosis,
    Evidence,
    Examination,
    Met,
    Probe,
    Ruling,
    Treatment,
    Untried,
    surest_first,
)
from velodrome.model.errors import AppAnswersWrongError, AppNotServedError, NoServerError, UnknownNameError
from velodrome.model.load import Limits, Link
from velodrome.model.symptoms import Reused, Setting, Slope, Symptoms, Watched
from velodrome.model.trial import Contestant, Trial
from velodrome.run.instruments import arms, heartbeat, reuse, situations, slope
from velodrome.run.instruments.standing import Standing, contestant_of, standing
from velodrome.run.lab import Lab
from velodrome.run.racing.opening import opened
from velodrome.usecases import apps
from velodrome.usecases.apps import Served, ServedSpec
from velodrome.usecases.bench import UNLIMITED, trial_of
from velodrome.usecases.load_blocks import common
from velodrome.usecases.quiet import Quiet
from velodrome.usecases.terms import DEFAULT_KNOBS, Knobs
from velodrome.usecases.workers import closes

BUDGET_S = 300.0
WATCHED_S, ALONE_S = 3.0, 1.5
"""Of the load with a heartbeat in the server, and of one connection alone before it."""
LEAST_CONNECTIONS, MOST_CONNECTIONS = 8, 256
"""Of that load: those of the plateau, within these."""
AROUND_S = 1.2
"""Of warming up and settling, around each load of an arm, beside the start of its server."""
WAVES = 3.0
"""A load lasts so many times what a request takes in it, at least."""
LONGEST_S = 6.0
ROUNDS = 6
"""So many causes are cured and looked behind, at most."""

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
    study: str = "doctor"


def chosen(only: tuple[str, ...], skip: tuple[str, ...]) -> dict[str, Fault]:
    """Return the faults that are looked for, by id. Raises UnknownNameError."""
    every = catalogue()
    for name in (*only, *skip):
        if name not in every:
            raise UnknownNameError("fault", name, tuple(every))
    return {name: one for name, one in every.items() if (not only or name in only) and name not in skip}


def diagnose(spec: DoctorSpec, follower: Quiet) -> Examination:
    """Examine an app on a stack.

    Raises what is wrong with the app, UnknownNameError, UnknownKnobError, NoServerError, BusyError.
    """
    began = time.monotonic()
    faults = chosen(spec.only, spec.skip)
    with (
        _prepared(spec, follower) as (one, trial),
        opened(
            [trial, *_elsewhere(trial, faults)],
            one.lab,
            f"doctor of {trial.cell}",
            follower,
            None if spec.wait else 0.0,
        ) as lab,
    ):
        # Environments that had to be made first are not taken off the budget.
        case = Case(trial, lab, faults, time.monotonic() + spec.budget_s, follower)
        case.examine()
        who = trial.contestant
        return Examination(
            one.label,
            who.called(lab.stacks[who.stack]),
            surest_first(case.diagnoses),
            tuple(case.untried),
            case.screens,
            case.unexplained(),
            time.monotonic() - began,
            one.app.cwd if one.app else "",
        )


@contextmanager
def _prepared(spec: DoctorSpec, follower: Quiet) -> Iterator[tuple[Served, Trial]]:
    names, extra = apps.named((spec.stack,) if spec.stack else ())
    if names:
        spec.knobs.of(_known(names[0], extra))
    with apps.served(spec.served, extra, follower.said) as one:
        name = names[0] if one.app is None else common(apps.stacks_for(one.app, one.lab, names))
        who = Contestant(name, spec.knobs.of(one.lab.stacks[name]))
        yield (
            one,
            trial_of(
                spec.study, one.recipe, who, spec.limits, app=one.app, python=one.python, link=spec.link
            ),
        )


def _elsewhere(trial: Trial, faults: Mapping[str, Fault]) -> Iterator[Trial]:
    """Yield the trial on each other stack that an experiment may serve it on: its environment is made beforehand."""
    who = trial.contestant
    for name in sorted({one.elsewhere[who.stack] for one in faults.values() if who.stack in one.elsewhere}):
        yield replace(trial, contestant=replace(who, stack=name, knobs={}))


def _known(name: str, extra: tuple[str, ...]) -> Stack:
    stacks = catalog.stacks(extra)
    if name not in stacks:
        raise UnknownNameError("stack", name, tuple(stacks))
    return stacks[name]


Compared = tuple[Arms | Counts, judge.Judged] | Absent | str
"""What an experiment came to, or why there was none."""


class Case:
    """One app on one stack while it is examined."""

    def __init__(
        self, trial: Trial, lab: Lab, faults: Mapping[str, Fault], deadline: float, follower: Quiet
    ) -> None:
        """`deadline` is on the clock of `time.monotonic`; the screens of the app as it is are made in any case."""
        self.diagnoses: list[Diagnosis] = []
        self.untried: list[Untried] = []
        self.screens: tuple[Evidence, ...] = ()
        self._trial, self._lab, self._faults = trial, lab, faults
        self._deadline, self._follower = deadline, follower
        self._base = AS_IT_IS
        """The cures so far."""
        self._tried: set[tuple[str, str]] = set()
        """Faults with the treatments that were there when they were tried."""
        self._slopes: list[Slope | None] = []
        """As it is, and after each cure that was looked behind."""
        self._met: dict[str, Met] = {}
        """What the looks met on the app as it is: a cure of another fault changes nothing of them."""
        self._in_use: tuple[tuple[tuple[int, float], ...], tuple[tuple[int, float], ...]] = (), ()
        self._boot_s, self._cpus = 2.0, 1

    def examine(self) -> None:
        """Screen, try what is likeliest, and look again once a cause is cured. Raises as `diagnose` does."""
        seen = self._screened(first=True)
        self.screens = tuple(_said(seen))
        self._follower.screened(self.screens)
        for _ in range(ROUNDS):
            if not self._round(seen) or self._left_s() < self._screens_s():
                break
            seen = self._screened()
        else:
            return
        self._give_up(seen)

    def unexplained(self) -> float | None:
        """Return the share of a request's time that is left (`judge.diagnosis.unexplained`); None: not known."""
        first, last = (self._slopes[0], self._slopes[-1]) if self._slopes else (None, None)
        cures = sum(
            one.ruling is Ruling.CAUSE
            and one.proof == "cure"
            and not any(evidence.kind == "counts" for evidence in one.evidence)
            for one in self.diagnoses
        )
        if first is None or last is None or cures >= len(self._slopes):
            return None
        return judge.unexplained(first, last, float(self._room()))

    def _left_s(self) -> float:
        return self._deadline - time.monotonic()

    def _room(self) -> int:
        return min(self._workers(), self._cpus)

    def _workers(self) -> int:
        stack = self._lab.stacks[self._trial.contestant.stack]
        return int(stack.settings(self._trial.contestant.knobs).get("workers", 1))

    def _screens_s(self) -> float:
        """Return about how long all screens take."""
        return 2 * self._boot_s + 15

    # --- Screens.

    def _screened(self, *, first: bool = False) -> Symptoms:
        """Run all screens on the app with the cures so far. Those of the first server must stand."""
        failed: list[str] = []
        found: tuple[Slope, Reused | None] | None = None
        watched: Watched | None = None
        alone: Watched | None = None
        self._follower.preparing(f"screens: {self._base.about}")
        began = time.monotonic()
        try:
            found = self._climbed(failed)
        except NOT_SERVED as error:
            if first:
                raise
            failed.append(str(error).splitlines()[0])
        self._slopes.append(found[0] if found else None)
        many = found[0].plateau.connections if found else LEAST_CONNECTIONS
        try:
            with standing(self._trial, self._lab, self._base.plus(heartbeat.BEATING)) as server:
                self._boot_s = server.booted.boot_s
                server.warm()
                connections = min(max(many, LEAST_CONNECTIONS), MOST_CONNECTIONS)
                alone = heartbeat.watch(server, 1, ALONE_S)
                watched = heartbeat.watch(server, connections, WATCHED_S)
                version = server.booted.environment.version
                self._cpus = len(server.booted.placed.server_cpus)
        except NOT_SERVED as error:
            failed.append(str(error).splitlines()[0])
            version = ""
        self._follower.preparing(f"screened in {quantity.duration(time.monotonic() - began)}")
        return Symptoms(
            found[0] if found else None,
            watched if watched is not None and watched.seconds else None,
            found[1] if found else None,
            self._lab.stacks[self._trial.contestant.stack].interface,
            _version(version),
            self._workers(),
            self._cpus,
            alone,
            tuple(failed),
            self._setting(),
            dict(self._met),
            *self._in_use,
        )

    def _climbed(self, failed: list[str]) -> tuple[Slope, Reused | None]:
        """Return the slope, and what reused connections do; a server that dies of it is followed by a fresh one."""
        stack = self._lab.stacks[self._trial.contestant.stack]
        with standing(self._trial, self._lab, self._base) as server:
            server.warm()
            reused = reuse.compare(server) if closes(stack, self._trial) else None
            points, died = slope.climb(server)
            if not died:
                found = judge.slope(points, slope.ends(server, points))
                self._in_use = server.in_use()
                self._look(server, failed)
                return found, reused
        failed.append(died)
        with standing(self._trial, self._lab, self._base) as server:
            server.warm()
            return judge.slope(points, slope.ends(server, points)), reused

    def _look(self, server: Standing, failed: list[str]) -> None:
        """Try once what the faults that count want to be tried; the first server is the one that tells."""
        setting = self._setting()
        if self._met or not setting.plain:
            return
        every = {one.name: one.look(setting) for one in self._faults.values() if one.look is not None}
        chosen = [(name, probe) for name, probe in every.items() if probe is not None]
        # A burst is still being answered when it is over: what is short is tried first.
        for name, probe in sorted(chosen, key=lambda one: (one[1].ends, one[1].seconds)):
            try:
                self._met[name] = situations.meet(server, probe)
            except NoServerError as error:
                failed.append(f"{name}: {error.reason}")
            if probe.ends or server.booted.server.exit() is not None:
                return

    def _setting(self) -> Setting:
        """Return how the server is set, the cures included."""
        who = contestant_of(self._trial.contestant, self._base, self._lab.stacks)
        stack = self._lab.stacks[who.stack]
        knobs = stack.settings(who.knobs)
        app = self._trial.app
        plain = catalog.interface(stack.interface).protocol == "http" and not (app and app.proto)
        bodies = [one.body for one in app.requests] if app else [self._trial.recipe.upload]
        return Setting(
            who.stack,
            knobs,
            self._workers(),
            stack.slots(knobs),
            stack.keeps_alive,
            stack.server.keeps_idle_s(knobs) if stack.server else None,
            plain,
            any(bodies),
        )

    # --- Experiments.

    def _round(self, seen: Symptoms) -> bool:
        """Try what the screens make likely, the most gain per second first; return whether a cause was cured."""
        for fault, suspect in self._suspects(seen):
            needed = self._seconds(suspect.experiments[0], seen)
            if self._left_s() < needed:
                continue
            self._tried.add((fault.name, self._base.about))
            self._follower.trying(fault.name, suspect.why, needed)
            found = self._tested(fault, suspect, seen)
            self._replace(found)
            self._follower.diagnosed(found)
            probe = suspect.experiments[0].probe
            if found.ruling is Ruling.CAUSE and found.proof == "cure" and (probe is None or probe.hides):
                return True
        return False

    def _suspects(self, seen: Symptoms) -> list[tuple[Fault, Suspect]]:
        """Return what to try, the most promising first; what the screens rule out, or cannot tell, is a diagnosis."""
        found: list[tuple[float, Fault, Suspect]] = []
        proven = {one.id for one in self.diagnoses if one.ruling is Ruling.CAUSE}
        for fault in self._faults.values():
            screened = fault.screen(seen)
            if isinstance(screened, Suspect) and screened.experiments:
                if (fault.name, self._base.about) not in self._tried and not self._has(screened.experiments):
                    seconds = self._seconds(screened.experiments[0], seen)
                    found.append((screened.likelihood * screened.loss / seconds, fault, screened))
            elif fault.name not in proven:
                self._replace(_ruled_by_screen(fault, screened))
        found.sort(key=lambda one: -one[0])
        return [(fault, suspect) for _, fault, suspect in found]

    def _has(self, experiments: tuple[Experiment, ...]) -> bool:
        """Whether its cure is there already: of call sites the same one, of a bound any that was raised."""
        base = self._base
        return any(
            (one.treatment and one.treatment.about in base.about)
            or any(
                name in base.give and not isinstance(value, list)
                for name, value in one.treatment.give.items()
            )
            for one in experiments
        )

    def _seconds(self, experiment: Experiment, seen: Symptoms) -> float:
        """Return how long an experiment takes at least."""
        if (probe := experiment.probe) is not None:
            return judge.COUNT_LOOKS[0] * 2 * (self._boot_s + AROUND_S + probe.seconds)
        each = self._boot_s + AROUND_S + _length(experiment, seen)
        return judge.LOOKS[0] * 2 * each

    def _tested(self, fault: Fault, suspect: Suspect, seen: Symptoms) -> Diagnosis:
        """Make the first experiment that can be made."""
        why = []
        for experiment in suspect.experiments:
            found = self._compared(experiment, seen)
            if isinstance(found, str):
                why.append(found)
                continue
            if isinstance(found, Absent):
                return Diagnosis(fault.name, Ruling.NOT_A_CAUSE, found.why, evidence=suspect.evidence)
            measured, judged = found
            proven = judged.ruling is Ruling.CAUSE
            better = f"both arms under {measured.load}, {len(measured.blocks)} blocks: {judged.reason}"
            kind = "counts" if isinstance(measured, Counts) else "arms"
            return Diagnosis(
                fault.name,
                judged.ruling,
                f"{suspect.why}; {judged.reason}",
                judged.effect,
                (*suspect.evidence, Evidence(kind, better, measured.document())),
                experiment.cure if proven else None,
                experiment.proof if proven else "",
                judged.gain,
            )
        return Diagnosis(fault.name, Ruling.CANNOT_TELL, "; ".join(why), evidence=suspect.evidence)

    def _compared(self, experiment: Experiment, seen: Symptoms) -> Compared:
        """Measure both arms until they tell; return why that cannot be done where it cannot, or need not."""
        treated = self._base.plus(experiment.treatment)
        if experiment.probe is not None:
            return self._counted(experiment, experiment.probe, treated)
        load = arms.Loaded(experiment.connections, _length(experiment, seen))
        made = Arms(load.label, self._base, treated, ())
        for number in range(judge.LOOKS[-1]):
            if number >= judge.LOOKS[0] and self._left_s() < 0:
                cannot = judge.Judged(Ruling.CANNOT_TELL, f"the budget was spent after {number} blocks")
                return made, cannot
            try:
                before, after = arms.block(self._trial, self._lab, (self._base, treated), load, number)
            except NOT_SERVED as error:
                return f"with {experiment.treatment.about} it is not served: {str(error).splitlines()[0]}"
            if experiment.takes and experiment.takes not in after.took:
                why = f"{experiment.treatment.about}: what that changes was never used under load"
                return Absent(why) if experiment.needless else why
            made = replace(made, blocks=(*made.blocks, (before.figures, after.figures)))
            if number + 1 in judge.LOOKS:
                found = judge.judged(made, experiment.metrics, experiment.proof)
                if found is not None:
                    if found.ruling is Ruling.CAUSE and experiment.proof == "cure":
                        self._base = treated
                    return made, found
        raise AssertionError("the last look decides")

    def _counted(self, experiment: Experiment, probe: Probe, treated: Treatment) -> Compared:
        """Make a situation in both arms until they tell, as `_compared` does."""
        dose = experiment.proof == "dose"
        made = Counts(probe, self._base, treated, ())
        for number in range(judge.COUNT_LOOKS[-1]):
            if number >= judge.COUNT_LOOKS[0] and self._left_s() < 0:
                return made, judge.Judged(Ruling.CANNOT_TELL, f"the budget was spent after {number} blocks")
            try:
                probes = (probe.calm if dose else probe, probe)
                before, after = arms.probed(self._trial, self._lab, (self._base, treated), probes, number)
            except NOT_SERVED as error:
                return f"{probe.about}, with {treated.about}: {str(error).splitlines()[0]}"
            if experiment.takes and experiment.takes not in after.took:
                why = f"{experiment.treatment.about}: what that changes was never used"
                return Absent(why) if experiment.needless else why
            made = replace(made, blocks=(*made.blocks, (before.met, after.met)))
            if number + 1 in judge.COUNT_LOOKS and (found := judge.counted(made, experiment.proof)):
                # Another stack is no base for what follows: that is about the one that was named.
                if found.ruling is Ruling.CAUSE and not dose and not experiment.treatment.stack:
                    old, self._base = self._base.about, treated
                    if not probe.hides:  # it changes nothing of what was tried before, nor of the screens
                        self._tried |= {(name, treated.about) for name, about in self._tried if about == old}
                return made, found
        raise AssertionError("the last look decides")

    def _replace(self, found: Diagnosis) -> None:
        """Note a diagnosis in the place of an earlier one of the same fault that was no cause."""
        self.diagnoses = [one for one in self.diagnoses if one.id != found.id or one.ruling is Ruling.CAUSE]
        if found.ruling is Ruling.CAUSE or not any(one.id == found.id for one in self.diagnoses):
            self.diagnoses.append(found)

    def _give_up(self, seen: Symptoms) -> None:
        """Tell what would have been tried next."""
        for fault, suspect in self._suspects(seen):
            needed = quantity.duration(self._seconds(suspect.experiments[0], seen))
            self.untried.append(
                Untried(fault.name, f"the budget was spent; likely, since {suspect.why}; about {needed} more")
            )


def _length(experiment: Experiment, seen: Symptoms) -> float:
    """Return how many seconds a load lasts: a slow app gets longer."""
    rps = seen.slope.plateau.rps if seen.slope else 0.0
    waits = WAVES * experiment.connections / rps if rps else 0.0
    return min(max(experiment.seconds, waits), max(LONGEST_S, experiment.seconds))


def _ruled_by_screen(fault: Fault, screened: Absent | Unknown | Suspect) -> Diagnosis:
    if isinstance(screened, Absent):
        return Diagnosis(fault.name, Ruling.NOT_A_CAUSE, screened.why, evidence=screened.evidence)
    evidence = screened.evidence if isinstance(screened, Suspect) else ()
    return Diagnosis(fault.name, Ruling.CANNOT_TELL, screened.why, evidence=evidence)


def _version(text: str) -> tuple[int, int]:
    """Return the first two numbers of a version of Python; (0, 0): it is not known."""
    parts = text.split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 and parts[1].isdecimal() else (0, 0)


def _said(seen: Symptoms) -> Iterator[Evidence]:
    """Yield what the screens saw, for people and for the document."""
    yield from plateau(seen)
    if (watched := seen.watched) is not None:
        late, blocked = (one / watched.seconds for one in (watched.late_s, watched.blocked_s))
        loop = f"event loop late for {late:.1%} of the time, blocked for {blocked:.1%}"
        said = loop if watched.loop else "no asyncio event loop"
        yield Evidence("counter", said, {"late_share": late, "blocked_share": blocked, "loop": watched.loop})
    if (reused := seen.reused) is not None:
        said = f"p50 {reused.first_ms:.3g} ms on fresh connections, {reused.later_ms:.3g} ms on a reused one"
        yield Evidence("latency", said, {"first_ms": reused.first_ms, "later_ms": reused.later_ms})
    for why in seen.failed:
        yield Evidence("failed", why)

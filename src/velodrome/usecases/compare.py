"""Which stack to serve an app on: every one that can, under the same load, ranked as any race is.

raced = compare(CompareSpec((AppSpec("shop.wsgi:application"),), Terms(rate=300)), out, follower)
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from velodrome.guest.apps import empty
from velodrome.guest.stack import KnobValue, Stack
from velodrome.model import quantity
from velodrome.model.app import App, Request
from velodrome.model.errors import (
    AppAnswersWrongError,
    AppNotServedError,
    ResultsError,
    ResultsExistError,
    SameAppError,
    SendingError,
    UsageError,
)
from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.results import Result
from velodrome.model.study import Baseline, Look, Question, Study
from velodrome.model.trial import Contestant
from velodrome.plan import matrix
from velodrome.plan.matrix import Matrix, as_profile
from velodrome.run.apps import revisions
from velodrome.run.apps.revisions import Revision
from velodrome.run.environments import interpreter
from velodrome.run.lab import Lab, OnHosts
from velodrome.run.profiling import take
from velodrome.run.racing import store
from velodrome.run.racing.plan import RunPlan, seat
from velodrome.run.racing.race import Elsewhere
from velodrome.usecases import race, workers
from velodrome.usecases.apps import (
    AppSpec,
    as_user_of,
    commands_around,
    folder,
    lab_for,
    look,
    only_hosts_have,
    refuse_commands_beside,
    stacks_for,
    unread_settings,
)
from velodrome.usecases.events import Events
from velodrome.usecases.race import Raced
from velodrome.usecases.terms import BLOCKS, Terms, read


@dataclass(frozen=True)
class CompareSpec:
    """Which apps are compared, and how."""

    apps: tuple[AppSpec, ...]
    """The commands around are those of the first."""
    terms: Terms
    extra: tuple[str, ...] = ()
    """Paths of stacks of the user's own."""
    resume: bool = False
    wait: bool = False
    """Wait while another velodrome measures."""
    agents: str = ""
    """Address of a coordinator, or a number of agents of this machine, that run its blocks; empty: nobody else."""
    keys: Path | None = None
    """Folder of the certificates for that; None: the usual one."""
    on: OnHosts = field(default_factory=OnHosts)
    """Which of the agents serve and which load."""
    send: bool = False
    """Whether the apps' folder is sent to who serves it; else it is there."""
    revision: str = ""
    """Of git, which is sent in the place of the folder as it is."""


LOOK = "look"
"""Folder within that of a comparison that holds what was measured before the race."""
LOOK_S = 1.5
"""Of a closed loop that only has to be right to 20 %; a span of the race that is shorter is enough for it too."""
LOOK_WARMUP_S = 0.5


def compare(spec: CompareSpec, out: Path | None, follower: Events) -> Raced:
    """Look at each app and race all stacks that can serve it into `out`, or a folder of `runs/`.

    Raises what is wrong with an app, UnknownNameError, NoStackFitsError, BusyError, and what `race.hosts_of` and
    `race.run` do.
    """
    first = spec.apps[0]
    refuse_commands_beside(spec.agents, first)
    if (spec.send or spec.revision) and not spec.agents:
        raise UsageError(
            f"--{'revision' if spec.revision else 'send'} is for agents, which have no such folder; add --agents, or "
            "leave it out"
        )
    with _as_user_of(spec, follower), _source(spec) as source:
        found = _found(spec, source, follower)
        with race.hosts_of(
            spec.agents,
            spec.keys,
            on=spec.on,
            user=first.user,
            cwd=folder(first.cwd),
            allow_sdist=first.allow_sdist,
            send=source.folder if source else folder(first.cwd) if spec.send else "",
        ) as elsewhere:
            field = _field(spec, found, follower, elsewhere)
            where = _folder(field, out)
            looks = _look_at_apps(field, where, follower)
            return race.run(_race(field, looks), where, follower)


def _only_hosts_have(spec: CompareSpec) -> bool:
    return not spec.send and not spec.revision and only_hosts_have(spec.apps[0], spec.agents)


def _as_user_of(
    spec: CompareSpec, follower: Events, *, commands: bool = True
) -> AbstractContextManager[None]:
    """Do everything as the user of the app, between the user's `commands`; nothing of that where it is not here."""
    if _only_hosts_have(spec):
        return nullcontext()
    return (commands_around if commands else as_user_of)(spec.apps[0], follower.said)


@contextmanager
def _source(spec: CompareSpec) -> Iterator[Revision | None]:
    """Yield the revision that is sent, checked out. Raises GitError, RevisionError."""
    if not spec.revision:
        yield None
        return
    with revisions.check_out(folder(spec.apps[0].cwd), (spec.revision,)) as (found,):
        yield found


def dry_run(spec: CompareSpec, out: Path | None, follower: Events) -> RunPlan:
    """Return what `compare` would start. The app is imported to see what it is; the user's commands do not run.

    Raises what `compare` does before it starts anything.
    """
    with _as_user_of(spec, follower, commands=False), _source(spec) as source:
        found = _found(spec, source, follower)
        with race.seen_from_here(spec.agents, spec.keys, spec.on) as (elsewhere, who):
            field = _field(spec, found, follower, elsewhere)
            where = _folder(field, out)
            begun = _begun_study(where) if spec.resume else None
            plan = replace(race.plan(_race(field, _looks_of(begun)), where), hosts=who)
            if begun is not None:
                return plan
            looking = race.plan(_look(field, resume=False), where / LOOK)
            finds, added_s = _baselines_to_come(field)
    if spec.terms.rate is None:
        finds = (f"the rate of an open loop, which each session below carries too: {RULE}", *finds)
        added_s += len(plan.sessions) * (spec.terms.seconds + spec.terms.warmup_s)
    return replace(plan, look=looking.sessions, look_finds=finds, look_adds_s=added_s)


def _baselines_to_come(field: "_Field") -> tuple[tuple[str, ...], float]:
    """Return what is said of the baselines before the look, and about how many seconds they take."""
    each_s = 2 * (min(BASELINE_S, field.spec.terms.seconds) + BASELINE_WARMUP_S) + BASELINE_BOOT_S
    counts = [
        2 + (app.framework in empty.FRAMEWORKS)
        for app in field.apps
        if not set(empty.BARE).isdisjoint(app.interfaces)
    ]
    blocks = BLOCKS if field.spec.terms.blocks is None else field.spec.terms.blocks
    if not counts:
        return (), 0.0
    many = f"{sum(counts)} more sessions of about {quantity.duration(each_s)}"
    return (
        f"the stack that leads: on it each block also serves the app and an empty handler, by which the app's own "
        f"share is known, {many}",
    ), blocks * sum(counts) * each_s


@dataclass(frozen=True)
class _Field:
    """What is compared, and where it runs."""

    spec: CompareSpec
    apps: tuple[App, ...]
    lab: Lab
    version: str
    """Of the apps' interpreter."""
    elsewhere: Elsewhere | None = None
    """Hosts that run it; None: this machine does."""


def _found(spec: CompareSpec, source: Revision | None, follower: Events) -> tuple[tuple[App, ...], str]:
    """Return what the apps are, and the version of the first one's interpreter."""
    if _only_hosts_have(spec):
        from velodrome.usecases import look_on_hosts  # noqa: PLC0415 - most apps are here

        return look_on_hosts.look_there(spec.apps, spec.agents, spec.keys, spec.on, follower)
    found = tuple(look(app) if source is None else _at(app, source) for app in spec.apps)
    return found, interpreter.find_interpreter(found[0].python).version


def _field(
    spec: CompareSpec,
    looked: tuple[tuple[App, ...], str],
    follower: Events,
    elsewhere: Elsewhere | None = None,
) -> _Field:
    found, version = looked
    if (spec.send or spec.revision) and (outside := [app for app in found if not _within(app)]):
        where = folder(spec.apps[0].cwd)
        raise SendingError(
            where, f"{outside[0].path} is imported from {outside[0].source}", "Name that with --cwd"
        )
    refuse_twice(spec.apps, found)
    lab = replace(lab_for(spec.apps[0], spec.extra), profile=take)
    if elsewhere is not None:
        lab = elsewhere.lab(lab)  # how many workers there are depends on the CPUs of the server's host
    comparison = lay_out(found, spec.terms, lab)
    for app, name in zip(found, names_of(found), strict=True):
        called = app.path if name == name_of(app) else name
        follower.said(f"{called} is {app.what}, called through {' or '.join(app.interfaces)}")
    for sentence in unread(comparison, lab):
        follower.said(sentence)
    return _Field(spec, found, lab, version, elsewhere)


def _at(spec: AppSpec, source: Revision) -> App:
    """Return what an app is at a revision, as if that were checked out in its own folder."""
    found = look(replace(spec, cwd=source.folder, revision=source.name), source)
    return replace(found, cwd=folder(spec.cwd))


def _within(app: App) -> bool:
    """Return whether all that an app is imported from lies in its folder."""
    return _imported_from(app).is_relative_to(os.path.realpath(app.cwd))


def _imported_from(app: App) -> Path:
    return Path(os.path.realpath(os.path.join(app.cwd, app.source)))


def refuse_twice(specs: Sequence[AppSpec], apps: Sequence[App]) -> None:
    """Refuse apps that are the same, however they are named. Raises SameAppError."""
    seen: list[App] = []
    for spec, app in zip(specs, apps, strict=True):
        one = replace(app, cwd=os.path.realpath(app.cwd), source=str(_imported_from(app)))
        if one in seen:
            raise SameAppError(specs[seen.index(one)].app, spec.app)
        seen.append(one)


def _folder(field: _Field, out: Path | None) -> Path:
    """Return where it goes; one that was interrupted in its look has no results beside it yet."""
    name = lay_out(field.apps, field.spec.terms, field.lab).study.name
    return race.folder(name, out, field.spec.resume, holds=f"**/{store.NAME}")


def _race(field: _Field, looks: Mapping[str, Look]) -> race.Race:
    comparison = lay_out(field.apps, field.spec.terms, field.lab, looks)
    return race.Race(
        comparison.study,
        comparison.matrix,
        field.lab,
        field.version,
        field.spec.resume,
        wait=field.spec.wait or bool(looks),  # what waited for the look to end may be measuring now
        must_answer=True,
        elsewhere=field.elsewhere,
    )


# --- The look: a short closed loop of everybody, from which the rate of the open loop follows. Latencies compare at the
# same rate only. A rate that is given beforehand is either so low that every server looks alike, or so high that some
# measure nothing but their own queue. The rate is 70 % of what the slowest answered of those that reach half of the
# best:
#
# - who reaches less than half of the best is out of the question for throughput, and would pull the rate down to where
#   nobody has a queue;
# - at 70 % of its capacity a server has a queue that shows (for Poisson arrivals and constant service times the mean
#   wait is 0.7 ÷ (2 · 0.3) = 1.2 service times; Kleinrock, «Queueing Systems» I, 1975, M/D/1), and a look that is 10 or
#   20 % off still leaves it able to keep up;
# - the plan of the race, all blocks of it, has this one rate, so blocks stay comparable and a server starts once in
#   each.
#
# Whoever cannot carry it is loaded at it all the same: that it falls behind is its result.

IN_QUESTION = 0.5
"""Share of the best contestant's throughput from which on a contestant sets the rate."""
UTILISATION = 0.7
"""Share of the slowest contestant's throughput that becomes the rate."""
RULE = "70 % of what the slowest answers of those that reach half of the best"


def look_at(answered_rps: Mapping[str, float], seconds: float) -> Look:
    """Return what a look found, by label; without a rate where nobody gave a right answer."""
    answering = {label: rps for label, rps in answered_rps.items() if rps > 0}
    if not answering:
        return Look(seconds, {})
    best = max(answering.values())
    in_question = {label: rps for label, rps in answering.items() if rps >= IN_QUESTION * best}
    slowest = min(in_question, key=lambda label: (in_question[label], label))
    return Look(seconds, answering, two_digits(UTILISATION * in_question[slowest]), slowest)


def leader(look: Look) -> str:
    """Return the label of who answered most, or nothing."""
    return max(look.answered_rps, key=lambda label: (look.answered_rps[label], label), default="")


def two_digits(rate: float) -> float:
    """Return a rate cut to two digits: 812.3 to 810.0; more would claim a precision that a look does not have."""
    step = 10.0 ** (math.floor(math.log10(rate)) - 1)
    return round(math.floor(rate / step + 1e-9) * step, 9)


def _look_at_apps(field: _Field, where: Path, follower: Events) -> Mapping[str, Look]:
    """Return what the look at each app found, by question; measure it unless this run has it. Raises as `compare`."""
    resumed, found = field.spec.resume, where / LOOK / store.NAME
    begun = _begun_study(where) if resumed else None
    if begun is not None or (resumed and not found.exists()):
        return _looks_of(begun)
    if not resumed and (where / store.NAME).exists():
        raise ResultsExistError(str(where / store.NAME))
    looking = _look(field, resume=resumed)
    try:
        results = race.aside(looking, where / LOOK, _Looking(follower, looking.called))
    except (AppAnswersWrongError, AppNotServedError):
        with suppress(OSError):  # nothing was measured; what else is in it is somebody's
            where.rmdir()
        raise
    looks = {}
    for question in looking.study.questions:
        answered = {
            trial.trial.contestant.label: trial.load.throughput_rps
            for trial in results.trials
            if isinstance(trial, Measurement) and trial.trial.question == question.name
        }
        looks[question.name] = found_look = look_at(answered, question.loads[0].duration_s)
        if field.spec.terms.rate is None:
            follower.said(f"{question.name}: {_look_sentence(found_look, looking.called)}")
    return looks


def _look_sentence(found: Look, called: Mapping[str, str]) -> str:
    if found.rate is None:
        return f"nobody answered within {quantity.span(found.seconds)}, so latency is not compared: give a --rate"
    return (
        f"latency is compared at {quantity.rate(found.rate)} for all: {RULE}, here "
        f"{called[found.slowest]} with {quantity.rate(found.answered_rps[found.slowest])}"
    )


def _look(field: _Field, resume: bool) -> race.Race:
    terms = field.spec.terms
    closed = Load(Closed(terms.connections), min(LOOK_S, terms.seconds), LOOK_WARMUP_S)
    whole = lay_out(field.apps, terms, field.lab).study
    study = replace(
        whole,
        name=f"{whole.name}-look",
        questions=tuple(replace(question, loads=(closed,)) for question in whole.questions),
        blocks=1,
        until_settled=False,
        budget_s=None,
        worker_counts=(),  # nothing is recommended yet
    )
    laid = matrix.lay_out(study, field.lab.stacks)
    return race.Race(
        study,
        laid,
        field.lab,
        field.version,
        resume,
        wait=field.spec.wait,
        must_answer=True,
        partial=True,
        elsewhere=field.elsewhere,
    )


def _begun_study(where: Path) -> Study | None:
    """Return the study that results were begun with; None: there are none, or not a whole header yet."""
    try:
        return store.read_header(where).study
    except ResultsError:
        return None


def _looks_of(begun: Study | None) -> Mapping[str, Look]:
    return (
        {question.name: question.look for question in begun.questions if question.look is not None}
        if begun
        else {}
    )


class _Looking(Events):
    """Says a line for each contestant that was looked at; nothing of it is ranked."""

    def __init__(self, follower: Events, called: Mapping[str, str]) -> None:
        self._follower, self._called = follower, called

    def preparing(self, text: str) -> None:
        """Hand it on."""
        self._follower.preparing(text)

    def finished(self, result: Result) -> None:
        """Say what a contestant answered."""
        label = result.trial.contestant.label
        came = result.reason if isinstance(result, Failed) else f"{quantity.rate(result.load.throughput_rps)}"
        self._follower.preparing(f"look at {self._called.get(label, label)}: {came}")


@dataclass(frozen=True)
class Comparison:
    """A study of apps, laid out."""

    study: Study
    matrix: Matrix

    def contestants(self, app: App) -> tuple[Contestant, ...]:
        """Return who races with an app."""
        first = [session.trials[0] for session in self.matrix.sessions if session.trials[0].block == 0]
        labels = {trial.contestant.label for trial in first if trial.app == app}
        return tuple(one for one in self.study.contestants if one.label in labels)


def lay_out(
    apps: Sequence[App], terms: Terms, lab: Lab, looks: Mapping[str, Look] = MappingProxyType({})
) -> Comparison:
    """Return the study of apps: one question each, and every stack that can serve it.

    `looks` are what was measured before, by question: without a rate in `terms` the open loop has that of the look.
    Raises UnknownNameError or NoStackFitsError.
    """
    cpus = terms.limits.for_cpus(len(seat(terms.limits, lab).placement.server_cpus))
    by_app = [
        tuple(
            contestant(lab.stacks[name], cpus, terms.workers) for name in stacks_for(app, lab, terms.stacks)
        )
        for app in apps
    ]
    called = names_of(apps)
    of_apps = tuple(
        _question(app, name, terms, tuple(one.label for one in chosen), looks.get(name))
        for app, name, chosen in zip(apps, called, by_app, strict=True)
    )
    questions = (
        *of_apps,
        *(
            layer
            for question, chosen in zip(of_apps, by_app, strict=True)
            for layer in _layers(question, chosen, terms, lab)
        ),
    )
    every = {one.label: one for chosen in by_app for one in chosen}
    names = " and ".join(question.name for question in of_apps)
    study = Study(
        name=f"compare-{'-'.join(name.partition(':')[0] for name in called)}",
        title=f"What to serve {names} on",
        questions=questions,
        contestants=tuple(every.values()),
        blocks=BLOCKS if terms.blocks is None else terms.blocks,
        until_settled=terms.blocks is None,
        budget_s=terms.budget_s,
        seed=terms.seed,
        limits=terms.limits,
        worker_counts=workers.counts(cpus),
    )
    return Comparison(study, matrix.lay_out(study, lab.stacks))


def _question(app: App, name: str, terms: Terms, contestants: tuple[str, ...], look: Look | None) -> Question:
    if look is not None and terms.rate is not None:
        look = replace(look, rate=None, slowest="")
    rate = look.rate if look is not None and look.rate is not None else terms.rate
    loads = replace(terms, rate=rate).loads
    return Question(name, app.recipe, loads, link=terms.link, contestants=contestants, app=app, look=look)


# --- Baselines: what a request costs on the stack that leads in the look, with the app and without.

BASELINE_S = 2.0
"""Of each span: what is compared differs by much more than the noise of so short a one."""
BASELINE_WARMUP_S = 0.5
BASELINE_BOOT_S = 1.0
"""For an estimate: of the start of its server."""
LOW = 0.1
"""Share of what the leader answered that is the low rate: a request seldom finds another one there."""
LOW_MOST = 100.0
"""Requests a second; a higher rate would tell no more of a median."""
LOW_REQUESTS = 20
LONGEST_S = 10.0


def _layers(question: Question, contestants: Sequence[Contestant], terms: Terms, lab: Lab) -> list[Question]:
    """Return the baselines of a question; none before its look, nor of an app that nothing can stand in for."""
    app, label = question.app, leader(question.look) if question.look is not None else ""
    first = next((one for one in contestants if one.label == label), None)
    if app is None or first is None or question.look is None:
        return []
    interface = lab.stacks[first.stack].interface
    if interface not in empty.BARE:
        return []
    loads = _baseline_loads(question.look.answered_rps[label], terms)
    route = empty.FRAMEWORKS.get(app.framework, {}).get(interface)
    layers: list[tuple[Baseline, App]] = [
        (Baseline(question.name, "app"), app),
        *(
            [(Baseline(question.name, "framework", app.framework), _nothing(app, interface, route))]
            if route
            else []
        ),
        (Baseline(question.name, "server"), _nothing(app, interface, interface)),
    ]
    return [
        replace(
            question,
            name=f"{question.name}~{baseline.framework or baseline.layer}",
            loads=loads,
            contestants=(label,),
            app=served,
            look=None,
            baseline=baseline,
            profile=as_profile(question.loads[-1]) if baseline.layer == "app" else None,
        )
        for baseline, served in layers
    ]


def _baseline_loads(leading_rps: float, terms: Terms) -> tuple[Load, ...]:
    seconds = min(BASELINE_S, terms.seconds)
    closed = Load(Closed(terms.connections), seconds, BASELINE_WARMUP_S)
    rate = two_digits(min(LOW * leading_rps, LOW_MOST))
    # At constant gaps: of independent users one in ten would find another one there.
    low = Load(Open(rate, "constant"), max(seconds, LOW_REQUESTS / rate), BASELINE_WARMUP_S)
    return (closed, low) if low.duration_s <= LONGEST_S else (closed,)


def _nothing(app: App, interface: str, name: str) -> App:
    """Return what stands in for an app on a server of that interface: the same environment, and none of its code."""
    return replace(
        app,
        interface=interface,
        requests=(Request("GET /"),),
        form="application",
        served={interface: f"{empty.MODULE}:{name}"},
        what="an empty handler",
        third_parties=(),
        proto="",
        headers=(),
    )


def contestant(stack: Stack, cpus: int, workers: int | None = None) -> Contestant:
    """Return a stack as it is raced where nothing is tuned: its defaults, with a worker for each CPU unless given.

    Raises UnknownKnobError for workers of a stack that has none, BadOptionError.
    """
    if workers is not None:
        return Contestant(stack.name, read(stack, {"workers": workers}))
    knobs: Mapping[str, KnobValue] = {"workers": cpus} if "workers" in stack.knobs and cpus > 1 else {}
    return Contestant(stack.name, knobs)


def name_of(app: App) -> str:
    """Return what the question of an app is called: a part of keys, in which a slash divides."""
    return app.path.replace("/", "-") + (f"@{app.revision}" if app.revision else "")


def names_of(apps: Sequence[App]) -> tuple[str, ...]:
    """Return the name of each app's question; those of one name have a folder before it in which they differ."""
    short = [name_of(app) for app in apps]
    found: list[str] = []
    for app, name in zip(apps, short, strict=True):
        alike = [other for other, its in zip(apps, short, strict=True) if its == name]
        wanted = name if len(alike) == 1 else "-".join((*_apart(app, alike), name))
        numbers = range(2, len(apps) + 2)
        every = (wanted, *(f"{wanted}-{number}" for number in numbers))
        found.append(next(one for one in every if one not in found))
    return tuple(found)


def _apart(app: App, alike: Sequence[App]) -> tuple[str, ...]:
    """Return the fewest folders of an app's path that no other has at that place, counted from its end."""
    own = _folders(app)
    others = [folders for other in alike if (folders := _folders(other)) != own]
    if not others:
        return ()
    same = 0
    while same < len(own) and all(folders[same : same + 1] == own[same : same + 1] for folders in others):
        same += 1
    for end in range(same + 1, len(own) + 1):
        if all(folders[same:end] != own[same:end] for folders in others):
            return own[same:end][::-1]
    return own[same:][::-1]


def _folders(app: App) -> tuple[str, ...]:
    """Return the folders above an app, the nearest first."""
    return _imported_from(app).parts[:0:-1]


def unread(comparison: Comparison, lab: Lab) -> tuple[str, ...]:
    """Return what the apps' stacks would read by themselves and do not while they are compared, as sentences."""
    apps = [question.app for question in comparison.study.answered if question.app is not None]
    found = (unread_settings(app, _stacks(comparison, app, lab)) for app in apps)
    return tuple(dict.fromkeys(sentence for sentence in found if sentence))


def _stacks(comparison: Comparison, app: App, lab: Lab) -> list[Stack]:
    return [lab.stacks[one.stack] for one in comparison.contestants(app)]

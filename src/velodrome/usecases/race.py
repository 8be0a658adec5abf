"""A race of a study: from its name, file or value to results on the disk.

    plan = plan_race(RaceSpec("first-lap", only=("hello/*",)), trust)
    raced = race(plan, Path("runs/mine"), follower)
    judge.judge([raced.folder], raced.race.lab.stacks, finished=raced.ending)

`compare` and `diff` race studies that they lay out themselves: they make a `Race` and have it `run`.
"""

import base64
import os
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.judge import settling
from velodrome.judge.learning import learn
from velodrome.model import secrets
from velodrome.model.claim import Experiment, Finding
from velodrome.model.errors import (
    AgentsGoneError,
    BadOptionError,
    ResultsError,
    ResultsExistError,
)
from velodrome.model.load import Link
from velodrome.model.measurement import Failed, Measurement, Placement
from velodrome.model.profile import Profile
from velodrome.model.results import Results
from velodrome.model.study import Study
from velodrome.model.trial import Trial
from velodrome.plan import matrix
from velodrome.plan.matrix import Matrix, with_profiles
from velodrome.run.account import giving
from velodrome.run.drivers import driver
from velodrome.run.environments import guest_tree
from velodrome.run.lab import Lab, OnHosts
from velodrome.run.machine import known_noise
from velodrome.run.profiling import take
from velodrome.run.racing import race as racing
from velodrome.run.racing import store
from velodrome.run.racing.plan import RunPlan, seat
from velodrome.run.racing.race import Elsewhere
from velodrome.usecases import workers
from velodrome.usecases.events import Events
from velodrome.usecases.studies import Trust, load_study
from velodrome.usecases.terms import refuse_count

if TYPE_CHECKING:
    from velodrome.run.cluster.blocks import Needs
    from velodrome.run.cluster.talking import Address, Security

    NeedsOf = Callable[[Lab, Study], Needs]

HostsOf = TypeVar("HostsOf")

RUNS = Path("runs")


BY_ROLES = OnHosts()


@dataclass(frozen=True)
class RaceSpec:
    """Which study is raced, and what its user sets over it. Raises UsageError for what makes no sense."""

    study: str | Study
    """One that ships, a TOML file, or a value."""
    only: tuple[str, ...] = ()
    """Patterns of `question/contestant`; empty: all."""
    quick: bool = False
    blocks: int | None = None
    """Repeats, instead of the study's: exactly so many of each cell."""
    seed: int | None = None
    python: str = ""
    """Interpreter of the servers: a version or a path; empty: the one velodrome runs on."""
    profile: bool = False
    """Profile every cell, also where the study does not ask for it."""
    link: Link | None = None
    """For questions without one of their own."""
    databases: Mapping[str, str] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    """Paths of stacks of the user's own."""
    resume: bool = False
    redo: bool = False
    """Resume, and measure again what other programs disturbed."""
    wait: bool = False
    """Wait while another velodrome measures."""
    budget_s: float | None = None
    """How long it may take, instead of what the study says."""
    agents: str = ""
    """Address of a coordinator, or a number of agents of this machine, that run its blocks; empty: nobody else."""
    keys: Path | None = None
    """Folder of the certificates for that; None: the usual one."""
    user: str = ""
    """Whom servers run as on the agents' hosts, where these are root."""
    on: OnHosts = field(default_factory=OnHosts)
    """Which of the agents serve and which load."""

    def __post_init__(self) -> None:
        refuse_count("blocks", self.blocks)


@dataclass(frozen=True)
class Race:
    """A study that is laid out, and the lab that it is raced in."""

    study: Study
    matrix: Matrix
    lab: Lab
    python: str = ""
    resume: bool = False
    redo: bool = False
    wait: bool = False
    must_answer: bool = False
    """Whether a race ends early where one of its apps answers on no stack."""
    partial: bool = False
    """Whether a race that is gone on with is only continued in part: it says nothing of the rest then."""
    elsewhere: Elsewhere | None = None
    """Hosts that run its blocks; None: this machine does."""

    @property
    def trials(self) -> int:
        """How many there are."""
        return sum(len(session.trials) for session in self.matrix.sessions)

    @property
    def seconds(self) -> float:
        """About how long it takes, with the check of one leader for each question."""
        checks = len(self.study.answered) * workers.seconds(self.study, self.lab.stacks)
        return matrix.race_s(self.matrix.sessions, self.lab.stacks) + checks

    @property
    def placement(self) -> Placement:
        """Which CPUs the server, the load generator and third parties get."""
        return seat(self.study.limits, self.lab).placement

    @property
    def version(self) -> str:
        """Of the interpreter that the servers run on."""
        return self.python or platform.python_version()

    @property
    def called(self) -> dict[str, str]:
        """How contestants read, by label."""
        return {
            contestant.label: contestant.called(self.lab.stacks[contestant.stack])
            for contestant in self.study.contestants
        }


@dataclass(frozen=True)
class Raced:
    """A race that has ended."""

    race: Race
    folder: Path
    how: str
    """In a sentence; empty: nothing can be said of the whole."""

    @property
    def ending(self) -> str:
        """How it ended, where the trials do not show that: who judges them again sees that all were run."""
        return "" if self.how == racing.COMPLETE else self.how


def choose(study: Study, spec: RaceSpec) -> Study:
    """Return the study with what its user sets over it."""
    study = with_profiles(study) if spec.profile else study
    return replace(
        study,
        questions=tuple(
            question if question.link else question.over(spec.link) for question in study.questions
        ),
        seed=study.seed if spec.seed is None else spec.seed,
        blocks=study.blocks if spec.blocks is None else spec.blocks,
        until_settled=study.until_settled and spec.blocks is None,
        budget_s=study.budget_s if spec.budget_s is None else spec.budget_s,
    )


def plan_race(spec: RaceSpec, trust: Trust) -> Race:
    """Lay a study out once its user allows all that it names and that is to be run.

    Raises UnknownNameError, StudyFileError, NothingSelectedError, UntrustedError.
    """
    stacks = catalog.stacks(spec.extra)
    named = spec.study if isinstance(spec.study, str) else ""
    study = (
        load_study(spec.study, quick=spec.quick, stacks=stacks) if isinstance(spec.study, str) else spec.study
    )
    study = choose(study, spec)
    laid_out = matrix.lay_out(study, stacks, spec.only, spec.python)
    if named:
        trust.see_study(named, matrix.narrow(study, laid_out))
    lab = Lab(
        stacks,
        guest_tree.export(spec.extra),
        driver.choose_driver,
        databases=spec.databases,
        extra=spec.extra,
        profile=take,
    )
    partial = bool(spec.only) and spec.resume
    return Race(study, laid_out, lab, spec.python, spec.resume, spec.redo, spec.wait, partial=partial)


def race(spec: RaceSpec, trust: Trust, out: Path | None, follower: Events) -> Raced:
    """Race a study into `out`, or a folder of `runs/`. Raises what `plan_race`, `hosts_of` and `run` do."""
    found, where = _place(spec, trust, out)
    with hosts_of(spec.agents, spec.keys, on=spec.on, user=spec.user) as elsewhere:
        return run(place_on(found, elsewhere), where, follower)


def place_on(race: Race, elsewhere: Elsewhere | None) -> Race:
    """Return a race with the hosts that run it, planned by the CPUs that servers get there."""
    return race if elsewhere is None else replace(race, elsewhere=elsewhere, lab=elsewhere.lab(race.lab))


@contextmanager
def hosts_of(
    agents: str,
    keys: Path | None,
    *,
    on: OnHosts = BY_ROLES,
    user: str = "",
    cwd: str = "",
    allow_sdist: bool = False,
    send: str = "",
) -> Iterator[Elsewhere | None]:
    """Yield the agents that run a race, block by block or each with a part of its own; None: none are named.

    `send` is the folder that they get as `cwd`; empty: they have that.
    Raises as `reach_hosts` does, and for what of `on` cannot be UsageError, PlacingError, NoAgentsError,
    AgentsDifferError or AgentRefusedError.
    """
    on.refuse_without(agents)
    if not agents:
        yield None
        return
    from velodrome.run.cluster import handing  # noqa: PLC0415 - brings Dask

    opened = partial(handing.hosts, wanted=on)
    with reach_hosts(opened, agents, keys, user=user, cwd=cwd, allow_sdist=allow_sdist, send=send) as found:
        found.look()
        yield found


@contextmanager
def reach_hosts(
    opened: "Callable[[Address, Security, NeedsOf], AbstractContextManager[HostsOf]]",
    agents: str,
    keys: Path | None,
    *,
    user: str,
    cwd: str,
    allow_sdist: bool,
    send: str = "",
) -> "Iterator[HostsOf]":
    """Yield the hosts that `opened` makes of a coordinator's agents.

    Raises ClusterAddressError, ClusterKeysError, ClusterMissingError, CoordinatorError.
    """
    from velodrome.run.cluster import sending, talking  # noqa: PLC0415 - brings Dask
    from velodrome.run.cluster.blocks import Needs, print_of  # noqa: PLC0415
    from velodrome.usecases import cluster_load  # noqa: PLC0415

    files = base64.b64encode(sending.pack(send)).decode() if send else ""

    def needs(lab: Lab, study: Study) -> Needs:
        paths = [str(Path(one).resolve()) for one in lab.extra]
        return Needs(
            user,
            cwd,
            allow_sdist,
            {path: print_of(path) for path in paths},
            lab.databases,
            lab.variables,
            lab.requests,
            lab.third_parties,
            lab.start_seconds,
            secrets.marked_names(),
            tuple(question.app for question in study.answered if question.app is not None),
            files,
        )

    with cluster_load.reach(agents, keys) as (text, folder):
        address = talking.Address.read(text)
        with opened(address, talking.security(address.scheme, folder), needs) as found:
            yield found


def dry_run(spec: RaceSpec, trust: Trust, out: Path | None) -> RunPlan:
    """Return what `race` would start. Raises what `plan_race`, `seen_from_here` and `plan` do."""
    found, where = _place(spec, trust, out)
    with seen_from_here(spec.agents, spec.keys, spec.on) as (elsewhere, who):
        return replace(plan(place_on(found, elsewhere), where), hosts=who)


@contextmanager
def seen_from_here(
    agents: str, keys: Path | None, on: OnHosts
) -> Iterator[tuple[Elsewhere | None, tuple[str, ...]]]:
    """Yield the agents of a race that is only planned, and sentences on who does what; none of them is started.

    Raises as `hosts_of`, but for agents of this machine, which would have to be started first, only where none are to.
    """
    from velodrome.run.cluster.address import count_local  # noqa: PLC0415 - most races have no agents

    if count_local(agents) is not None:
        on.refuse_without(agents)
        yield None, (f"{agents} agents of this machine are started first; who does what follows from that",)
        return
    with hosts_of(agents, keys, on=on) as elsewhere:
        yield elsewhere, tuple(elsewhere.who) if elsewhere is not None else ()


def _place(spec: RaceSpec, trust: Trust, out: Path | None) -> tuple[Race, Path]:
    found = plan_race(spec, trust)
    form = "" if found.study.form == "full" else f"-{found.study.form}"
    where = folder(f"{found.study.name}{form}", out, spec.resume)
    if spec.only and not (spec.resume and _was_begun_as(found.study, where)):
        found = replace(found, study=matrix.narrow(found.study, found.matrix))
    return found, where


def run(race: Race, where: Path, follower: Events) -> Raced:
    """Race what is laid out into a folder. Raises what `driven` does."""
    with giving(where):
        follower.begins(race)
        warnings: list[str] = []
        ended = driven(_sessions(race, where), race.lab, follower, warnings.append)
        if not ended.done:
            _refuse_gone(race, ended)
        if not race.resume and race.elsewhere is None:  # whose first blocks may have taught already
            _learn(where, race.lab.stacks)
        raced = Raced(race, where, "" if race.partial else ended.how)
        follower.ended(raced)
        for sentence in warnings:  # where nothing is drawn over it any more
            follower.said(sentence)
        _refuse_gone(race, ended)
    return raced


def driven(
    race: racing.Race, lab: Lab, follower: Events, warn: Callable[[str], None] | None = None
) -> racing.Finished:
    """Take all steps of a race and show them; then check the leaders, where its study says so. Raises what
    `racing.start` does.
    """
    stacks = lab.stacks
    with racing.start(
        race, lab, follower, lambda session: matrix.session_s(session, stacks), warn
    ) as running:
        for step in running.steps():
            _show(step, follower)
        if race.study.worker_counts and not running.gone:
            workers.check_leaders(
                race.study,
                running.results,
                running.before,
                stacks,
                tell=follower.preparing,
                serve=running.serve,
            )
        for step in running.profiles():
            _show(step, follower)
    return running.finished


def _show(step: racing.Step, follower: Events) -> None:
    match step:
        case racing.Begins(Trial() as trial):
            follower.profile_started(trial)
        case racing.Begins(Experiment() as experiment):
            follower.experiment_started(experiment)
        case Finding():
            follower.found(step)
        case Profile():
            follower.profiled(step)
        case Measurement() | Failed():
            follower.finished(step)


def _refuse_gone(race: Race, ended: racing.Finished) -> None:
    """Raise AgentsGoneError where a race ended because no agent was left."""
    if race.elsewhere is not None and ended.how == racing.AGENTS_GONE:
        raise AgentsGoneError(str(ended.path), ended.done, ended.total, race.elsewhere.gone)


def _learn(where: Path, stacks: Mapping[str, Stack]) -> None:
    """Keep what the blocks of a race teach of the noise of this machine."""
    found = store.read(where)
    known_noise.keep(found.header.machine, learn(found, stacks))


def aside(race: Race, where: Path, follower: Events) -> Results:
    """Race into a folder what no verdict is given of, and return all of it. Raises what `driven` does."""
    with giving(where):
        # What an app answers wrongly is reported of the race that comes after it.
        ended = driven(_sessions(race, where), race.lab, follower, lambda _: None)
        _refuse_gone(race, ended)
        return store.read(where)


def plan(race: Race, where: Path) -> RunPlan:
    """Return what `run` would start, where and for how long; starts nothing and writes nothing. Raises LimitError.

    Of a race that is resumed, only what `where` does not hold yet. Raises ResultsError if that cannot be read.
    """
    before = store.read(where) if race.resume else None
    found = racing.plan_of_race(
        _sessions(race, where), race.lab, lambda session: matrix.session_s(session, race.lab.stacks), before
    )
    settles = settling.STEPS if race.study.until_settled else ()
    return replace(found, adaptive=(*found.adaptive, *settles, *workers.steps(race.study, race.lab.stacks)))


def _sessions(race: Race, where: Path) -> racing.Race:
    return racing.Race(
        race.study,
        race.matrix.sessions,
        where,
        race.resume,
        race.redo,
        None if race.wait else 0.0,
        race.matrix.experiments,
        race.matrix.profiles,
        _settling(race) if race.study.until_settled else None,
        race.must_answer,
        race.elsewhere,
    )


def _settling(race: Race) -> racing.Settling:
    """Return how the blocks of a race are spent where the judge finds it open."""
    study, stacks = race.study, race.lab.stacks
    return racing.Settling(
        settling.MOST_BLOCKS,
        settling.LOOKS,
        partial(settling.still_open, study, stacks),
        partial(matrix.beyond, study, stacks, race.matrix),
    )


def folder(name: str, out: Path | None, resume: bool, holds: str = store.NAME) -> Path:
    """Return where results go: `out`, or `runs/<date>-<name>`, numbered if there is one already.

    To resume without `out` is to go on with the newest run of that name that `holds` such a file.
    """
    plain = name.replace("/", "-")
    if out is not None:
        return out
    if resume:
        dated = re.compile(rf"\d{{4}}-\d\d-\d\d-{re.escape(plain)}(-\d+)?")
        found = [path for path in RUNS.glob(f"*/{holds}") if dated.fullmatch(path.relative_to(RUNS).parts[0])]
        if not found:
            raise BadOptionError(
                "--resume", name, "there is no earlier run of it in runs/; name one with --out"
            )
        newest = max(found, key=lambda path: path.stat().st_mtime)
        return RUNS / newest.relative_to(RUNS).parts[0]
    first = RUNS / f"{date.today().isoformat()}-{plain}"
    numbered = first
    number = 2
    while numbered.exists():
        numbered = first.with_name(f"{first.name}-{number}")
        number += 1
    return numbered


def refuse_folder(option: str, where: Path | None, resume: bool) -> None:
    """Raise BadOptionError or ResultsExistError for a folder in which a run cannot begin, or on resume go on.

    It is asked for before an app is imported or anything is started; None: the folder was not named.
    """
    if where is None:
        return
    if resume:
        if not any(any(where.glob(f"{above}{store.NAME}")) for above in ("", "*/", "*/*/")):
            why = f"there is no {store.NAME} of a run to go on with; name its folder, or begin anew without --resume"
            raise BadOptionError(option, str(where), why)
        return
    if (where / store.NAME).exists():
        raise ResultsExistError(str(where / store.NAME))
    there = next(path for path in (where, *where.absolute().parents) if path.exists())
    if not there.is_dir():
        raise BadOptionError(option, str(where), f"{there} is a file; name a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise BadOptionError(option, str(where), f"nothing may be written in {there}; name another folder")


def _was_begun_as(study: Study, where: Path) -> bool:
    """Return whether a run was begun as the whole of a study: `only` then chooses what of it goes on."""
    try:
        begun = store.read_header(where).study
    except ResultsError:
        return False  # the resumed race raises it
    return begun.questions == study.questions and begun.contestants == study.contestants

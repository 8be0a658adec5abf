"""The run plan: what is started, where, within which limits, over which link, in which order, and for how long.

plan = plan_of("study hello", sessions, lab, estimate_s)      # starts nothing; raises LimitError
print("\n".join(plan.lines()))
json.dumps(plan.document())

It is worked out once, before anything is started, and does not change: `opening` makes its environments, `race` runs
its sessions in order, and `session.boot` starts a server where and as the plan says.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from velodrome.guest import catalog
from velodrome.guest.recipe import Query, Recipe, Write
from velodrome.model import quantity
from velodrome.model.app import App
from velodrome.model.claim import Experiment
from velodrome.model.load import Limits
from velodrome.model.measurement import Placement
from velodrome.model.trial import Session, Trial
from velodrome.run.account import acting
from velodrome.run.experiments.experiment import settings_of, stacks_of
from velodrome.run.lab import Lab
from velodrome.run.machine import facts, limits, measuring_lock
from velodrome.run.machine.limits import Bounds

SCHEMA = "velodrome/plan/1"
THIRD_PARTY = "simulated third party"
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Seat:
    """Where a server, its generator and its third party run, and how the server is held to its limits."""

    limits: Limits
    placement: Placement
    bounds: Bounds


def seat(limited: Limits, lab: Lab) -> Seat:
    """Return the seat of a server with these limits on the CPUs of a lab. Raises LimitError where there is none."""
    placed = (
        facts.place(lab.cpus, limited, facts.cores(lab.cpus))
        if lab.apart is None
        else facts.place_apart(lab.cpus, limited, lab.apart.load_cpus)
    )
    held = limits.bounds(limited, placed.server_cpus, lab.where)
    notes = placed.notes + held.notes
    return Seat(
        limited,
        replace(placed, enforced_by=held.enforced_by, notes=notes),
        held,
    )


@dataclass(frozen=True)
class PlannedEnvironment:
    """What servers run in, made before anything is measured."""

    stack: str
    python: str
    """Its interpreter; empty: velodrome's own."""
    packages: Pairs = ()
    """Versions instead of the pinned."""
    databases: Pairs = ()
    """Databases with their drivers, whose clients it brings."""
    label: str = field(default="", compare=False)
    recipe: Recipe | None = field(default=None, compare=False)
    app: App | None = field(default=None, compare=False)
    """The app whose environment the stack lies over; None: an environment of velodrome's own."""
    over: bool = False
    """Whether it lies over an app's."""

    @classmethod
    def of(cls, trial: Trial, lab: Lab) -> "PlannedEnvironment | None":
        """Return what a trial's server runs in; None: it cannot be served, which is reported in its turn."""
        contestant, app = trial.contestant, trial.app
        stack = lab.stacks.get(contestant.stack)
        if stack is None:
            return None
        if app is not None:
            return cls(stack.name, app.python, label=f"{stack.name} beside {app.path}", app=app, over=True)
        if catalog.serves(stack, trial.recipe) is not None:
            return None
        packages = tuple(sorted(contestant.packages.items()))
        databases = databases_of(trial.recipe)
        return cls(stack.name, trial.interpreter, packages, databases, contestant.label, trial.recipe)

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "stack": self.stack,
            "python": self.python or None,
            "packages": dict(self.packages),
            "databases": [name for name, _ in self.databases],
            "app": self.app.path if self.app else None,
        }


def databases_of(served: Recipe | None) -> Pairs:
    """Return the databases that a recipe queries, each with its driver."""
    steps = served.every_step if served else ()
    return tuple(sorted({(step.database, step.driver) for step in steps if isinstance(step, Query | Write)}))


@dataclass(frozen=True)
class PlannedSession:
    """One server from its start to its stop, with the loads it carries in order."""

    trials: tuple[Trial, ...]
    seat: Seat
    seconds: float
    """How long it should take, all included."""

    @property
    def block(self) -> int:
        """Number of the repeat it belongs to, from 0."""
        return self.trials[0].block

    @property
    def cell(self) -> str:
        """`question/contestant`."""
        return self.trials[0].cell

    @property
    def services(self) -> tuple[str, ...]:
        """What is started beside the server: databases by name, simulated third parties by what names them."""
        recipe, app = self.trials[0].recipe, self.trials[0].app
        thirds = [third_party.variable for third_party in app.third_parties] if app else []
        return (*recipe.services, *([THIRD_PARTY] if recipe.calls_upstream else ()), *thirds)

    def where(self) -> str:
        """Return in words on which CPUs it runs, within which limits, over which link."""
        placed, link = self.seat.placement, self.trials[0].link
        words = [
            f"server on CPU {_cpus(placed.server_cpus)}",
            "load from other hosts" if placed.apart else f"load on CPU {_cpus(placed.load_cpus)}",
            *([f"services on CPU {_cpus(placed.upstream_cpus)}"] if self.services else ()),
        ]
        if self.seat.limits.memory_bytes is not None:
            words.append(f"memory {quantity.memory(self.seat.limits.memory_bytes)}")
        words += [f"held by {placed.enforced_by}", f"link {link.label}" if link else "loopback"]
        return ", ".join(words)

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        first, placed, held = self.trials[0], self.seat.placement, self.seat.limits
        return {
            "block": self.block,
            "question": first.question,
            "contestant": first.contestant.label,
            "stack": first.contestant.stack,
            "app": first.app.path if first.app else None,
            "python": (first.app.python if first.app else first.interpreter) or None,
            "loads": [_load(trial) for trial in self.trials],
            "cpus": {
                "server": list(placed.server_cpus),
                "load": list(placed.load_cpus),
                "services": list(placed.upstream_cpus),
                "shared": placed.shared,
            },
            "limits": {
                "cpus": held.cpus,
                "memory_bytes": held.memory_bytes,
                "enforced_by": placed.enforced_by,
            },
            "link": first.link.label if first.link else None,
            "services": list(self.services),
            "seconds": round(self.seconds, 2),
        }


def _load(trial: Trial) -> dict[str, Any]:
    load = trial.load
    return {
        "key": trial.key,
        "load": load.label,
        "driver": load.driver,
        "warmup_s": load.warmup_s,
        "duration_s": load.duration_s,
        "requests": load.requests,
    }


@dataclass(frozen=True)
class RunPlan:
    """Everything that will be started, in order."""

    what: str
    """`study hello`: what others who wait for the machine read."""
    sessions: tuple[PlannedSession, ...]
    environments: tuple[PlannedEnvironment, ...]
    """Made beforehand, two at a time."""
    experiments: tuple[Experiment, ...] = ()
    """Run before the sessions."""
    profiles: tuple[Trial, ...] = ()
    """Taken after the sessions."""
    adaptive: tuple[str, ...] = ()
    """What is measured after the sessions and depends on what they show: a sentence for each step."""
    budget_s: float | None = None
    """No block, or load of a search, begins that would end after it; None: no budget."""
    cpus: tuple[int, ...] = ()
    """Those that velodrome may use."""
    lock: str = ""
    """File that keeps the machine from another velodrome meanwhile."""
    user: str = ""
    """Whom servers run as; empty: as velodrome does."""
    look: tuple[PlannedSession, ...] = ()
    """Run before the others, to find what these are to be."""
    look_finds: tuple[str, ...] = ()
    """What is not known before the look, and how it follows from it."""
    hosts: tuple[str, ...] = ()
    """Sentences on which other hosts do what; empty: this machine does all."""
    look_adds_s: float = 0.0
    """Seconds that it adds to the sessions."""

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All that is measured, in order."""
        return tuple(trial for session in self.sessions for trial in session.trials)

    @property
    def seconds(self) -> float:
        """How long the sessions should take one after the other; environments and experiments not included."""
        return sum(session.seconds for session in (*self.look, *self.sessions)) + self.look_adds_s

    def lines(self) -> list[str]:
        """Return it as text, line by line, for people."""
        blocks = {session.block for session in self.sessions}
        counted = [
            _many(len(self.sessions), "server session"),
            _many(len(self.trials), "load"),
            _many(len(blocks), "block"),
        ]
        first = "first " if self.adaptive else ""
        found = [f"{self.what}: {first}{', '.join(counted)}, about {quantity.duration(self.seconds)}"]
        if self.budget_s is not None:
            found.append(f"budget {quantity.duration(self.budget_s)}: nothing begins that would end after it")
        found += self.hosts
        if not self.hosts:
            found.append(
                f"CPUs {_cpus(self.cpus)}; lock {self.lock}; servers run as {self.user or 'this user'}"
            )
        found += ["", "environments, made first, two at a time:"]
        found += [f"  {_environment(environment)}" for environment in self.environments]
        found += [f"experiment {experiment.name}" for experiment in self.experiments]
        if self.look:
            length = quantity.duration(sum(session.seconds for session in self.look))
            loads = " and ".join(
                dict.fromkeys(_brief(trial) for session in self.look for trial in session.trials)
            )
            found += [
                "",
                f"first a look: {_many(len(self.look), 'server session')} of {loads}, about {length}",
            ]
            found += [f"  it finds {one}" for one in self.look_finds]
        # Where blocks are shared, each host has CPUs of its own.
        known = not self.hosts or any(session.seat.placement.apart for session in self.sessions)
        places = {session.where() for session in self.sessions} if known else set()
        if len(places) == 1:
            found += ["", f"each session: {self.sessions[0].where()}"]
        block = None
        for number, session in enumerate(self.sessions, 1):
            if session.block != block:
                block = session.block
                found += ["", f"block {block + 1}"]
            loads = ", ".join(_brief(trial) for trial in session.trials)
            beside = f", with {', '.join(session.services)}" if session.services else ""
            where = f"; {session.where()}" if len(places) > 1 else ""
            seconds = quantity.duration(session.seconds)
            found.append(f"  {number}. {session.cell}: {loads}{beside}{where}, {seconds}")
        if self.profiles:
            found += ["", f"then {_many(len(self.profiles), 'profile')}:"]
            found += [f"  {trial.cell}: {trial.load.label}" for trial in self.profiles]
        if self.adaptive:
            found += ["", "then, depending on what these show:"]
            found += [f"  {number}. {step}" for number, step in enumerate(self.adaptive, 1)]
        return found

    def document(self) -> dict[str, Any]:
        """Return it as plain data, to be written as JSON."""
        return {
            "schema": SCHEMA,
            "what": self.what,
            "seconds": round(self.seconds, 1),
            "budget_s": self.budget_s,
            "cpus": list(self.cpus),
            "lock": self.lock,
            "user": self.user or None,
            "hosts": list(self.hosts),
            "environments": [environment.document() for environment in self.environments],
            "experiments": [experiment.name for experiment in self.experiments],
            "look": [session.document() for session in self.look],
            "look_finds": list(self.look_finds),
            "sessions": [session.document() for session in self.sessions],
            "profiles": [trial.key for trial in self.profiles],
            "adaptive": list(self.adaptive),
        }


def _brief(trial: Trial) -> str:
    load = trial.load
    length = f"{load.requests:,} requests" if load.requests is not None else f"{load.duration_s:g} s"
    return f"{load.label} ({load.warmup_s:g} s warm-up, {length})"


def _environment(planned: PlannedEnvironment) -> str:
    python = planned.python or "velodrome's own Python"
    packages = "".join(f", {name} {version}" for name, version in planned.packages)
    return f"{planned.label or planned.stack} on {python}{packages}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _cpus(cpus: Sequence[int]) -> str:
    return ", ".join(map(str, cpus))


def rough_s(session: Session) -> float:
    """Return about how long a session takes, where nobody knows better."""
    return 1.5 + sum(trial.load.warmup_s + trial.load.duration_s for trial in session.trials)


def plan_session(session: Session, lab: Lab) -> PlannedSession:
    """Return the plan of one session by itself. Raises LimitError."""
    return PlannedSession(session.trials, seat(session.trials[0].limits, lab), rough_s(session))


def plan_of(
    what: str,
    sessions: Iterable[Session],
    lab: Lab,
    estimate_s: Callable[[Session], float] | None = None,
    *,
    experiments: Sequence[Experiment] = (),
    profiles: Sequence[Trial] = (),
    adaptive: Sequence[str] = (),
    budget_s: float | None = None,
) -> RunPlan:
    """Return the plan of sessions in this order. Starts nothing; raises LimitError for limits that cannot be held.

    `estimate_s` says how many seconds a session should take; `adaptive` is what follows the sessions, as sentences.
    """
    estimate_s = estimate_s or rough_s
    every = tuple(sessions)
    seats = {
        limited: seat(limited, lab)
        for limited in dict.fromkeys(session.trials[0].limits for session in every)
    }
    account = acting()
    return RunPlan(
        what,
        tuple(
            PlannedSession(session.trials, seats[session.trials[0].limits], estimate_s(session))
            for session in every
        ),
        tuple(dict.fromkeys(_environments(every, experiments, profiles, lab))),
        tuple(experiments),
        tuple(profiles),
        tuple(adaptive),
        budget_s,
        lab.cpus,
        str(measuring_lock.lock_file()),
        account.name if account else "",
    )


def _environments(
    sessions: Sequence[Session], experiments: Sequence[Experiment], profiles: Sequence[Trial], lab: Lab
) -> Iterator[PlannedEnvironment]:
    for trial in (*(session.trials[0] for session in sessions), *profiles):
        if (found := PlannedEnvironment.of(trial, lab)) is not None:
            yield found
    for experiment in experiments:
        for name in stacks_of(settings_of(experiment)):
            if name in lab.stacks:
                yield PlannedEnvironment(name, "", label=name)


def seed_of(trial: Trial) -> int:
    """Return the seed of arrivals: the same for all contestants of a block, another in the next block."""
    return zlib.crc32(f"{trial.study}/{trial.question}/{trial.load.label}/{trial.block}".encode()) or 1

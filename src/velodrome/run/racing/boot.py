"""Booting: everything one server needs is started, in order, and it has given a right answer.

    booted = boot(trial, lab, running)

In order: environment, placement, limits, link, companions, third party, port, server, readiness. What cannot be had
is an ImpossibleError, which the heat turns into a `Failed` for each of its trials.
"""

import zlib
from contextlib import ExitStack
from dataclasses import dataclass, replace

from velodrome.guest import catalog
from velodrome.guest.recipe import Body
from velodrome.model.errors import (
    CompanionFailedError,
    CompanionMissingError,
    EnvironmentFailedError,
    LimitError,
    LinkRefusedError,
    VelodromeError,
)
from velodrome.model.measurement import AnswerForm, FailureKind, Placement
from velodrome.model.trial import Trial
from velodrome.run.asking import answer_form
from velodrome.run.clients import acquaintance
from velodrome.run.companions import choosing as companions
from velodrome.run.companions.choosing import Beside
from velodrome.run.companions.companion import Ground
from velodrome.run.drivers.driver import Target
from velodrome.run.environments.environment import Environment
from velodrome.run.lab import Lab
from velodrome.run.link.namespace import entered
from velodrome.run.link.site import Loopback, Site, between
from velodrome.run.machine import limits, placement
from velodrome.run.machine.limits import Bounds
from velodrome.run.servers import ports, readiness
from velodrome.run.servers.readiness import NotReady
from velodrome.run.servers.server import Server, Serving
from velodrome.run.third_party import upstream
from velodrome.run.third_party.upstream import Upstream


@dataclass(frozen=True)
class Booted:
    """A server that has given a right answer, and what runs beside it."""

    server: Server
    environment: Environment
    placed: Placement
    bounds: Bounds
    target: Target
    boot_s: float
    upstream: Upstream | None
    beside: Beside
    site: Site | Loopback
    form: AnswerForm | None


class ImpossibleError(Exception):
    """The heat cannot go on: kind, sentence, last lines."""

    def __init__(self, kind: FailureKind, reason: str, last_lines: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.last_lines = kind, reason, last_lines


def boot(trial: Trial, lab: Lab, running: ExitStack) -> Booted:
    """Start what the trial needs; `running` ends it. Raises ImpossibleError."""
    stack = lab.stacks.get(trial.contestant.stack)
    if stack is None:
        raise ImpossibleError(FailureKind.UNAVAILABLE, f"no stack is called '{trial.contestant.stack}'")
    if (why := catalog.serves(stack, trial.recipe)) is not None:
        raise ImpossibleError(
            FailureKind.UNAVAILABLE, f"{stack.name} cannot serve {trial.recipe.name}: {why}"
        )
    try:
        interface = catalog.interface(stack.interface)
        environment = lab.environment(
            stack, trial.interpreter or None, trial.contestant.packages, trial.recipe
        )
        placed = placement.place(lab.cpus, trial.limits, placement.cores(lab.cpus))
        bounds = limits.bounds(trial.limits, placed.server_cpus, lab.where)
        site = running.enter_context(between(trial.link, placed.load_cpus, seed_of(trial)))
        with entered(site.server):  # whatever the server talks to is in its network
            ground = Ground(
                lab.guest_tree, placed.upstream_cpus, given=lab.databases, walled=trial.link is not None
            )
            beside = companions.start(trial.recipe.companions, ground, running)
            third = None
            if trial.recipe.calls_upstream:
                third = running.enter_context(upstream.start(cpus=placed.upstream_cpus, seed=seed_of(trial)))
            serving = Serving(
                stack,
                trial.recipe,
                environment.python,
                lab.guest_tree,
                ports.fresh_port(site.host),
                host=site.host,
                knobs=trial.contestant.knobs,
                upstream=third.url if third else "",
                beside=beside.variables,
                turn_ns=lab.turn_ns.get(environment.version, ""),
            )
        server = running.enter_context(Server(serving, bounds, placed.server_cpus, site.server))
    except Exception as error:  # also what a third party's stack raises: it must not stop the study
        raise ImpossibleError(_kind(error), sentence(error)) from error
    target = Target.of_recipe(server.url, trial.recipe)
    target = replace(target, expect_body=interface.answer(trial.recipe), allow=(site.host,))
    # A plain request first: whether it bears the cookie too is what the load is to show.
    plain = replace(target, headers=())
    form = None
    with entered(site.client):
        boot_s = _await(server, plain, trial, lab)
        if interface.protocol == "http" and isinstance(trial.recipe.steps[-1], Body):
            form = answer_form.seen(plain, lab.start_seconds + trial.recipe.wait_ms / 1000)
        acquaintance.make(server.url, serving.workers or 1)
    notes = placed.notes + bounds.notes + site.notes
    placed = replace(placed, enforced_by=bounds.enforced_by, notes=notes)
    return Booted(server, environment, placed, bounds, target, boot_s, third, beside, site, form)


def _await(server: Server, target: Target, trial: Trial, lab: Lab) -> float:
    wait_s = trial.recipe.wait_ms / 1000
    if trial.link is not None:
        wait_s += trial.link.fetch_s(len(target.body), len(target.expect_body or b""))
    answered = readiness.await_right_answer(
        target, server.exit, server.started, lab.start_seconds + wait_s, answer_s=wait_s
    )
    if isinstance(answered, NotReady):
        server.stop(min(2.0, lab.stop_seconds))
        raise ImpossibleError(
            answered.failure, f"{trial.contestant.label}: {answered.reason}", server.last_lines()
        )
    return answered.boot_s


def _kind(error: Exception) -> FailureKind:
    if isinstance(error, EnvironmentFailedError):
        return FailureKind.INSTALL
    missing = (LimitError, LinkRefusedError, CompanionMissingError, CompanionFailedError)
    return FailureKind.UNAVAILABLE if isinstance(error, missing) else FailureKind.START


def sentence(error: Exception) -> str:
    """Return what is told of an error: its own sentence, or for a foreign one its class too."""
    return str(error) if isinstance(error, VelodromeError) else f"{type(error).__name__}: {error}"


def seed_of(trial: Trial) -> int:
    """Return the seed of arrivals: the same for all contestants of a block, another in the next block."""
    return zlib.crc32(f"{trial.study}/{trial.question}/{trial.load.label}/{trial.block}".encode()) or 1

"""Booting: everything one server needs is started, in order, and it has given a right answer.

    booted = boot(trial, lab, running)

In order: environment, placement, limits, link, what runs beside (companions, third parties), port, server, readiness.
What cannot be had is an ImpossibleError, which the heat turns into a `Failed` for each of its trials.
"""

import zlib
from contextlib import ExitStack
from dataclasses import dataclass, replace

from velodrome.guest import catalog
from velodrome.guest.recipe import Body
from velodrome.guest.stack import Stack
from velodrome.model import secrets
from velodrome.model.errors import (
    CompanionFailedError,
    CompanionMissingError,
    EnvironmentFailedError,
    LimitError,
    LinkRefusedError,
    VelodromeError,
)
from velodrome.model.measurement import AnswerForm, FailureKind, Placement
from velodrome.model.third_party import ThirdParty
from velodrome.model.trial import Trial
from velodrome.run import answer_check, calls
from velodrome.run.apps import serving as apps
from velodrome.run.clients import idle
from velodrome.run.companions import choosing as companions
from velodrome.run.companions.choosing import Beside
from velodrome.run.companions.companion import Ground
from velodrome.run.drivers.driver import Target
from velodrome.run.environments.environment import Environment
from velodrome.run.faults import sentence
from velodrome.run.lab import Lab
from velodrome.run.link.namespace import entered
from velodrome.run.link.site import Loopback, Site, between
from velodrome.run.machine import limits, placement
from velodrome.run.machine.limits import Bounds
from velodrome.run.servers import ports, readiness
from velodrome.run.servers.readiness import NotReady, Ready
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
    upstreams: tuple[Upstream, ...]
    beside: Beside
    site: Site | Loopback
    form: AnswerForm | None
    wrong: str
    """What of a mix it answers wrongly, although enough is right; empty: nothing."""


class ImpossibleError(Exception):
    """The heat cannot go on: kind, sentence, last lines."""

    def __init__(self, kind: FailureKind, reason: str, last_lines: tuple[str, ...] = ()) -> None:
        self.kind, self.reason, self.last_lines = kind, secrets.mask(reason), last_lines
        super().__init__(self.reason)


def boot(trial: Trial, lab: Lab, running: ExitStack) -> Booted:
    """Start what the trial needs; `running` ends it. Raises ImpossibleError."""
    stack = _stack(trial, lab)
    try:
        environment = made_for(trial, stack, lab)
        placed = placement.place(lab.cpus, trial.limits, placement.cores(lab.cpus))
        bounds = limits.bounds(trial.limits, placed.server_cpus, lab.where)
        site = running.enter_context(between(trial.link, placed.load_cpus, seed_of(trial)))
        with entered(site.server):  # whatever the server talks to is in its network
            ground = Ground(
                lab.guest_tree, placed.upstream_cpus, given=lab.databases, walled=trial.link is not None
            )
            beside = companions.start(trial.recipe.companions, ground, running)
            thirds = _third_parties(trial, lab, placed, running)
            serving = Serving(
                stack,
                trial.recipe,
                environment.python,
                lab.guest_tree,
                ports.fresh_port(site.host),
                host=site.host,
                knobs=trial.contestant.knobs,
                beside=beside.variables,
                turn_ns=lab.turn_ns.get(environment.version, ""),
            )
            if trial.app is not None:
                urls = dict(zip(trial.app.third_parties, (one.url for one in thirds), strict=True))
                serving = apps.serving(serving, trial.app, environment, lab.variables, urls)
                trial = replace(trial, app=apps.asked(trial.app, lab.requests))
            elif thirds:
                serving = replace(serving, upstream=thirds[0].url)
        server = running.enter_context(Server(serving, bounds, placed.server_cpus, site.server))
    except Exception as error:  # also what a third party's stack raises: it must not stop the study
        lines = error.last_lines if isinstance(error, VelodromeError) else ()
        raise ImpossibleError(_kind(error), sentence(error), lines) from error
    target = replace(_target(server.url, trial, stack), allow=(site.host,))
    # A plain request first: whether it bears the cookie too is what the load is to show.
    plain = target if trial.app else replace(target, headers=())
    with entered(site.client):
        ready = _await(server, plain, trial, lab)
        form = _form(plain, trial, stack, lab)
        idle.meet_server(server.url, serving.workers or 1)
    notes = placed.notes + bounds.notes + site.notes
    placed = replace(placed, enforced_by=bounds.enforced_by, notes=notes)
    return Booted(
        server,
        environment,
        placed,
        bounds,
        target,
        ready.boot_s,
        thirds,
        beside,
        site,
        form,
        secrets.mask(ready.wrong),
    )


def made_for(trial: Trial, stack: Stack, lab: Lab) -> Environment:
    """Return what the trial's server runs in, made if need be. Raises VelodromeError."""
    if trial.app is not None:
        return lab.overlay(stack, trial.app)
    return lab.environment(stack, trial.interpreter or None, trial.contestant.packages, trial.recipe)


def _stack(trial: Trial, lab: Lab) -> Stack:
    stack = lab.stacks.get(trial.contestant.stack)
    if stack is None:
        raise ImpossibleError(FailureKind.UNAVAILABLE, f"no stack is called '{trial.contestant.stack}'")
    why = catalog.serves(stack, trial.recipe)
    if trial.app is not None and stack.interface not in trial.app.interfaces:
        why = f"it calls apps through {stack.interface}, and this one is called through " + " or ".join(
            trial.app.interfaces
        )
    if why is not None:
        raise ImpossibleError(
            FailureKind.UNAVAILABLE, f"{stack.name} cannot serve {trial.recipe.name}: {why}"
        )
    return stack


def _third_parties(trial: Trial, lab: Lab, placed: Placement, running: ExitStack) -> tuple[Upstream, ...]:
    """Start the simulated third parties: a recipe has one at most, an app as many as its user names."""
    thirds = apps.answering(trial.app, lab.third_parties) if trial.app else ()
    if trial.recipe.calls_upstream:
        thirds = (ThirdParty("", "0ms"),)  # each call tells its own
    return tuple(
        running.enter_context(
            upstream.start_as(third, cpus=placed.upstream_cpus, seed=seed_of(trial) + number)
        )
        for number, third in enumerate(thirds)
    )


def _target(url: str, trial: Trial, stack: Stack) -> Target:
    if trial.app is not None and trial.app.proto:
        metadata = trial.app.requests[0].headers
        return Target(url, headers=metadata, call=calls.call_of_app(trial.app))
    if trial.app is not None:
        return Target.of_requests(url, trial.app.requests)
    right = catalog.interface(stack.interface).answer(trial.recipe)
    return replace(Target.of_recipe(url, trial.recipe), expect_body=right)


def _form(target: Target, trial: Trial, stack: Stack, lab: Lab) -> AnswerForm | None:
    """Look at the head of an answer, where it is one over HTTP/1.1 that has a length."""
    ends_in_body = bool(trial.recipe.steps) and isinstance(trial.recipe.steps[-1], Body)
    if catalog.interface(stack.interface).protocol != "http" or not ends_in_body:
        return None
    return answer_check.answer_form(target, lab.start_seconds + trial.recipe.wait_ms / 1000)


def _await(server: Server, target: Target, trial: Trial, lab: Lab) -> Ready:
    wait_s = trial.recipe.wait_ms / 1000
    if trial.link is not None:
        wait_s += trial.link.fetch_s(len(target.body), len(target.expect_body or b""))
    answered = readiness.await_right_answer(
        target, server.exit, server.started, lab.start_seconds + wait_s, answer_s=wait_s
    )
    if isinstance(answered, NotReady):
        never = trial.app is not None and answered.failure is FailureKind.NEVER_ANSWERED
        places = server.elsewhere() if never else ()
        told = (
            f"{answered.reason}; it listens on {' and '.join(places)} instead" if places else answered.reason
        )
        server.stop(min(2.0, lab.stop_seconds))
        raise ImpossibleError(answered.failure, f"{trial.contestant.label}: {told}", server.last_lines())
    return answered


def _kind(error: Exception) -> FailureKind:
    if isinstance(error, EnvironmentFailedError):
        return FailureKind.INSTALL
    missing = (LimitError, LinkRefusedError, CompanionMissingError, CompanionFailedError)
    return FailureKind.UNAVAILABLE if isinstance(error, missing) else FailureKind.START


def seed_of(trial: Trial) -> int:
    """Return the seed of arrivals: the same for all contestants of a block, another in the next block."""
    return zlib.crc32(f"{trial.study}/{trial.question}/{trial.load.label}/{trial.block}".encode()) or 1

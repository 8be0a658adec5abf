"""A server session: one server starts, its trials run, it stops; each gives a measurement or a failure, no exception.

    for result in run_session(plan, lab):
        store.append(result)

`boot` starts what the plan says, in order: environment, limits, link, what runs beside (companions, third
parties), port, server; it returns once the server has given a right answer. Then, for each load: rest, warm-up,
measured span, flags. A server that dies under load gives a measurement flagged `server-died` (never ranked) if it had
answered anything, else `Failed(DIED)`; the trials that remain get a fresh server.
"""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from velodrome.guest import catalog
from velodrome.guest.recipe import Body
from velodrome.guest.stack import Stack
from velodrome.model import secrets
from velodrome.model.app import App, ThirdParty
from velodrome.model.errors import (
    AppAnswersWrongError,
    AppNotServedError,
    CompanionFailedError,
    CompanionMissingError,
    DriverMissingError,
    DriverTooOldError,
    EnvironmentFailedError,
    LimitError,
    LinkRefusedError,
    UnfitLoadError,
    VelodromeError,
)
from velodrome.model.measurement import (
    AnswerForm,
    CompanionFacts,
    Failed,
    FailureKind,
    Flag,
    FlagKind,
    IdleFacts,
    LinkFacts,
    LoadFacts,
    Measurement,
    Placement,
    Severity,
    UpstreamFacts,
    shared_share,
)
from velodrome.model.results import Result
from velodrome.model.trial import Session, Trial
from velodrome.run import answer_check, calls, idle_clients, injecting, servers, third_party, validity
from velodrome.run.apps import serving as apps
from velodrome.run.apps.serving import as_it_stands, unlike
from velodrome.run.drivers.driver import LoadEvent, OnEvent, Target
from velodrome.run.environments.environment import Environment
from velodrome.run.faults import sentence
from velodrome.run.lab import Lab
from velodrome.run.link import Loopback, Site, between, enter
from velodrome.run.machine.limits import Bounds
from velodrome.run.measuring.sampler import Sampler
from velodrome.run.racing.plan import PlannedSession, plan_session, seed_of
from velodrome.run.servers import NotReady, Ready, Server, Serving, Stopped
from velodrome.run.services import service as companions
from velodrome.run.services.service import Beside, Surroundings
from velodrome.run.third_party import Answering


@dataclass(frozen=True)
class Booted:
    """A server that has given a right answer, and what runs beside it."""

    server: Server
    environment: Environment
    placed: Placement
    bounds: Bounds
    target: Target
    boot_s: float
    upstreams: tuple[Answering, ...]
    beside: Beside
    site: Site | Loopback
    form: AnswerForm | None
    wrong: str
    """What of a mix it answers wrongly, although enough is right; empty: nothing."""


class ImpossibleError(Exception):
    """The session cannot go on: kind, sentence, last lines."""

    def __init__(self, kind: FailureKind, reason: str, last_lines: tuple[str, ...] = ()) -> None:
        self.kind, self.reason, self.last_lines = kind, secrets.mask(reason), last_lines
        super().__init__(self.reason)


Pasted = Callable[[int, Mapping[str, str]], str]
"""Returns the lines of a shell that a user pastes to serve their app on a port, with these packages installed."""


def boot(plan: PlannedSession, lab: Lab, running: ExitStack, pasted: Pasted | None = None) -> Booted:
    """Start what a session needs, where and as planned; `running` ends it. Raises ImpossibleError.

    With `pasted` the server is started by what that returns, as it stands; only of an app of a user's own.
    """
    trial, placed = plan.trials[0], plan.seat.placement
    stack = _stack(trial, lab)
    try:
        environment = environment_of(trial, stack, lab)
        bounds = plan.seat.bounds.fresh()
        site = _site(trial, placed, lab, running)
        with enter(site.server):  # whatever the server talks to is in its network
            surroundings = Surroundings(
                lab.guest_tree, placed.upstream_cpus, given=lab.databases, walled=trial.link is not None
            )
            beside = companions.start_services(trial.recipe.services, surroundings, running)
            thirds = _third_parties(trial, lab, placed, running)
            serving = Serving(
                stack,
                trial.recipe,
                environment.python,
                lab.guest_tree,
                servers.fresh_port(site.host),
                host=site.host,
                knobs=trial.contestant.knobs,
                beside=beside.variables,
                turn_ns=lab.turn_ns.get(environment.version, ""),
            )
            if trial.app is not None:
                urls = dict(zip(trial.app.third_parties, (one.url for one in thirds), strict=True))
                serving = apps.serving_app(serving, trial.app, environment, lab.variables, urls)
                if pasted is not None:
                    lines = pasted(serving.port, environment.packages)
                    if other := unlike(lines, environment.packages):
                        raise ImpossibleError(
                            FailureKind.START,
                            f"what is pasted installs {other}, which is not what was measured",
                        )
                    serving = as_it_stands(serving, trial.app, lines, environment)
                trial = replace(trial, app=apps.with_whole_requests(trial.app, lab.requests))
            elif thirds:
                serving = replace(serving, upstream=thirds[0].url)
            if lab.injected is not None:
                serving = injecting.into(serving, lab.injected)
        server = running.enter_context(Server(serving, bounds, placed.server_cpus, site.server))
    except ImpossibleError:
        raise
    except Exception as error:  # also what a third party's stack raises: it must not stop the study
        last_lines = error.last_lines if isinstance(error, VelodromeError) else ()
        raise ImpossibleError(_kind(error), sentence(error), last_lines) from error
    target = replace(_target(server.url, trial, stack), allow=(site.host,))
    # A plain request first: whether it bears the cookie too is what the load is to show.
    plain = target if trial.app else replace(target, headers=())
    with enter(site.client):
        ready = _await(server, plain, trial, lab)
        form = None if lab.unasked else _form(plain, trial, stack, lab)
        idle_clients.meet_server(server.url, serving.workers or 1)
    placed = replace(placed, notes=placed.notes + site.notes)
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


def _site(trial: Trial, placed: Placement, lab: Lab, running: ExitStack) -> Site | Loopback:
    """Return the network that the server is in."""
    if lab.apart is None:
        return running.enter_context(between(trial.link, placed.load_cpus, seed_of(trial)))
    if trial.link is not None:
        raise ImpossibleError(FailureKind.UNAVAILABLE, LINKED)
    return Loopback(host=lab.apart.address)


LINKED = (
    "a link is emulated between a server and a generator on one machine, and here the load comes from other hosts "
    "over their own network; leave the link out"
)


def environment_of(trial: Trial, stack: Stack, lab: Lab) -> Environment:
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


def _third_parties(trial: Trial, lab: Lab, placed: Placement, running: ExitStack) -> tuple[Answering, ...]:
    """Start the simulated third parties: a recipe has one at most, an app as many as its user names."""
    thirds = apps.answering(trial.app, lab.third_parties) if trial.app else ()
    if trial.recipe.calls_upstream:
        thirds = (ThirdParty("", "0ms"),)  # each call tells its own
    return tuple(
        running.enter_context(lab.third_party(third, cpus=placed.upstream_cpus, seed=seed_of(trial) + number))
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
    answered = (
        servers.await_listener(server, lab.start_seconds)
        if lab.unasked
        else servers.await_right_answer(
            target, server.exit, server.started, lab.start_seconds + wait_s, answer_s=wait_s
        )
    )
    if isinstance(answered, NotReady):
        never = trial.app is not None and answered.failure is FailureKind.NEVER_ANSWERED
        places = server.elsewhere() if never else ()
        reason = (
            f"{answered.reason}; it listens on {' and '.join(places)} instead" if places else answered.reason
        )
        server.stop(min(2.0, lab.stop_seconds))
        raise ImpossibleError(answered.failure, f"{trial.contestant.label}: {reason}", server.last_lines())
    return answered


def _kind(error: Exception) -> FailureKind:
    if isinstance(error, EnvironmentFailedError):
        return FailureKind.INSTALL
    missing = (LimitError, LinkRefusedError, CompanionMissingError, CompanionFailedError)
    return FailureKind.UNAVAILABLE if isinstance(error, missing) else FailureKind.START


NO_SUCH_LOAD = (DriverMissingError, DriverTooOldError, UnfitLoadError)
"""Found out before anything is loaded: the load cannot be had here, and no fault is anybody's."""


def run_alone(session: Session, lab: Lab) -> Generator[Result, None, None]:
    """Run one session by itself, planned on the spot; as `run_session`."""
    try:
        plan = plan_session(session, lab)
    except LimitError as error:
        for trial in session.trials:
            yield Failed(trial, _now(), FailureKind.UNAVAILABLE, sentence(error))
        return
    yield from run_session(plan, lab)


def run_session(
    plan: PlannedSession, lab: Lab, warn: Callable[[str], None] = lambda _: None
) -> Generator[Result, None, None]:
    """Yield one result for each trial, in order, as soon as it is certain.

    `warn` hears what of the requests the server answers wrongly, although enough is right. Close the iterator
    (`contextlib.closing`) to stop everything early.
    """
    waiting = deque(plan.trials)
    while waiting:
        yield from _one_server(plan, waiting, lab, warn)


def _one_server(
    plan: PlannedSession, waiting: deque[Trial], lab: Lab, warn: Callable[[str], None]
) -> Iterator[Result]:
    """Run as many trials as one server carries: all of them, unless it dies."""
    started_at = _now()
    last: Trial | None = None
    try:
        with ExitStack() as running:
            booted = boot(replace(plan, trials=tuple(waiting)), lab, running)
            if booted.wrong:
                warn(warning(waiting[0].contestant.label, booted.wrong))
            while True:
                last = waiting.popleft()
                result = measure(last, booted, lab)
                if not waiting or booted.server.exit() is not None:
                    break
                yield result
            # The last result waits for the stop, because hanging on it is reported with that result.
            ended = _with_end(result, booted.server.stop(lab.stop_seconds), booted.server)
        yield ended
    except ImpossibleError as why:
        while waiting:
            yield Failed(waiting.popleft(), started_at, why.kind, why.reason, why.last_lines)
    except Exception as error:
        # What this machine refused, or a bug, between the loads: the trials that are left get a fresh server.
        yield Failed(last or waiting.popleft(), started_at, _when(last), sentence(error))


def _when(last: Trial | None) -> FailureKind:
    return FailureKind.START if last is None else FailureKind.STOP


class _Watch:
    """What listens to the driver: sampler, link and third party, whoever else, and whether the server still lives."""

    def __init__(self, sampler: Sampler, booted: Booted, also: OnEvent | None) -> None:
        self.sampler, self.booted, self.also = sampler, booted, also
        self.upstream: UpstreamFacts | None = None
        self.link: LinkFacts | None = None

    def on(self, event: LoadEvent) -> bool:
        self.sampler.on(event)  # first: asking the third parties would delay its reading of the clocks
        if event.kind == "measuring":
            third_party.begin(self.booted.upstreams)
            self.booted.site.begin()
        if event.kind == "span_ended":
            self.link = self.booted.site.end()
            self.upstream = third_party.end(self.booted.upstreams)
        go_on = self.also is None or self.also(event)
        return go_on and self.booted.server.exit() is None  # nothing is learnt from loading a dead server


def measure(trial: Trial, booted: Booted, lab: Lab, also: OnEvent | None = None) -> Result:
    """Run one load against a server that is ready; in the result no text has a secret in it.

    `also` hears the driver's events, ticks among them, and ends the load early by returning False: what was measured
    until then is the result.
    """
    started_at = _now()
    try:
        found = _measure(trial, booted, lab, also, started_at)
    except Exception as error:  # this machine refuses something, or it is a bug: of this trial alone
        found = _failure(trial, started_at, error, booted.server)
    return secrets.mask_noun(found)


def _measure(trial: Trial, booted: Booted, lab: Lab, also: OnEvent | None, started_at: str) -> Result:
    server = booted.server
    span_s, site = trial.load.duration_s, booted.site
    sampler = Sampler(server.pid, server.serving.port, span_s, booted.bounds.account, inside=site.server)
    for pid in (*(upstream.pid for upstream in booted.upstreams), site.pid):
        if pid is not None:
            sampler.accompany(pid)
    for name, pid in booted.beside.pids.items():
        sampler.accompany_tree(name, pid)
    watch = _Watch(sampler, booted, also)
    facts, idled = _load(trial, booted, lab, sampler, watch)
    sampled = sampler.result(booted.boot_s)
    died = server.exit()
    if died is not None and (facts.ok == 0 or died.with_warden):
        return _death(trial, started_at, server)
    evidence = validity.Evidence(
        load=trial.load,
        facts=facts,
        sampled=sampled,
        machine_cpus=os.cpu_count() or 1,
        upstream=watch.upstream,
        idle=idled,
        link=watch.link,
        rtt_ms=trial.link.rtt_ms if trial.link else 0.0,
        rate_mbit=trial.link.rate_mbit if trial.link else None,
        load_cpus=len(booted.placed.load_cpus),
        beside_cpus=len(booted.placed.upstream_cpus),
        beside_load=bool(set(booted.placed.upstream_cpus) & set(booted.placed.load_cpus)),
        shared_share=shared_share(
            booted.placed, facts, watch.upstream, sum(sampled.beside_cpu_s.values()), watch.link
        ),
        form=booted.form,
        wait_ms=trial.recipe.wait_ms,
        workers=server.serving.workers,
        exit_status=died.code if died else None,
    )
    return Measurement(
        trial=trial,
        started_at=started_at,
        load=facts,
        server=sampled.server,
        queue=sampled.queue,
        host=sampled.host,
        placement=booted.placed,
        flags=validity.flags(evidence),
        upstream=watch.upstream,
        idle=idled,
        form=booted.form,
        companions=tuple(
            CompanionFacts(name, version, sampled.beside_cpu_s.get(name))
            for name, version in booted.beside.versions.items()
        ),
        command=server.command,
        packages=booted.environment.packages,
        python=booted.environment.version,
        last_lines=server.last_lines() if died else (),
        link=watch.link,
    )


def _load(
    trial: Trial, booted: Booted, lab: Lab, sampler: Sampler, watch: _Watch
) -> tuple[LoadFacts, IdleFacts | None]:
    """Let the server rest, with the idle connections there, then load it."""
    driver = lab.driver(trial.load.driver, booted.placed, seed_of(trial))
    target, site = booted.target, booted.site
    count, cpus = trial.load.idle, booted.placed.load_cpus
    with (
        enter(site.client),
        idle_clients.hold_idle(count, target.url, cpus, target.allow, server=site.server) as held,
    ):
        if held is not None:
            sampler.accompany(held.pid)
        sampler.rest()
        with sampler:
            facts = driver.run(trial.load, target, watch.on)
        return facts, held.facts() if held is not None else None


def _failure(trial: Trial, started_at: str, error: Exception, server: Server) -> Failed:
    if server.exit() is not None:
        return _death(trial, started_at, server)
    if isinstance(error, NO_SUCH_LOAD):
        return Failed(trial, started_at, FailureKind.UNAVAILABLE, sentence(error))
    return Failed(trial, started_at, FailureKind.LOAD, sentence(error), server.last_lines())


def _death(trial: Trial, started_at: str, server: Server) -> Failed:
    ended = server.exit()
    how = ended.sentence if ended else "its process is gone"
    if ended and ended.with_warden:
        reason = f"{trial.contestant.label} was ended under load: {how}"
        return Failed(trial, started_at, FailureKind.LOAD, reason, server.last_lines())
    reason = f"{trial.contestant.label} died under load: {how}"
    return Failed(trial, started_at, FailureKind.DIED, reason, server.last_lines())


def _with_end(result: Result, stopped: Stopped, server: Server) -> Result:
    """Tell with the last result of a server that it did not end as asked."""
    ending = stopped.ending
    if ending.stuck:
        survivors = ", ".join(map(str, ending.stuck))
        reason = f"processes {survivors} of it survived SIGKILL and load this machine. Restart the machine"
        return Failed(result.trial, result.started_at, FailureKind.STOP, reason, server.last_lines())
    if not isinstance(result, Measurement):
        return result
    troubles = []
    if ending.hung:
        troubles.append("did not end when it was asked to and was killed")
    elif ending.orphans:
        troubles.append(f"left {ending.orphans} of its processes running, which were killed")
    if stopped.left:
        troubles.append(f"left behind {', '.join(stopped.left)}")
    if not troubles:
        return result
    flag = Flag(
        FlagKind.HUNG_ON_STOP,
        Severity.NOTE,
        f"The server {' and '.join(troubles)}.",
        "Expect slow deploys: a supervisor will have to kill it as well.",
        {"orphans": ending.orphans},
    )
    return replace(result, flags=(*result.flags, flag), last_lines=server.last_lines())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


LAST_LINES = 8
"""Of a server's output that are reported."""

Refused = AppAnswersWrongError | AppNotServedError


def refusal(app: App, label: str, kind: FailureKind, reason: str, last_lines: Sequence[str] = ()) -> Refused:
    """Return what is raised where the session of an app failed; `label` names the stack with its settings."""
    said, lines = of_label(label, reason, last_lines)
    if kind is FailureKind.WRONG_ANSWER:
        return AppAnswersWrongError(app.path, label, said, lines, app.simulated)
    return AppNotServedError(app.path, label, said, lines, tried=not kind.is_missing)


def most_telling(every: Sequence[Refused]) -> Refused:
    """Return the one to tell of several: a wrong answer tells most, else the first."""
    return next((one for one in every if isinstance(one, AppAnswersWrongError)), every[0])


def of_label(label: str, reason: str, last_lines: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return a reason without whom it names, which the errors do as well, and the last of the lines."""
    return reason.removeprefix(f"{label}: "), last_lines[-LAST_LINES:]


def warning(label: str, wrong: str) -> str:
    """Return the sentence for an app that answers not all it is asked rightly; `wrong` names the worst of it."""
    return (
        f"warning: on {label} not all that is asked is answered right: {wrong}. It is measured all the same and these "
        "answers count as errors; correct the app or the request, or leave it out"
    )

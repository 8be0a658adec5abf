"""A heat: one server is started and its trials run; each gives a measurement or a failure, no exception.

    for result in run_heat(heat, lab):
        store.append(result)

`run/racing/boot.py` starts the server and what it needs; here, for each load: rest, warm-up, measured span and
flags; then stop. A server that dies while loaded gives a measurement flagged `server-died` (never ranked) if
it had answered anything, else `Failed(DIED)`; the trials that remain get a fresh server.
"""

import os
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

from velodrome.model import secrets
from velodrome.model.errors import DriverMissingError, DriverTooOldError, UnfitLoadError
from velodrome.model.measurement import (
    CompanionFacts,
    Failed,
    FailureKind,
    Flag,
    FlagKind,
    IdleFacts,
    LinkFacts,
    LoadFacts,
    Measurement,
    Severity,
    UpstreamFacts,
)
from velodrome.model.results import Result
from velodrome.model.trial import Heat, Trial
from velodrome.run import validity
from velodrome.run.clients import idle
from velodrome.run.drivers.driver import LoadEvent, OnEvent
from velodrome.run.faults import sentence
from velodrome.run.lab import Lab
from velodrome.run.link.namespace import entered
from velodrome.run.measuring.sampler import Sampler
from velodrome.run.racing.boot import Booted, ImpossibleError, boot, seed_of
from velodrome.run.servers.server import Server, Stopped
from velodrome.run.third_party import upstream

NO_SUCH_LOAD = (DriverMissingError, DriverTooOldError, UnfitLoadError)
"""Found out before anything is loaded: the load cannot be had here, and no fault is anybody's."""


def run_heat(heat: Heat, lab: Lab) -> Generator[Result, None, None]:
    """Yield one result for each trial, in order, as soon as it is certain.

    Close the iterator (`contextlib.closing`) to stop everything early.
    """
    waiting = deque(heat.trials)
    while waiting:
        yield from _one_server(waiting, lab)


def _one_server(waiting: deque[Trial], lab: Lab) -> Iterator[Result]:
    """Run as many trials as one server carries: all of them, unless it dies."""
    started_at = _now()
    last: Trial | None = None
    try:
        with ExitStack() as running:
            booted = boot(waiting[0], lab, running)
            while True:
                last = waiting.popleft()
                result = measure(last, booted, lab)
                if not waiting or booted.server.exit() is not None:
                    break
                yield result
            # The last result waits for the stop, because hanging on it is told with that result.
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
            upstream.begin(self.booted.upstreams)
            self.booted.site.begin()
        if event.kind == "span_ended":
            self.link = self.booted.site.end()
            self.upstream = upstream.end(self.booted.upstreams)
        go_on = self.also is None or self.also(event)
        return go_on and self.booted.server.exit() is None  # nothing is learnt from loading a dead server


def measure(trial: Trial, booted: Booted, lab: Lab, also: OnEvent | None = None) -> Result:
    """Run one load against a server that is ready; in the result no text has a secret in it.

    `also` hears the driver's events, ticks among them, and ends the load early by returning False: what was measured
    until then is the result.
    """
    started_at = _now()
    try:
        found = _measured(trial, booted, lab, also, started_at)
    except Exception as error:  # this machine refuses something, or it is a bug: of this trial alone
        found = _failed(trial, started_at, error, booted.server)
    return secrets.masked(found)


def _measured(trial: Trial, booted: Booted, lab: Lab, also: OnEvent | None, started_at: str) -> Result:
    server = booted.server
    span_s, site = trial.load.duration_s, booted.site
    sampler = Sampler(server.pid, server.serving.port, span_s, booted.bounds.account, inside=site.server)
    for pid in (*(one.pid for one in booted.upstreams), site.pid):
        if pid is not None:
            sampler.accompany(pid)
    for name, pid in booted.beside.pids.items():
        sampler.accompany_tree(name, pid)
    watch = _Watch(sampler, booted, also)
    facts, idled = _load(trial, booted, lab, sampler, watch)
    sampled = sampler.result(booted.boot_s)
    died = server.exit()
    if died is not None and (facts.ok == 0 or died.with_warden):
        return _died(trial, started_at, server)
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
    with entered(site.client), idle.held(count, target.url, cpus, target.allow, server=site.server) as held:
        if held is not None:
            sampler.accompany(held.pid)
        sampler.rest()
        with sampler:
            facts = driver.run(trial.load, target, watch.on)
        return facts, held.facts() if held is not None else None


def _failed(trial: Trial, started_at: str, error: Exception, server: Server) -> Failed:
    if server.exit() is not None:
        return _died(trial, started_at, server)
    if isinstance(error, NO_SUCH_LOAD):
        return Failed(trial, started_at, FailureKind.UNAVAILABLE, sentence(error))
    return Failed(trial, started_at, FailureKind.LOAD, sentence(error), server.last_lines())


def _died(trial: Trial, started_at: str, server: Server) -> Failed:
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

"""A tuning over the hosts of agents: they make the loads of one race at the same time.

    best_setting(spec, search, lab, follower, folder)

Which of their loads count says `judge/tuning/hosts.py`. Three things are here, each of which says what goes over the
wire: `Hosts`, by which the command asks hosts for one load after the other; what it asks for, and stores so that
`velodrome judge` and `--resume` make the same of the folder; and `_HostTuning`, which does it on each host (`python -m
velodrome.usecases.tune_hosts`, a process of the agent's). A server stays up from one load to the next, and a host is
held from the preparation to the end of that process, as a tuning on one machine holds it. One agent of each host is
used: a second one would wait for the first, and stands by in case that is lost.

    with reach_hosts(address, security, needs) as found:
        found.begin(plan, study, lab, follower)
        found.prepare("a", demands)             # its environments are there, and it is held from now on
        found.load("a", trial, ask, …)
        found.next(follower)                    # Loaded("a", results), Came("b"), Left("c", why)
"""

import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from velodrome.judge.search.holding import Demands
from velodrome.judge.tuning.racing import Loads
from velodrome.model import results, secrets
from velodrome.model.condition import read_stored
from velodrome.model.errors import AgentsDifferError, AgentsGoneError, StudyChangedError
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.results import Result, adapter
from velodrome.model.study import Study
from velodrome.model.trial import Session, Trial
from velodrome.model.tuning import Ask, Candidate, Observation, Recommendation
from velodrome.run.cluster import blocks, handing, talking
from velodrome.run.cluster.apart import Channel
from velodrome.run.cluster.blocks import Needs
from velodrome.run.lab import Lab
from velodrome.run.racing.opening import Preparing, find_usable_limits, hold_machine, prepare_environments
from velodrome.run.racing.plan import plan_of
from velodrome.run.racing.race import session_runner
from velodrome.run.racing.store import NAME
from velodrome.run.supervision.undisturbed import stoppable
from velodrome.usecases import race as races
from velodrome.usecases.apps import folder as folder_of
from velodrome.usecases.events import Events
from velodrome.usecases.recording import Record, open_record
from velodrome.usecases.tune import (
    Benches,
    Deciding,
    Doubts,
    Progress,
    Search,
    TuneSpec,
    begin_search,
)

# --- The hosts: each makes one load after the other, as the command asks for them.

PREPARE, LOAD, SESSION, REST = "prepare", "load", "session", "rest"
"""What hosts are sent to do."""
LOOK_S = 1.0
REPEATS = 1_000
"""Of a contestant under one load, a host makes no more."""


@dataclass(frozen=True)
class Loaded:
    """A host has done what it was given last."""

    host: str
    results: tuple[Result, ...]
    why: str
    """Why there was no server for it; empty: there was."""


@dataclass(frozen=True)
class Came:
    """A host is there."""

    host: str


@dataclass(frozen=True)
class Left:
    """A host was lost, and what it was given with it."""

    host: str
    why: str


class Hosts(handing.Hosts):
    """The agents of a coordinator as the hosts of a search."""

    given = "loads"

    def __init__(
        self, address: talking.Address, security: talking.Security, needs: Callable[[Lab, Study], Needs]
    ) -> None:
        """`needs` says what a search needs of a host."""
        super().__init__(address, security, needs)
        self._used: dict[str, handing.Host] = {}
        """By host, its agent that measures."""
        self._numbers: dict[str, int] = {}
        """Of each host, in the order in which they were first used."""
        self._results: list[tuple[str, Result]] = []
        self._unserved: dict[str, str] = {}

    @property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        """Facts of each host that there is."""
        return {host.name: host.facts for host in self._hosts.values() if host.ready}

    def use(self, fits: Callable[[Mapping[str, Any]], bool] = lambda _: True) -> tuple[str, ...]:
        """Take one agent of each host that is there, fits by its facts and is not used yet; return these hosts."""
        new = []
        for host in self._hosts.values():
            if host.ready and host.name not in self._used and fits(host.facts):
                self._used[host.name] = host
                self._numbers.setdefault(host.name, len(self._numbers))
                new.append(host.name)
        return tuple(new)

    def prepare(self, host: str, conditions: Sequence[str], arrivals: str) -> None:
        """Have a host make its environments, and hold its machine, however long it waits for that."""
        self._say(host, {"do": PREPARE, "conditions": list(conditions), "arrivals": arrivals})

    def load(self, host: str, trial: Trial, ask: Ask, alone_ms: float, keys: Sequence[str]) -> None:
        """Have a host make a load of a trial's contestant; no trial gets one of `keys`.

        `alone_ms` is what an answer takes alone, where that is known; else 0. Two hosts may measure a contestant at the
        same time, so each numbers its repeats from a number of its own.
        """
        self._say(
            host,
            {
                "do": LOAD,
                "trial": results.plain_trial(trial),
                "ask": adapter(Ask).dump_python(ask, mode="json"),
                "alone_ms": alone_ms,
                "keys": list(keys),
                "first_block": self._numbers[host] * REPEATS,
            },
        )

    def serve(self, host: str, session: Session) -> None:
        """Have a host run a server session."""
        self._say(host, {"do": SESSION, "trials": [results.plain_trial(trial) for trial in session.trials]})

    def rest(self, host: str) -> None:
        """Have a host stop its server."""
        self._say(host, {"do": REST})

    def _say(self, host: str, line: Mapping[str, Any]) -> None:
        self._loop.call_soon_threadsafe(self._used[host].given.append, json.dumps(line))

    def next(self, follower: Preparing) -> Loaded | Came | Left | None:
        """Return what happens next, and hand preparations on to the follower; None: nothing happened for a second."""
        kind, agent, event = self._event(time.monotonic() + LOOK_S)
        if agent is None or agent.gone:
            return None
        used = self._used.get(agent.name) is agent
        if kind == "entry" and used:
            entry = self._entry(agent, event, Path())
            assert isinstance(entry, Measurement | Failed)
            self._results.append((agent.name, entry))
        elif kind == "unserved":
            self._unserved[agent.name] = event["text"]
        elif kind == "whole" and used:
            return Loaded(agent.name, self._take_results(agent.name), self._unserved.pop(agent.name, ""))
        elif kind == "ready" and self._odd(agent) is None:
            agent.ready = True
            if agent.name not in self._used:
                follower.preparing(f"{agent.name} is there")
                return Came(agent.name)
        elif kind in ("lost", "refused", "failed", "ready"):
            agent.unfit = kind != "lost"
            why = "its Python is another" if kind == "ready" else str(event)
            self._take_leave(agent, why, follower)
            if used:
                del self._used[agent.name]
                self._take_results(agent.name)
                self._unserved.pop(agent.name, None)
                return Left(agent.name, why)
        elif kind in ("preparing", "warning"):
            follower.preparing(f"{agent.name}: {event['text']}")
        return None

    def _take_results(self, host: str) -> tuple[Result, ...]:
        """Return what a host has measured since it was given its last load."""
        own = tuple(result for name, result in self._results if name == host)
        self._results = [(name, result) for name, result in self._results if name != host]
        return own


@contextmanager
def reach_hosts(
    address: talking.Address, security: talking.Security, needs: Callable[[Lab, Study], Needs]
) -> Iterator[Hosts]:
    """Yield the agents of a coordinator as hosts of one search."""
    found = Hosts(address, security, needs)
    found.start()
    try:
        yield found
    finally:
        found.close()


# --- The command: what is compared, on which host.


def best_setting(spec: TuneSpec, search: Search, lab: Lab, follower: Events, folder: Path) -> Recommendation:
    """Search the best setting by the hosts of agents, and store each load in `folder`.

    Raises what `race.reach_hosts` and `Hosts.begin` of `run/cluster/handing.py` do, AgentsDifferError for hosts of
    other CPUs than settings are laid out for, AgentsGoneError, AppAnswersWrongError, AppNotServedError, and what
    `open_record` does.
    """
    begun = begin_search(search, lab)
    app = spec.served.app
    user, cwd, sdist = (
        (app.user, folder_of(app.cwd), app.allow_sdist) if app else (spec.served.user, "", False)
    )
    plan = plan_of(begun.about, [Session((trial,)) for trial in begun.firsts], lab)
    with (
        stoppable(),
        races.reach_hosts(
            reach_hosts, spec.agents, spec.keys, user=user, cwd=cwd, allow_sdist=sdist
        ) as hosts,
        open_record(folder, begun.header, spec.resume) as record,
    ):
        path = str(folder / NAME)
        if any(result.machine is None for result in record.results):
            raise StudyChangedError(
                path, ["one machine measured it, and now agents would: leave --agents out"]
            )
        hosts.begin(plan, begun.header.study, lab, follower)
        for name, facts in hosts.facts.items():
            if not _has_cpus(search, facts):
                found = {"this machine": str(os.cpu_count()), name: str(facts["cpus"])}
                raise AgentsDifferError("number of CPUs (name how many to tune for: --cpus)", found)
        deciding = begun.take_up(lab.stacks, record, follower)
        over = _OverHosts(
            hosts, deciding, lambda: AgentsGoneError(path, len(record.results), None, hosts.gone)
        )
        over.prepare()
        # Environments are made once; the budget is for what is measured.
        record.begin()
        over.run()
    return begun.judge(record, lab.stacks, folder)


def _has_cpus(search: Search, facts: Mapping[str, Any]) -> bool:
    """Whether a host has the CPUs that settings are laid out for: those of `--cpus`, else as many as this machine."""
    return search.trial.limits.cpus is not None or bool(facts["cpus"] == os.cpu_count())


class _HostLeftError(Exception):
    """The host where what is claimed is measured was lost: another does it."""


class _OverHosts:
    """Gives loads out to hosts: a place (`tune.Place`), one of whose hosts measures what is claimed."""

    def __init__(self, hosts: Hosts, deciding: Deciding, gone: Callable[[], AgentsGoneError]) -> None:
        """`gone` makes what is raised where no host is left."""
        self._hosts, self._deciding, self._gone = hosts, deciding, gone
        self._replayed, self._record = deciding.replayed, deciding.record
        self._follower, self._template = deciding.follower, deciding.begun.template
        self._shared = self._replayed.over_hosts()
        self._doubts = Doubts(self._template.app, self._replayed.progress)
        self._present: dict[str, bool] = {}
        """Hosts that are there, and whether they are prepared."""
        self._pending: dict[str, deque[str]] = {}
        """By host, what it is asked for and has not done yet."""
        self._boots: dict[str, dict[int, int]] = {}
        """By host, the number here of each start of a server there."""

    def prepare(self) -> None:
        """Wait until a host can measure; the others join it as they can. Raises AgentsGoneError."""
        self._take_up()
        self._await_one()

    def _await_one(self) -> None:
        while not any(self._present.values()):
            self._next()

    def run(self) -> None:
        """Measure until it is decided what to recommend. Raises AgentsGoneError, and what `Doubts` does."""
        while True:
            self._choose_home()
            with suppress(_HostLeftError):
                self._deciding.by(self)
                return

    def _choose_home(self) -> None:
        """Have what is claimed be measured on a host that is there, and prepared."""
        self._await_one()
        if not self._present.get(self._shared.home):
            self._shared.claim_at(
                self._shared.busiest([host for host, prepared in self._present.items() if prepared])
            )

    # --- the race, and what confirms it

    def make(self, run: Callable[[str, int], Loads]) -> None:
        """Have all hosts that are prepared and alike make loads at the same time; who is done goes on when another is.

        A host that is ready meanwhile takes part. Raises AgentsGoneError, and what `Doubts` does.
        """
        hosts = sum(prepared and host not in self._shared.apart for host, prepared in self._present.items())
        runs: dict[str, Loads] = {}
        loads: dict[str, tuple[Candidate, Ask]] = {}

        def go_on(host: str, observed: Observation | None) -> None:
            try:
                loads[host] = next(runs[host]) if observed is None else runs[host].send(observed)
            except StopIteration:
                del runs[host]
                if observed is not None:
                    self._say(host, REST)
            else:
                self._load(host, *loads[host])

        def begin() -> None:
            for host, is_prepared in [*self._present.items()]:
                # When the host of the claim is lost, others' loads may still run.
                free = is_prepared and host not in runs and LOAD not in self._pending[host]
                if free and host not in self._shared.apart:
                    runs[host] = run(host, hosts)
                    go_on(host, None)

        begin()
        while runs or not any(self._present.values()):
            match self._next():
                case (what, Loaded() as loaded) if what == LOAD and loaded.host in loads:
                    candidate, ask = loads.pop(loaded.host)
                    observed = self._observe(loaded, candidate, ask, final=loaded.host == self._shared.home)
                    go_on(loaded.host, observed)
                case (_, Left() as left):
                    loads.pop(left.host, None)
                    if left.host in runs:
                        runs.pop(left.host).close()
                case _:
                    pass
            begin()

    # --- what is claimed

    def measure(self, candidate: Candidate, ask: Ask) -> Observation:
        """Make one load where what is claimed is measured. Raises AgentsGoneError, and what `Doubts` does."""
        self._load(self._home(), candidate, ask)
        return self._observe(self._next_of_home(LOAD), candidate, ask, final=True)

    def serve(self, session: Session) -> Generator[Result]:
        """Run a server session there."""
        home = self._home()
        self._hosts.serve(home, session)
        self._pending[home].append(SESSION)
        yield from map(self._own, self._next_of_home(SESSION).results)

    def stop(self) -> None:
        """End the server that is up there."""
        self._say(self._home(), REST)

    def _home(self) -> str:
        """Return the host where what is claimed is measured. Raises _HostLeftError where it is lost."""
        if self._shared.home not in self._present:
            raise _HostLeftError
        return self._shared.home

    def _next_of_home(self, what: str) -> Loaded:
        """Return what that host has done. Raises _HostLeftError where it is lost, AgentsGoneError."""
        home = self._shared.home
        while True:
            match self._next():
                case (_, Left() as left) if left.host == home:
                    raise _HostLeftError
                case (done, Loaded() as loaded) if loaded.host == home and done == what:
                    return loaded
                case _:
                    pass

    # --- hosts

    def _load(self, host: str, candidate: Candidate, ask: Ask) -> None:
        contestant = candidate.contestant
        trial = replace(self._template, contestant=contestant)
        alone_ms = self._replayed.progress.alone_ms.get(contestant.stack, 0.0)
        self._hosts.load(host, trial, ask, alone_ms, self._record.keys_of(contestant))
        self._pending[host].append(LOAD)

    def _observe(self, loaded: Loaded, candidate: Candidate, ask: Ask, *, final: bool) -> Observation:
        """Store what a load gave, and return it."""
        own = [self._own(result) for result in loaded.results]
        kept = self._record.take_in(own, self._boots.setdefault(loaded.host, {}), final=final)
        made = self._replayed.progress.take(kept)
        self._doubts.see(kept)
        observed = made[-1].observed if made else Observation(ask, failed=loaded.why, host=loaded.host)
        self._follower.observed(candidate, observed)
        return observed

    def _own(self, result: Result) -> Result:
        """Return a result as of the app that is looked at here: a host seals secrets with a key of its own."""
        trial: Trial = replace(result.trial, app=self._template.app)
        return replace(result, trial=trial)

    def _say(self, host: str, what: str) -> None:
        if what == REST:
            self._hosts.rest(host)
        else:
            sought = self._deciding.begun.sought
            self._hosts.prepare(host, sought.conditions, sought.arrivals)
        self._pending.setdefault(host, deque()).append(what)

    def _next(self) -> tuple[str, Loaded | Came | Left | None]:
        """Return what a host has done, came or left, and what it was asked for. Raises AgentsGoneError."""
        happened = self._hosts.next(self._follower)
        what = ""
        match happened:
            case Loaded():
                what = self._pending[happened.host].popleft()
                if what == PREPARE:
                    self._present[happened.host] = True
            case Left():
                del self._present[happened.host], self._pending[happened.host]
                self._boots.pop(happened.host, None)
                self._take_up()
            case Came():
                self._take_up()
            case None:
                pass
        if not self._present:
            raise self._gone()
        return what, happened

    def _take_up(self) -> None:
        """Have the hosts that are new prepare themselves; one that comes with other CPUs is left out."""
        for host in self._hosts.use(partial(_has_cpus, self._deciding.begun.search)):
            self._present[host] = False
            self._say(host, PREPARE)


# --- A host: what it does with what it is asked for.


class _HostTuning(blocks.HostRace, Events):
    """A tuning on this host."""

    def __init__(
        self, message: Mapping[str, Any], say: Callable[[dict[str, Any]], None], channel: Channel
    ) -> None:
        """Raises what is wrong with it here."""
        super().__init__(message, say, channel)
        self._held = ExitStack()
        self._record = Record(self._entry)
        self._benches: Benches | None = None

    def run(self, message: Mapping[str, Any]) -> None:
        """Do what is asked for, and say what it comes to."""
        if message["do"] == PREPARE:
            self._prepare(message)
            return
        assert self._benches is not None, "the first thing that is asked for is to prepare"
        if message["do"] == LOAD:
            self._load(self._benches, message)
        elif message["do"] == SESSION:
            self._benches.stop()
            trials = [self._here(results.read_trial(one)) for one in message["trials"]]
            with closing(session_runner(self.lab)(Session(tuple(trials)))) as every:
                for result in every:
                    self._entry(result)
        else:
            self._benches.stop()

    def _prepare(self, message: Mapping[str, Any]) -> None:
        self._held.enter_context(hold_machine(self._plan, self, None))
        self.lab = prepare_environments(self._plan, find_usable_limits(self._plan, self.lab), self)
        demands = Demands(must=tuple(map(read_stored, message["conditions"])))
        self._progress = Progress(demands)
        template = self._plan.sessions[0].trials[0]
        self._benches = self._held.enter_context(
            Benches(template, self.lab, self, self._record, self._progress, arrivals=message["arrivals"])
        )

    def _load(self, benches: Benches, message: Mapping[str, Any]) -> None:
        trial = results.read_trial(message["trial"])
        if message["alone_ms"]:
            benches.known_alone_ms[trial.contestant.stack] = message["alone_ms"]
        self._record.reserve(message["keys"])
        self._record.first_block = message["first_block"]
        before = len(self._record.results)
        ask = adapter(Ask).validate_python(message["ask"])
        if error := benches.load(Candidate(trial.contestant, 1, None), ask):
            self._say({"event": "unserved", "text": secrets.mask(error.reason)})
        self._progress.take(self._record.results[before:])

    def observed(self, _candidate: Candidate, _observed: Observation) -> None:
        """Said where the loads are judged."""

    def close(self) -> None:
        """Stop the server, and let go of the machine."""
        self._held.close()


if __name__ == "__main__":
    status = blocks.main(_HostTuning)
    sys.stdout.flush()
    sys.exit(status)

"""A race on an agent's host, block by block: what the agent holds, and the process of its own that runs the blocks.

    begin  -> a process looks whether this host can run the race: its app, interpreters, stacks
    unit   -> a block (or one session, experiment or profile), run by the code that runs races everywhere
    poll   -> what has happened since; without a poll for eight seconds the race ends here
    message -> how that goes which others do for it: loads and third parties on other hosts (`apart.py`)
    end    -> what runs is stopped in order

`python -m velodrome.run.cluster.blocks` is that process. It reads lines of JSON: first what is raced, then work units.
It writes a line for each thing that happens. It makes its environments itself, before its first work unit. The end of
its standard input, which is also the end of its agent, stops what it runs as Ctrl-C does.

It holds the machine by the measuring lock for one work unit at a time, and waits for it as long as it takes: agents of
one host take turns, each with all CPUs.
"""

import asyncio
import base64
import hashlib
import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from velodrome.guest import catalog
from velodrome.model import results, secrets
from velodrome.model.app import App, Request, ThirdParty, register_secrets
from velodrome.model.claim import Experiment
from velodrome.model.errors import UsageError, VelodromeError
from velodrome.model.results import adapter
from velodrome.model.trial import Session, Trial
from velodrome.run.account import account_for, acting_as
from velodrome.run.apps import inspect
from velodrome.run.apps.serving import seal_request
from velodrome.run.cluster import sending
from velodrome.run.cluster.apart import AgentsDriver, Around, Channel, third_elsewhere
from velodrome.run.cluster.holding import Started
from velodrome.run.environments import guest_tree
from velodrome.run.environments.environment import overlay_for
from velodrome.run.environments.interpreter import find_interpreter
from velodrome.run.experiments.running import run_experiment
from velodrome.run.lab import Apart, Lab
from velodrome.run.machine import facts
from velodrome.run.profiling import take
from velodrome.run.racing.opening import find_usable_limits, hold_machine, prepare_environments
from velodrome.run.racing.plan import plan_of
from velodrome.run.racing.race import Scheduler, WorkUnit, session_runner
from velodrome.run.supervision import own_process, scratch
from velodrome.run.supervision.undisturbed import deaf, stoppable_to_the_end

SILENT_S = 8.0
"""Without a poll for so long, a race has lost its command, which gives a block to another host two seconds later."""
LOOK_S = 0.5


# --- What is sent: the race as a whole, and work units, as JSON.


@dataclass(frozen=True)
class Needs:
    """What a race needs of a host beside its trials: plain data. It may hold secrets."""

    user: str = ""
    """Whom servers and apps run as where the agent is root."""
    cwd: str = ""
    """Folder of the app, whose owner they run as where no user is named."""
    allow_sdist: bool = False
    extra: Mapping[str, str] = field(default_factory=dict)
    """Paths of stacks of the user's own, with the fingerprint of each file."""
    databases: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    requests: tuple[Request, ...] = ()
    third_parties: tuple[ThirdParty, ...] = ()
    start_seconds: float = 10.0
    marked: tuple[str, ...] = ()
    """Names whose values the user marked as secrets."""
    apps: tuple[App, ...] = ()
    """That are to be there, as the command found them."""
    files: str = ""
    """The folder `cwd` as it is sent (`sending.py`), in base64; empty: it is there already."""

    @property
    def secret(self) -> bool:
        """Whether it may hold any."""
        withheld = any(request.fingerprint for app in self.apps for request in app.requests)
        return bool(self.variables or self.databases or self.third_parties or self.files or withheld)


def print_of(path: str) -> str:
    """Return the fingerprint of a file; empty: there is none."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def race_line(
    what: str,
    needs: Needs,
    sessions: Sequence[Session],
    experiments: Sequence[Experiment],
    profiles: Sequence[Trial],
    *,
    given: str = "blocks",
    around: Around | None = None,
) -> str:
    """Return what is raced as one line; sessions, experiments and profiles say which environments it needs.

    `around` is what is around the host, where load and third parties are on others.
    """
    return json.dumps(
        {
            "given": given,
            "what": what,
            "needs": adapter(Needs).dump_python(needs, mode="json"),
            "sessions": [[results.plain_trial(trial) for trial in session.trials] for session in sessions],
            "experiments": [
                adapter(Experiment).dump_python(experiment, mode="json") for experiment in experiments
            ],
            "profiles": [results.plain_trial(profile) for profile in profiles],
            "around": around and adapter(Around).dump_python(around, mode="json"),
        }
    )


def unit_line(unit: WorkUnit) -> str:
    """Return a work unit as one line."""
    return json.dumps(
        {
            "name": unit.name,
            "again": unit.again,
            "sessions": [
                [results.plain_trial(trial) for trial in session.trials] for session in unit.sessions
            ],
            "experiment": unit.experiment and adapter(Experiment).dump_python(unit.experiment, mode="json"),
            "profile": unit.profile and results.plain_trial(unit.profile),
        }
    )


def _sessions(plain: Sequence[Sequence[Mapping[str, Any]]]) -> list[Session]:
    return [Session(tuple(map(results.read_trial, trials))) for trials in plain]


# --- The agent's part: starts the process, hands work units to it, keeps what it says until it is fetched.


class _Race:
    """The race that an agent runs a part of."""

    def __init__(self, number: str, child: Started) -> None:
        self.number, self.child = number, child
        self.events: list[str] = []
        self.first = 0
        """Number of the first event that is kept."""
        self.polled = time.monotonic()
        self.handed: dict[str, int] = {}
        """Number of the last work unit, and of the last message on what others do for it, that its process has."""
        self.over = False
        self._writing = threading.Lock()

    def write(self, line: str) -> None:
        """Hand the process a line; a thread's work, because pipes block."""
        with self._writing, suppress(OSError, ValueError):
            self.child.send(line.encode() + b"\n")

    def listen(self) -> None:
        """Keep what the process says until it has ended; a thread of its own."""
        with self.child as child:
            rest = b""
            while chunk := child.output.read(1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                self.events += [line.decode() for line in lines]
            how = f"its process ended ({child.ending()})"
            last = " ".join(child.last_lines())
            self.events.append(json.dumps({"event": "over", "why": f"{how}. {last}".strip()}))
        self.over = True

    def since(self, after: int) -> list[str]:
        """Return the events from a number on, and forget those before."""
        del self.events[: max(0, after - self.first)]
        self.first = max(self.first, after)
        return self.events[:]


class Races:
    """The races of one agent, one at a time."""

    def __init__(
        self, taken: Callable[[], bool], start: Callable[[str], Started], serves: bool = True
    ) -> None:
        """`taken` says whether the agent does something else, `start` starts the process of a race, by what it is
        given, `serves` says whether the agent's roles let it."""
        self._taken, self._start, self._serves = taken, start, serves
        self._race: _Race | None = None
        self._starting = False
        self._watching: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether there is one."""
        return self._starting or self._race is not None

    def handlers(self) -> dict[str, Callable[..., Any]]:
        """Return what an agent answers for them."""
        return {
            "velodrome_race_begin": self.begin,
            "velodrome_race_unit": self.unit,
            "velodrome_race_message": self.message,
            "velodrome_race_poll": self.poll,
            "velodrome_race_end": self.end,
        }

    async def begin(self, race: str, message: str) -> str:
        """Start the process of a race. Returns why it is refused; empty: it is begun, and says so itself."""
        if not self._serves:
            return "its roles do not let it serve; start it with: velodrome agent --roles server"
        if self._taken() or self.busy:
            return "it does something else for another command; wait until that has ended"
        loop, given = asyncio.get_running_loop(), json.loads(message)["given"]
        self._starting = True
        try:
            child = await loop.run_in_executor(None, self._start, given)
        except VelodromeError as error:
            return str(error)
        finally:
            self._starting = False
        one = self._race = _Race(race, child)
        threading.Thread(target=one.listen, daemon=True).start()
        await self._write(one, message)
        self._watching = asyncio.ensure_future(self._watch(one))
        return ""

    async def unit(self, race: str, number: int, message: str) -> bool:
        """Hand work unit `number`, from 1, to the process. Returns whether there is such a race.

        One that comes again, because its command did not hear that it had come, is not handed on again.
        """
        return await self._hand_on("unit", race, number, message)

    async def message(self, race: str, number: int, message: str) -> bool:
        """Hand message `number`, from 1, to the process: on what others do for it. Returns as `unit` does."""
        return await self._hand_on("message", race, number, message)

    async def _hand_on(self, kind: str, race: str, number: int, message: str) -> bool:
        one = self._of(race)
        if one is None or one.over:
            return False
        one.polled = time.monotonic()
        if number > one.handed.get(kind, 0):
            one.handed[kind] = number
            await self._write(one, message)
        return True

    async def poll(self, race: str, after: int) -> str:
        """Return what has happened from event number `after` on, as JSON; null: there is no such race."""
        one = self._of(race)
        if one is None:
            return json.dumps(None)
        one.polled = time.monotonic()
        return json.dumps(one.since(after))

    async def end(self, race: str) -> bool:
        """End a race: what runs is stopped in order. Returns whether there was one."""
        one = self._of(race)
        if one is None:
            return False
        await asyncio.get_running_loop().run_in_executor(None, _ended, one)
        if self._race is one:
            self._race = None
        return True

    def close(self) -> None:
        """End what there is, as the agent ends."""
        if self._race is not None:
            with suppress(OSError, ValueError):
                self._race.child.input.close()

    def _of(self, race: str) -> _Race | None:
        return self._race if self._race is not None and self._race.number == race else None

    async def _write(self, race: _Race, message: str) -> None:
        await asyncio.get_running_loop().run_in_executor(None, race.write, message)

    async def _watch(self, race: _Race) -> None:
        """End a race that no command polls any more."""
        while self._race is race:
            await asyncio.sleep(LOOK_S)
            if time.monotonic() - race.polled > SILENT_S:
                await self.end(race.number)


def _ended(race: _Race) -> None:
    with suppress(OSError, ValueError):
        race.child.end()


# --- The process: sees what this host can run, then runs work unit after work unit.


class HostRace:
    """A race on this host."""

    def __init__(
        self, message: Mapping[str, Any], say: Callable[[dict[str, Any]], None], channel: Channel
    ) -> None:
        """`way` leads to who conducts its loads, if they come from other hosts. Raises what is wrong with the race."""
        needs = adapter(Needs).validate_python(message["needs"])
        self._what, self._say = str(message["what"]), say
        secrets.mark(needs.marked)
        for name, value in needs.variables.items():
            secrets.of_variable(name, value)
        names = tuple({name for app in needs.apps for name in app.headers})
        register_secrets(needs.requests, names)
        self._names, self._needs = names, needs
        self._folder = ""
        """Where what was sent is; removed with this process."""
        if needs.files:
            self._folder = sending.receive(needs.files)
        for path, wanted in needs.extra.items():
            if print_of(path) != wanted:
                raise UsageError(
                    f"the stack {path} is not there, or is another; copy it to the same place on every host"
                )
        extra = tuple(needs.extra)
        self.lab = Lab(
            catalog.stacks(extra),
            guest_tree.export(extra),
            extra=extra,
            databases=needs.databases,
            variables=needs.variables,
            requests=needs.requests,
            third_parties=needs.third_parties,
            start_seconds=needs.start_seconds,
            overlay=partial(overlay_for, allow_sdist=needs.allow_sdist),
            profile=take,
        )
        if message.get("around"):
            self.lab = _server_lab(self.lab, adapter(Around).validate_python(message["around"]), channel)
        sessions = [
            Session(tuple(map(self._here, session.trials))) for session in _sessions(message["sessions"])
        ]
        experiments = [adapter(Experiment).validate_python(one) for one in message["experiments"]]
        profiles = [self._here(results.read_trial(one)) for one in message["profiles"]]
        self._refuse_unknown([*(session.trials[0] for session in sessions), *profiles])
        self.pythons = self._pythons([session.trials[0] for session in sessions])
        for app in needs.apps:
            self._refuse_other(self._local_app(app))
        self._plan = plan_of(
            self._what, sessions, self.lab, experiments=experiments, profiles=profiles
        )  # raises for limits that cannot be held here
        self._prepared = False

    def _here(self, trial: Trial) -> Trial:
        """Return a trial as this host can send it: what is withheld of requests is known again by a key of its own."""
        if trial.app is not None and self._folder:
            trial = replace(trial, app=self._local_app(trial.app))
        app, full = trial.app, self._needs.requests
        if app is None or len(full) != len(app.requests) or not any(one.fingerprint for one in app.requests):
            return trial
        requests = tuple(seal_request(request, self._names) for request in full)
        return replace(trial, app=replace(app, requests=requests))

    def _local_app(self, app: App) -> App:
        """Return an app as it lies here, if its folder was sent."""
        if not self._folder or app.cwd != self._needs.cwd:
            return app
        return replace(app, cwd=self._folder, proto=sending.inside(app.proto, app.cwd, self._folder))

    def _refuse_unknown(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            if trial.contestant.stack not in self.lab.stacks:
                raise UsageError(
                    f"it does not know the stack {trial.contestant.stack}; install what brings it there, too"
                )

    def _pythons(self, trials: Sequence[Trial]) -> dict[str, str]:
        """Return the version of each interpreter that is named; of velodrome's own, by no name."""
        named = {trial.app.python if trial.app else trial.interpreter for trial in trials}
        return {name: find_interpreter(name or None).version for name in sorted(named)}

    def _refuse_other(self, app: App) -> None:
        """Refuse an app that is not here, or is another here."""
        variables = {
            **self._needs.variables,
            **{third_party.variable: inspect.NOBODY for third_party in app.third_parties},
        }
        here = inspect.look(replace(app, interface=app.named_interface), variables)
        for what in ("path", "interface", "form", "framework"):
            theirs, ours = getattr(app, what), getattr(here, what)
            if theirs != ours:
                raise UsageError(
                    f"{app.path} is another app there: its {what} is {ours}, and {theirs} where the command runs. "
                    f"Copy the same app to {app.cwd} on every host"
                )
        names = sorted(app.packages.keys() | here.packages.keys())
        differing = [name for name in names if app.packages.get(name) != here.packages.get(name)]
        if differing:
            first = differing[0]
            raise UsageError(
                f"beside {app.path} is {first} {here.packages.get(first, '(none)')} there, and "
                f"{app.packages.get(first, '(none)')} where the command runs ({len(differing)} packages differ). "
                "Install the same on every host"
            )

    def run(self, message: Mapping[str, Any]) -> None:
        """Run a work unit, and say what it comes to as it comes."""
        sent = _sessions(message["sessions"])
        sessions = [Session(tuple(map(self._here, one.trials))) for one in sent]
        original = {trial.key: trial for one in sent for trial in one.trials}
        experiments = (
            [adapter(Experiment).validate_python(message["experiment"])] if message["experiment"] else []
        )
        profiles = [self._here(results.read_trial(message["profile"]))] if message["profile"] else []
        plan = plan_of(self._what, sessions, self.lab, experiments=experiments, profiles=profiles)
        with hold_machine(plan, self, None):
            if not self._prepared:
                self.lab = prepare_environments(self._plan, find_usable_limits(self._plan, self.lab), self)
                self._prepared = True
            plan = plan_of(self._what, sessions, self.lab, experiments=experiments, profiles=profiles)
            for experiment in plan.experiments:
                self._say({"event": "session", "label": f"experiment {experiment.name}"})
                self._entry(run_experiment(experiment, self.lab))
            for profile in plan.profiles:
                self._say({"event": "session", "label": f"profile of {profile.cell}"})
                self._profile(profile, results.read_trial(message["profile"]))
            every = (
                Scheduler(plan, self.warned).results(self.lab, self)
                if message["again"]
                else (one for session in sessions for one in self._serve(session))
            )
            for result in every:
                self._entry(replace(result, trial=original[result.trial.key]))

    def _serve(self, session: Session) -> Iterator[results.Result]:
        self._say({"event": "session", "label": session.trials[0].cell})
        with closing(session_runner(self.lab)(session)) as found:
            yield from found

    def _profile(self, trial: Trial, original: Trial) -> None:
        with scratch.hold_folder("profile") as folder:
            found = replace(take(trial, self.lab, folder), trial=original)
            files = {
                name: base64.b64encode((folder / name).read_bytes()).decode()
                for name in (found.collapsed, found.speedscope)
                if name and (folder / name).is_file()
            }
        self._entry(found, files=files)

    def _entry(self, entry: results.Entry, **more: Any) -> None:
        self._say({"event": "entry", "line": results.dump(secrets.mask_noun(entry)), **more})

    def close(self) -> None:
        """End what is kept from one work unit to the next: nothing."""

    def warned(self, sentence: str) -> None:
        """Hand on what a use of an app is warned of."""
        self._say({"event": "warning", "text": secrets.mask(sentence)})

    # What the code that runs races tells whoever follows it.

    def preparing(self, text: str) -> None:
        """Hand it on."""
        self._say({"event": "preparing", "text": secrets.mask(text)})

    def session_started(self, label: str, _seconds_left: float | None) -> None:
        """Hand it on: how long the rest takes is known where the blocks are given out."""
        self._say({"event": "session", "label": label})


def _server_lab(lab: Lab, around: Around, channel: Channel) -> Lab:
    """Return the lab of a host that is the server's alone."""
    return replace(
        lab,
        driver=lambda _name, _placed, seed: AgentsDriver(channel, around, seed),
        third_party=lambda third, cpus=(), seed=1: third_elsewhere(channel, third, seed),
        apart=Apart(around.address, around.load_cpus),
        cpus=around.cpus,
    )


class Working(Protocol):
    """What a process on a host does for its command: a race, or what else it is given (`holding.RACES`)."""

    @property
    def pythons(self) -> Mapping[str, str]:
        """Version of each interpreter that is named, which is to be the same on all hosts."""

    def run(self, message: Mapping[str, Any]) -> None:
        """Do one thing, and say what it comes to."""

    def close(self) -> None:
        """End what is kept from one thing to the next."""


class Answering:
    """Does what is no race for apps of this host, one after the other; an entry is what is found, or why nothing is."""

    pythons: Mapping[str, str] = {}
    """None is compared: each app has its own."""

    def __init__(
        self, message: Mapping[str, Any], say: Callable[[dict[str, Any]], None], _channel: Channel
    ) -> None:
        secrets.mark(message["marked"])
        self._say = say

    def answer(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what is found, as JSON has it. Raises VelodromeError."""
        raise NotImplementedError

    def run(self, message: Mapping[str, Any]) -> None:
        """Say what is found, or why that cannot be."""
        try:
            found = self.answer(message)
        except VelodromeError as error:
            found = {"reason": secrets.mask(str(error)), "exit_code": error.exit_code}
        self._say({"event": "entry", **found})

    def close(self) -> None:
        """End what is kept from one app to the next: nothing."""


Made = Callable[[Mapping[str, Any], Callable[[dict[str, Any]], None], Channel], Working]


def main(made: Made = HostRace) -> int:
    """Do what lines on standard input say until it ends; `made` does each, and raises what is wrong with the first."""
    own_process.pin()
    own_process.give_up_root(keep=0)  # where the agent holds it; else whoever runs velodrome goes on as such
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # whoever started the agent may have had it ignored
    stoppable_to_the_end()
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what else is printed is no event
    saying = threading.Lock()

    def say(event: dict[str, Any]) -> None:
        with saying, suppress(BrokenPipeError):
            left = memoryview(json.dumps(event).encode() + b"\n")
            while left:
                left = left[output.write(left) :]

    channel = Channel(say)
    threading.Thread(target=_read, args=(lines, channel), daemon=True).start()
    try:
        return _serve(lines, say, channel, made)
    except KeyboardInterrupt:
        return 130
    finally:
        deaf()


MESSAGE = b'{"about": '
"""How a line begins that is about what others do for this process, and no work unit."""


def _read(lines: "queue.SimpleQueue[bytes]", channel: Channel) -> None:
    rest = b""
    while chunk := os.read(0, 1 << 16):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line.startswith(MESSAGE):
                channel.receive(json.loads(line))
            else:
                lines.put(line)
    os.kill(os.getpid(), signal.SIGINT)


def _serve(
    lines: "queue.SimpleQueue[bytes]", say: Callable[[dict[str, Any]], None], channel: Channel, made: Made
) -> int:
    message = json.loads(lines.get())
    try:
        account = account_for(message["needs"]["user"], message["needs"]["cwd"])
    except VelodromeError as error:
        say({"event": "refused", "why": str(error)})
        return 2
    with acting_as(account):
        try:
            race = made(message, say, channel)
        except Exception as error:
            say({"event": "refused", "why": secrets.mask(own_process.in_words(error))})
            return 2
        say({"event": "ready", "facts": dict(facts.facts()), "pythons": race.pythons})
        with closing(race):
            while True:
                unit = json.loads(lines.get())
                try:
                    race.run(unit)
                except Exception as error:  # this host refuses it, or it is a bug: another may do it
                    say({"event": "failed", "why": secrets.mask(own_process.in_words(error))})
                    return 3
                say({"event": "whole"})


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.exit(status)

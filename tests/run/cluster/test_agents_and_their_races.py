"""A race over agents whose connections break: nothing is run twice, nothing is torn; no process is started."""

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
from tests.run import made
from tests.run.racing.short_race import Recorder, lab, raced, sessions, study

from velodrome.model import results
from velodrome.model.errors import AgentLostError, AgentsDifferError, AgentsRefuseRaceError
from velodrome.model.results import read_trial
from velodrome.run import engine
from velodrome.run.cluster import blocks, conducting, handing, talking
from velodrome.run.cluster.agent import VERSION
from velodrome.run.cluster.conducting import Player
from velodrome.run.cluster.holding import Own, Policy
from velodrome.run.racing import race, store
from velodrome.run.racing.race import Race
from velodrome.run.supervision import python

ADDRESS = talking.Address("tcp", "127.0.0.1", 1)
WAY = talking.security("tcp")


class Process:
    """Stands for the process of a race: answers each work unit as it comes."""

    def __init__(self, version: str = "3.11.7", refuses: str = "") -> None:
        self.units: list[str] = []
        self._in, self._work = os.pipe()
        self._out, self._said = os.pipe()
        self.output = os.fdopen(self._out, "rb", buffering=0)
        self.input = os.fdopen(self._work, "wb", buffering=0)
        self._version, self._refuses = version, refuses
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with os.fdopen(self._in, "rb") as lines, os.fdopen(self._said, "wb", buffering=0) as out:

            def say(**event: Any) -> None:
                out.write(json.dumps(event).encode() + b"\n")

            lines.readline()
            if self._refuses:
                say(event="refused", why=self._refuses)
                return
            say(event="ready", facts={"cpu": "made up"}, pythons={"": self._version})
            for line in lines:
                unit = json.loads(line)
                self.units.append(unit["name"])
                for trial in (read_trial(plain) for session in unit["sessions"] for plain in session):
                    say(event="entry", line=results.dump(made.measurement(trial)))
                say(event="whole")

    def send(self, message: bytes) -> None:
        self.input.write(message)

    def end(self) -> int:
        self.input.close()
        return 0

    def ending(self) -> str:
        return "exit 0"

    def last_lines(self) -> tuple[str, ...]:
        return ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.output.close()


class Line:
    """Stands for the connection to an agent; `breaks` says which calls are lost, and whether on the way back."""

    def __init__(self, name: str, breaks: Callable[[str, int], str]) -> None:
        self.address, self.name, self._breaks = f"tcp://{name}", name, breaks
        self.races = blocks.Races(lambda: False, Own(Policy()).race)
        self.calls: dict[str, int] = {}

    async def call(self, operation: str, _limit_s: float = 0.0, **facts: Any) -> Any:
        number = self.calls[operation] = self.calls.get(operation, 0) + 1
        how = self._breaks(operation.removeprefix("velodrome_race_"), number)
        if how == "there":
            raise AgentLostError(self.name, self.address, "cut")
        found = await self.races.handlers()[operation](**facts)
        if how == "back":
            raise AgentLostError(self.name, self.address, "cut")
        return found

    async def close(self) -> None:
        """Nothing is open."""


@contextmanager
def agents(
    monkeypatch: pytest.MonkeyPatch,
    processes: Mapping[str, Process],
    breaks: Callable[[str, int], str] = lambda _operation, _number: "",
    *,
    facts: Mapping[str, str] | None = None,
) -> Iterator[handing.Hosts]:
    """Yield agents of these names as hosts of a race; `facts` are of the last of them."""
    waiting = list(processes.values())
    monkeypatch.setattr(python, "start_own", lambda _module: waiting.pop(0))
    monkeypatch.setattr(handing, "POLL_S", 0.01)
    monkeypatch.setattr(handing, "LOST_S", 0.3)
    players: list[Player] = []
    for number, name in enumerate(processes, 1):
        known: dict[str, Any] = {
            "name": name,
            "host": name,
            "machine": name,
            "roles": ["load"],
            "busy": False,
        }
        known |= {"version": VERSION, "engine": engine.VERSION}
        line: Any = Line(name, breaks if number == len(processes) else lambda _operation, _number: "")
        players.append(Player(line, known | dict((facts or {}) if number == len(processes) else {})))

    async def present(*_: object) -> Sequence[Player]:
        return players

    async def workers(*_: object) -> Mapping[str, Mapping[str, Any]]:
        return {player.line.address: {} for player in players}

    monkeypatch.setattr(conducting, "present", present)
    monkeypatch.setattr(talking, "workers", workers)
    with handing.hosts(ADDRESS, WAY, lambda _lab, _study: blocks.Needs()) as found:
        yield found


def run(out: Path, hosts: handing.Hosts, count: int = 3) -> race.Finished:
    whole = study(blocks=count)
    return raced(Race(whole, sessions(whole), out, elsewhere=hosts), lab(), Recorder())


def hosts_by_block(out: Path) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for trial in store.read(out).trials:
        assert trial.machine is not None
        found.setdefault(trial.trial.block, set()).add(trial.machine.name)
    return found


def test_a_work_unit_whose_answer_was_lost_is_not_run_twice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    process = Process()

    def breaks(operation: str, number: int) -> str:
        return {"unit": "back" if number % 2 else "", "poll": "there" if number % 3 == 0 else ""}.get(
            operation, ""
        )

    with agents(monkeypatch, {"a": process}, breaks) as hosts:
        assert run(tmp_path / "run", hosts).how == "complete"
    assert process.units == ["block 1", "block 2", "block 3"]
    lines = (tmp_path / "run" / store.NAME).read_text().splitlines()
    assert len(lines) == 1 + 12


def test_an_agent_that_is_cut_off_gives_its_block_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = False

    def breaks(operation: str, _number: int) -> str:
        nonlocal given
        cut, given = given, given or operation == "unit"
        return "there" if cut else ""

    with agents(monkeypatch, {"a": Process(), "b": Process()}, breaks) as hosts:
        assert run(tmp_path / "run", hosts, 6).how == "complete"
    found = hosts_by_block(tmp_path / "run")
    assert sorted(found) == [0, 1, 2, 3, 4, 5]
    assert all(len(names) == 1 for names in found.values())
    assert {"a"} in found.values()


def test_with_all_cut_off_the_race_ends_with_what_there_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def breaks(operation: str, number: int) -> str:
        return "there" if operation == "unit" and number > 1 else ""

    with agents(monkeypatch, {"a": Process()}, breaks) as hosts:
        ended = run(tmp_path / "run", hosts)
        assert (ended.how, ended.done) == (race.AGENTS_GONE, 4)
        assert "a: cut" in hosts.gone


def test_what_an_agent_refuses_is_reported_with_its_name_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    processes = {"a": Process(), "b": Process(refuses="there is no folder /srv/shop")}
    with (
        agents(monkeypatch, processes) as hosts,
        pytest.raises(AgentsRefuseRaceError, match=r"b .*/srv/shop"),
    ):
        run(tmp_path / "run", hosts)
    assert not (tmp_path / "run").exists()
    assert processes["a"].units == []


@pytest.mark.parametrize(
    ("facts", "version", "match"),
    [({"version": "9.9.9"}, "3.11.7", r"b has 9\.9\.9"), ({}, "3.99.1", r"b has 3\.99\.1")],
    ids=["velodrome", "python"],
)
def test_agents_that_differ_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, facts: dict[str, str], version: str, match: str
) -> None:
    with (
        agents(monkeypatch, {"a": Process(), "b": Process(version)}, facts=facts) as hosts,
        pytest.raises(AgentsDifferError, match=match),
    ):
        run(tmp_path / "run", hosts)
    assert not (tmp_path / "run").exists()


def test_secrets_are_not_sent_over_plain_tcp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needs = blocks.Needs(variables={"SHOP_TOKEN": "hunter22"})
    far = talking.Address("tcp", "192.0.2.7", 8786)
    with (
        agents(monkeypatch, {"a": Process()}),
        handing.hosts(far, WAY, lambda _lab, _study: needs) as hosts,
        pytest.raises(AgentsRefuseRaceError, match="TLS"),
    ):
        run(tmp_path / "run", hosts)

"""A race over agents: each block whole on one host, what lost hosts had is run again, and what cannot be is refused."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from tests.run.cluster.posing import HOST, SOON_S, agent, races_of
from tests.run.supervision.ends import living
from tests.waiting import eventually

from velodrome.guest import catalog
from velodrome.judge.verdict import judge
from velodrome.model.errors import (
    AgentsDifferError,
    AgentsGoneError,
    AgentsRefuseRaceError,
    NoAgentsError,
    StudyChangedError,
)
from velodrome.model.load import Closed, Load
from velodrome.model.measurement import Measurement
from velodrome.model.results import Result
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant
from velodrome.run.cluster import coordinator
from velodrome.run.racing import store
from velodrome.usecases import race
from velodrome.usecases.apps import AppSpec
from velodrome.usecases.compare import CompareSpec, compare
from velodrome.usecases.events import Events
from velodrome.usecases.race import RaceSpec
from velodrome.usecases.studies import Trust
from velodrome.usecases.terms import Terms

ODD = "agent.VERSION = '9.9.9'"
HELLO = catalog.recipes()["hello"]
CONTESTANTS = (Contestant("socketserver-single"), Contestant("asyncio-streams"))
TRUST = Trust(given=True, ask=None, say=lambda _: None)


@pytest.fixture(autouse=True)
def own_lock(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the agents here take turns with each other, and not wait for what else measures: no figure is looked at."""
    monkeypatch.setenv("VELODROME_LOCK", str(tmp_path_factory.mktemp("lock") / "measuring.lock"))


def study(blocks: int = 2, seconds: float = 0.2) -> Study:
    question = Question("hello", HELLO, (Load(Closed(2), seconds, 0.05),))
    return Study("over-hosts", "A race over hosts", (question,), CONTESTANTS, blocks=blocks)


class Seen(Events):
    """Keeps the messages, and does something at the first result."""

    def __init__(self, at_first: Callable[[Result], None] = lambda _: None) -> None:
        self.results: list[Result] = []
        self.messages: list[str] = []
        self.labels: list[str] = []
        self._at_first = at_first

    def preparing(self, text: str) -> None:
        self.messages.append(text)

    def session_started(self, label: str, seconds_left: float | None) -> None:
        self.labels.append(label)

    def finished(self, result: Result) -> None:
        self.results.append(result)
        if len(self.results) == 1:
            self._at_first(result)


def hosts_by_block(out: Path) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for trial in store.read(out).trials:
        assert trial.machine is not None
        assert trial.machine.facts["cpus"] == os.cpu_count()
        found.setdefault(trial.trial.block, set()).add(trial.machine.name)
    return found


def test_whole_blocks_run_on_each_host_and_are_judged_together(tmp_path: Path) -> None:
    seen = Seen()
    with ExitStack() as stack:
        address = stack.enter_context(coordinator.coordinating(HOST, 0, 0))
        with pytest.raises(NoAgentsError):
            race.race(RaceSpec(study(), agents=address), TRUST, tmp_path / "none", seen)
        assert not (tmp_path / "none").exists()
        for name in ("a", "b"):
            stack.enter_context(agent(address, name))
        raced = race.race(RaceSpec(study(), agents=address), TRUST, tmp_path / "run", seen)
    run = store.read(raced.folder)
    assert raced.how == "complete"
    assert sorted(hosts_by_block(raced.folder).values(), key=str) == [{"host-of-a"}, {"host-of-b"}]
    assert {trial.trial.key for trial in run.trials} == {
        f"hello/{contestant.label}/closed-2/{block}" for contestant in CONTESTANTS for block in (0, 1)
    }
    assert {label.rpartition(" on ")[2] for label in seen.labels} == {"a", "b"}
    verdict = judge([run], catalog.stacks())
    assert "2 hosts" in " ".join(verdict.notes)
    assert verdict.answers[0].standings[0].blocks_done == 2
    with pytest.raises(StudyChangedError, match="--agents"):
        race.race(RaceSpec(study(3), resume=True), TRUST, raced.folder, Events())


@pytest.mark.exhaustive
def test_what_one_host_cannot_run_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with ExitStack() as stack:
        address = stack.enter_context(coordinator.coordinating(HOST, 0, 1))
        (tmp_path / "shop.py").write_text(
            "def app(environ, start):\n    start('200 OK', [])\n    return [b'x']\n"
        )
        app = AppSpec("shop:app", cwd=str(tmp_path), requests=())
        terms = Terms(seconds=0.5, blocks=1, stacks=("waitress",))

        class Moves(Events):
            """Takes the app away once the command has looked at it."""

            def said(self, sentence: str) -> None:
                if "shop:app" in sentence:
                    (tmp_path / "shop.py").unlink(missing_ok=True)

        with pytest.raises(AgentsRefuseRaceError, match="shop"):
            compare(CompareSpec((app,), terms, agents=address), tmp_path / "app", Moves())
        assert not (tmp_path / "app" / store.NAME).exists()
        with pytest.raises(AgentsRefuseRaceError, match=r"3\.99"):
            race.race(RaceSpec(study(), python="3.99", agents=address), TRUST, tmp_path / "old", Events())
        stack.enter_context(agent(address, "odd", ODD))
        with pytest.raises(AgentsDifferError, match=r"9\.9\.9"):
            race.race(RaceSpec(study(), agents=address), TRUST, tmp_path / "odd", Events())


@pytest.mark.exhaustive
def test_an_app_is_compared_over_hosts_and_its_secrets_are_stored_nowhere(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "def app(environ, start):\n"
        "    known = environ.get('HTTP_X_API_KEY') == 'hunter22-hunter22'\n"
        "    start('200 OK' if known else '401 Unauthorized', [('Content-Length', '1')])\n"
        "    return [b'x']\n"
    )
    app = AppSpec("shop:app", cwd=str(tmp_path), headers=(("X-Api-Key", "hunter22-hunter22"),))
    terms = Terms(seconds=0.5, blocks=2, warmup_s=0.1, stacks=("waitress",))
    with ExitStack() as stack:
        address = stack.enter_context(coordinator.coordinating(HOST, 0, 0))
        for name in ("a", "b"):
            stack.enter_context(agent(address, name))
        raced = compare(CompareSpec((app,), terms, agents=address), tmp_path / "run", Events())
    assert raced.how == "complete"
    assert {*hosts_by_block(tmp_path / "run")} == {0, 1}
    measured = store.read(tmp_path / "run").trials
    assert all(
        isinstance(trial, Measurement) and not trial.load.outcomes.get("bad_status") for trial in measured
    )
    stored = b"".join(
        path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "run" in path.parts
    )
    assert b"hunter22" not in stored


@pytest.mark.exhaustive
@pytest.mark.parametrize("what", ["agent", "its race"])
def test_what_a_killed_host_had_is_run_anew_by_another_and_nothing_is_torn(tmp_path: Path, what: str) -> None:
    killed: list[str] = []
    left: list[psutil.Process] = []
    with ExitStack() as stack:
        address = stack.enter_context(coordinator.coordinating(HOST, 0, 0))
        agents = {f"host-of-{name}": stack.enter_context(agent(address, name)) for name in ("a", "b")}

        def kill(result: Result) -> None:
            assert result.machine is not None
            killed.append(result.machine.name)
            victim = agents[result.machine.name]
            left.extend(races_of(victim.pid))
            pid = victim.pid if what == "agent" else psutil.Process(victim.pid).children()[0].pid
            os.kill(pid, signal.SIGKILL)

        raced = race.race(RaceSpec(study(4), agents=address), TRUST, tmp_path / "run", Seen(kill))
        assert raced.how == "complete"
    hosts = hosts_by_block(tmp_path / "run")
    assert sorted(hosts) == [0, 1, 2, 3]
    assert all(len(names) == 1 for names in hosts.values())
    assert hosts[0] | hosts[1] >= {next(iter({"host-of-a", "host-of-b"} - set(killed)))}
    assert eventually(lambda: not living(left), SOON_S)


@pytest.mark.exhaustive
def test_with_nobody_left_what_is_known_is_kept_and_resume_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with ExitStack() as stack:
        address = stack.enter_context(coordinator.coordinating(HOST, 0, 0))
        only = stack.enter_context(agent(address, "a"))
        with pytest.raises(AgentsGoneError, match="of 6 trials"):
            race.race(
                RaceSpec(study(3), agents=address),
                TRUST,
                out,
                Seen(lambda _: os.kill(only.pid, signal.SIGKILL)),
            )
        kept = store.read(out)
        assert 0 < len(kept.trials) < 6
        stack.enter_context(agent(address, "c"))
        raced = race.race(RaceSpec(study(3), agents=address, resume=True), TRUST, out, Events())
        assert raced.how == "complete"
    hosts = hosts_by_block(out)
    assert sorted(hosts) == [0, 1, 2]
    assert all(len(names) == 1 for names in hosts.values())


@pytest.mark.exhaustive
def test_a_host_that_comes_while_a_race_runs_is_given_blocks(tmp_path: Path) -> None:
    with ExitStack() as stack:
        address = stack.enter_context(coordinator.coordinating(HOST, 0, 0))
        stack.enter_context(agent(address, "a"))

        def come(_result: Result) -> None:
            stack.enter_context(agent(address, "late"))

        race.race(RaceSpec(study(8, 0.5), agents=address), TRUST, tmp_path / "run", Seen(come))
    assert set().union(*hosts_by_block(tmp_path / "run").values()) == {"host-of-a", "host-of-late"}


@pytest.mark.exhaustive
def test_an_agent_whose_command_is_gone_stops_its_block(tmp_path: Path) -> None:
    with ExitStack() as stack:
        address = stack.enter_context(coordinator.coordinating(HOST, 0, 0))
        process = stack.enter_context(agent(address, "a"))
        code = (
            "import sys; from tests.run.cluster.test_blocks_over_hosts import *;"
            f"race.race(RaceSpec(study(5, 20.0), agents={address!r}), TRUST, Path({str(tmp_path / 'run')!r}), Events())"
        )
        command = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[3])
        assert eventually(lambda: len(races_of(process.pid)) > 2, SOON_S)
        running = races_of(process.pid)
        command.kill()
        command.wait()
        assert eventually(lambda: not living(running), SOON_S)
        assert process.poll() is None

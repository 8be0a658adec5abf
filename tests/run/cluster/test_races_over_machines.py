"""A race whose server, load and third parties are on agents of their own; here all of one machine, over loopback."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from tests.run.cluster.posing import SOON_S, races_of
from tests.run.supervision.ends import living
from tests.waiting import eventually

from velodrome.guest import catalog
from velodrome.guest.recipe import Body, Call, Recipe
from velodrome.judge.verdict import judge
from velodrome.model.errors import (
    AgentRefusedError,
    AgentsGoneError,
    NoAgentsError,
    PlacingError,
    UsageError,
)
from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import FlagKind, Measurement
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant
from velodrome.run.cluster import coordinator
from velodrome.run.lab import OnHosts
from velodrome.run.racing import store
from velodrome.usecases import race
from velodrome.usecases.apps import AppSpec
from velodrome.usecases.compare import CompareSpec, compare
from velodrome.usecases.events import Events
from velodrome.usecases.race import RaceSpec
from velodrome.usecases.studies import Trust
from velodrome.usecases.terms import Terms

HOST = "127.0.0.1"
ROOT = Path(__file__).parents[3]
AGENT = """
import asyncio, sys
from velodrome.run.cluster import agent, talking
name, roles, cpus = sys.argv[2], tuple(sys.argv[3].split(",")), tuple(map(int, filter(None, sys.argv[4].split(","))))
asyncio.run(agent.serve(sys.argv[1], agent.Policy(name, roles, cpus), talking.security("tcp"), host="127.0.0.1",
                        on_ready=lambda _: print("here", flush=True)))
"""
HELLO = catalog.recipes()["hello"]
CALLING = Recipe("calling", "Calls a third party", (Call(5.0), Body(64)))
CONTESTANTS = (Contestant("socketserver-single"), Contestant("asyncio-streams"))
TRUST = Trust(given=True, ask=None, say=lambda _: None)


@pytest.fixture(autouse=True)
def own_lock(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what is served here wait for nothing else that measures: no figure is looked at."""
    monkeypatch.setenv("VELODROME_LOCK", str(tmp_path_factory.mktemp("lock") / "measuring.lock"))


def study(recipe: Recipe = HELLO, blocks: int = 2, loads: Sequence[Load] = ()) -> Study:
    loads = loads or (Load(Closed(2), 0.3, 0.1), Load(Open(200.0, "poisson"), 0.3, 0.1))
    question = Question(recipe.name, recipe, tuple(loads))
    return Study("over-machines", "A race over machines", (question,), CONTESTANTS, blocks=blocks)


@contextmanager
def agents(address: str, **roles: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Run agents with these roles, each by its name; all start at once."""
    started = {
        name: subprocess.Popen(
            [sys.executable, "-c", AGENT, address, name, own, ""],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for name, own in roles.items()
    }
    try:
        for process in started.values():
            assert process.stdout is not None
            assert process.stdout.readline() == b"here\n"
        yield started
    finally:
        for process in started.values():
            process.kill()
            process.communicate()


@contextmanager
def cluster(**roles: str) -> Iterator[tuple[str, dict[str, subprocess.Popen[bytes]]]]:
    """Run a coordinator and agents with these roles, each by its name."""
    with coordinator.coordinating(HOST, 0, 0) as address, agents(address, **roles) as started:
        yield address, started


class Seen(Events):
    """Keeps the messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def preparing(self, text: str) -> None:
        self.messages.append(text)


def test_the_server_and_its_load_and_third_party_are_of_agents_of_their_own(tmp_path: Path) -> None:
    seen = Seen()
    with cluster(serves="server", loads="load", more="load", third="third-party") as (address, _):
        # Long beside what is in flight at either end, which is counted on one side only.
        loads = (Load(Closed(2), 1.5, 0.1), Load(Open(200.0, "poisson"), 1.5, 0.1))
        spec = RaceSpec(study(CALLING, 1, loads), agents=address)
        raced = race.race(spec, TRUST, tmp_path / "run", seen)
    assert raced.how == "complete"
    run = store.read(tmp_path / "run")
    assert len(run.trials) == 4
    for trial in run.trials:
        assert isinstance(trial, Measurement), trial
        assert [loader.name for loader in trial.load.loaders] == ["loads", "more"]
        assert sum(loader.requests for loader in trial.load.loaders) == trial.load.requests > 0
        assert all(
            loader.round_trip_ms is not None and loader.round_trip_ms > 0 for loader in trial.load.loaders
        )
        assert trial.placement.apart
        assert len(trial.placement.server_cpus) == len(os.sched_getaffinity(0))
        assert trial.upstream is not None
        assert trial.upstream.agent == "third"
        assert trial.upstream.requests >= trial.load.ok * 0.5
        assert trial.server.cpu_s > 0
    verdict = judge([run], catalog.stacks())
    assert any("loads" in note and "more" in note and "server ran" in note for note in verdict.notes)
    assert any("serves" in text and "loads" in text for text in seen.messages)


def test_what_cannot_be_placed_is_refused_with_its_name_before_anything_is_started(tmp_path: Path) -> None:
    def refused(address: str, on: OnHosts, recipe: Recipe = HELLO) -> str:
        with pytest.raises((PlacingError, NoAgentsError, AgentRefusedError, UsageError)) as error:
            race.race(RaceSpec(study(recipe), agents=address, on=on), TRUST, tmp_path / "run", Events())
        assert not (tmp_path / "run").exists()
        return str(error.value)

    with cluster(serves="server", loads="load") as (address, _):
        assert "elsewhere" in refused(address, OnHosts(server="elsewhere"))
        assert "serves" in refused(address, OnHosts(load=("serves",)))  # its role is another
        assert "loads" in refused(address, OnHosts(server="loads", load=("loads",)))
        assert "--third-party-on" in refused(address, OnHosts(), CALLING)
        assert "--agents" in refused("", OnHosts(server="serves"))
        plan = race.dry_run(RaceSpec(study(), agents=address), TRUST, tmp_path / "run")
        assert "serves" in plan.hosts[0]
        assert "loads" in plan.hosts[0]
        assert all(session.seat.placement.apart for session in plan.sessions)
        assert not (tmp_path / "run").exists()
    with cluster(serves="server") as (address, _):
        assert "role load" in refused(address, OnHosts())
    with cluster(loads="load", more="load") as (address, _):
        assert "role server" in refused(address, OnHosts(load=("loads",)))


@pytest.mark.exhaustive
def test_a_loading_agent_that_is_killed_spoils_its_trial_ends_the_race_and_resume_goes_on(
    tmp_path: Path,
) -> None:
    out, loads = tmp_path / "run", (Load(Open(100.0, "poisson"), 3.0, 0.2),)
    wanted = study(blocks=2, loads=loads)
    with cluster(serves="server", loads="load", more="load") as (address, there):

        class Kills(Events):
            """Kills an agent while the second server is loaded."""

            number = 0

            def session_started(self, label: str, seconds_left: float | None) -> None:
                Kills.number += 1
                if Kills.number == 2:
                    threading.Timer(2.0, lambda: os.kill(there["more"].pid, signal.SIGKILL)).start()

        with pytest.raises(AgentsGoneError, match="more"):
            race.race(RaceSpec(wanted, agents=address), TRUST, out, Kills())
        kept = store.read(out).trials
        spoilt = [
            trial for trial in kept if isinstance(trial, Measurement) and FlagKind.AGENT_LOST in trial.doubts
        ]
        assert [
            loader.name for measurement in spoilt for loader in measurement.load.loaders if loader.lost
        ] == ["more"]
        assert len(kept) < 4
        with agents(address, more="load"):
            raced = race.race(RaceSpec(wanted, agents=address, resume=True), TRUST, out, Events())
    assert raced.how == "complete"
    whole = store.read(out).trials
    assert len(whole) == 4


@pytest.mark.exhaustive
@pytest.mark.parametrize("victim", ["serves", "third"])
def test_a_host_that_serves_or_has_the_third_party_and_dies_ends_the_race_and_resume_goes_on(
    tmp_path: Path, victim: str
) -> None:
    out, wanted = tmp_path / "run", study(CALLING, 2, (Load(Open(50.0, "poisson"), 1.0, 0.2),))
    roles = {"serves": "server", "loads": "load", "third": "third-party"}
    with cluster(**roles) as (address, there):

        class Kills(Events):
            """Kills an agent at the second result."""

            number = 0

            def finished(self, result: object) -> None:
                Kills.number += 1
                if Kills.number == 2:
                    os.kill(there[victim].pid, signal.SIGKILL)

        with pytest.raises(AgentsGoneError, match=victim):
            race.race(RaceSpec(wanted, agents=address), TRUST, out, Kills())
        assert len(store.read(out).trials) < 4
        with agents(address, **{victim: roles[victim]}):
            raced = race.race(RaceSpec(wanted, agents=address, resume=True), TRUST, out, Events())
    assert raced.how == "complete"
    assert [type(trial) for trial in store.read(out).trials] == [Measurement] * 4


@pytest.mark.exhaustive
def test_a_command_that_is_killed_leaves_nothing_on_any_host_and_resume_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    code = (
        "import sys; from tests.run.cluster.test_races_over_machines import *;"
        "wanted = study(CALLING, 3, (Load(Open(50.0, 'poisson'), 2.0, 0.2),));"
        "spec = RaceSpec(wanted, agents=sys.argv[1], resume=sys.argv[3:] == ['resume']);"
        "race.race(spec, TRUST, Path(sys.argv[2]), Events())"
    )
    with cluster(serves="server", loads="load", third="third-party") as (address, there):
        usual = {name: set(races_of(process.pid)) for name, process in there.items()}

        def more() -> dict[str, set[psutil.Process]]:
            return {name: set(living(races_of(process.pid))) - usual[name] for name, process in there.items()}

        def results() -> int:
            return len((out / store.NAME).read_text().splitlines()) - 1 if (out / store.NAME).exists() else 0

        words = [sys.executable, "-c", code, address, str(out)]
        command = subprocess.Popen(words, cwd=ROOT)
        assert eventually(lambda: results() >= 1, SOON_S)
        assert eventually(lambda: bool(more()["serves"]) and bool(more()["third"]), SOON_S)
        running = list(set().union(*more().values()))
        command.kill()
        command.wait()
        assert 1 <= results() < 6
        assert eventually(lambda: not living(running) and not any(more().values()), within_s=20)
        assert all(process.poll() is None for process in there.values())
        subprocess.run([*words, "resume"], cwd=ROOT, check=True)
        assert eventually(lambda: not any(more().values()), within_s=20)
    assert [type(trial) for trial in store.read(out).trials] == [Measurement] * 6


APP = """
import os, pathlib
with open(os.environ["NOTED"], "a") as file:
    print(os.getcwd(), os.path.exists(".env"), pathlib.Path("version").read_text().strip(), file=file)
def app(environ, start):
    start('200 OK', [('Content-Length', '1')])
    return [b'x']
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("revision", ["", "HEAD"], ids=["folder", "revision"])
def test_a_folder_is_served_where_it_was_sent_and_is_gone_afterwards(tmp_path: Path, revision: str) -> None:
    shop, noted = tmp_path / "shop", tmp_path / "noted"
    shop.mkdir()
    for name, text in (
        ("shop.py", APP),
        ("version", "committed"),
        (".gitignore", ".env\n"),
        (".env", "KEY=1"),
    ):
        (shop / name).write_text(text)
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        who = ("-c", "user.name=me", "-c", "user.email=me@example.org")
        subprocess.run(["git", *who, "-C", str(shop), *words], check=True, capture_output=True)
    (shop / "version").write_text("changed")
    app = AppSpec("shop:app", cwd=str(shop), env=(f"NOTED={noted}",))
    terms = Terms(seconds=0.5, blocks=1, warmup_s=0.1, stacks=("waitress",))
    with cluster(serves="server", loads="load") as (address, _):
        spec = CompareSpec((app,), terms, agents=address, send=not revision, revision=revision)
        raced = compare(spec, tmp_path / "run", Events())
    assert raced.how == "complete"
    for trial in store.read(tmp_path / "run").trials:
        assert isinstance(trial, Measurement), trial
        assert trial.trial.app is not None
        assert trial.trial.app.cwd == str(shop)
        assert trial.load.loaders
    lines = [line.split() for line in noted.read_text().splitlines()]
    elsewhere = [line for line in lines if not line[0].startswith(str(tmp_path)) and "/app-" in line[0]]
    assert elsewhere
    assert {(there, version) for _, there, version in elsewhere} == {
        ("False", "committed" if revision else "changed")
    }
    assert not any(Path(folder).exists() for folder, _, _ in elsewhere)

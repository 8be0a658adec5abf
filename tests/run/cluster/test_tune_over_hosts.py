"""A tuning over agents: they make the loads of one race, one of them those of the proof; some are killed, and it is
resumed."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
from tests.run.cluster.posing import HOST, SOON_S, agent, races_of
from tests.run.supervision.ends import living
from tests.waiting import eventually

from velodrome.guest import catalog
from velodrome.model.errors import AgentsGoneError, StudyChangedError, UsageError
from velodrome.model.load import Limits
from velodrome.model.measurement import Measurement, Purpose
from velodrome.model.results import Result, Results, Sought
from velodrome.model.trial import Contestant, Session
from velodrome.model.tuning import Ask, Candidate, Goal, Observation
from velodrome.run.cluster import coordinator
from velodrome.run.racing import store
from velodrome.run.racing.plan import plan_of
from velodrome.usecases import apps, race
from velodrome.usecases.apps import AppSpec, ServedSpec
from velodrome.usecases.bench import trial_of
from velodrome.usecases.events import Events
from velodrome.usecases.recording import header
from velodrome.usecases.tune import TuneSpec, judge_stored, tune
from velodrome.usecases.tune_hosts import Loaded, reach_hosts

STACKS = ("socketserver-single", "asyncio-streams")


@pytest.fixture(autouse=True)
def own_lock(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the agents here not wait for what else measures: no figure is looked at."""
    monkeypatch.setenv("VELODROME_LOCK", str(tmp_path_factory.mktemp("lock") / "measuring.lock"))


def spec(
    address: str, out: Path, budget_s: float, stacks: tuple[str, ...] = STACKS, *, resume: bool = False
) -> TuneSpec:
    """At a rate so low that hosts which are one machine do not spoil each other's loads."""
    served = ServedSpec(recipe="hello")
    return TuneSpec(served, stacks, Goal.CPU, 50.0, budget_s=budget_s, out=out, resume=resume, agents=address)


class Seen(Events):
    """Does something after a number of loads."""

    def __init__(self, after: int = 0, do: Callable[[], None] = lambda: None) -> None:
        self.loads, self._after, self._do = 0, after, do

    def observed(self, candidate: Candidate, observed: Observation) -> None:
        self.loads += 1
        if self.loads == self._after:
            self._do()


@contextmanager
def two(locks: Path, stack: ExitStack) -> Iterator[tuple[str, dict[str, "psutil.Process"]]]:
    """Run two agents that take themselves for different hosts, which hold a machine each."""
    address = stack.enter_context(coordinator.coordinating(HOST, 0, 0))
    found = {}
    for name in ("a", "b"):
        change = f"import os; os.environ['VELODROME_LOCK'] = {str(locks / name)!r}"
        found[f"host-of-{name}"] = psutil.Process(stack.enter_context(agent(address, name, change)).pid)
    yield address, found


def hosts_of(run: Results, *purposes: Purpose, final: bool | None = None) -> set[str]:
    """Return which hosts made loads of some purposes, none: of any; of the host of the proof, others, or all."""
    found = set()
    for trial in run.trials:
        assert trial.machine is not None
        assert trial.step is not None
        if (trial.step.purpose in purposes or not purposes) and final in (trial.step.final, None):
            found.add(trial.machine.name)
    return found


def test_a_host_makes_single_loads_on_a_server_that_stays_up_until_it_is_to_rest() -> None:
    seen = Seen()
    with (
        coordinator.coordinating(HOST, 0, 0) as address,
        agent(address, "a"),
        apps.prepare_app(ServedSpec(recipe="hello")) as served,
        race.reach_hosts(reach_hosts, address, None, user="", cwd="", allow_sdist=False) as hosts,
    ):
        trial = trial_of("tune", served.recipe, Contestant(STACKS[0]), Limits())
        study = header(trial, Sought("tune"), "", (trial.contestant,)).study
        hosts.begin(plan_of("one load", [Session((trial,))], served.lab), study, served.lab, seen)
        assert hosts.use() == ("host-of-a",)
        assert hosts.use() == ()

        def done() -> tuple[Result, ...]:
            while not isinstance(happened := hosts.next(seen), Loaded):
                assert happened is None
            assert happened.why == ""
            return happened.results

        hosts.prepare("host-of-a", (), "constant")
        assert done() == ()
        kept: list[Result] = []
        for rest in (False, False, True):
            if rest:
                hosts.rest("host-of-a")
                assert done() == ()
            wanted = Ask(1.0, connections=1, purpose=Purpose.CLOSED)
            hosts.load("host-of-a", trial, wanted, 1.0, [result.trial.key for result in kept])
            kept.append(done()[-1])
    assert len({result.trial.key for result in kept}) == 3
    assert [result.step and result.step.boot for result in kept] == [1, 1, 2]
    assert {result.machine and result.machine.name for result in kept} == {"host-of-a"}
    assert all(isinstance(result, Measurement) and result.load.ok for result in kept)


@pytest.mark.exhaustive
def test_one_host_makes_all_loads_and_a_tuning_of_agents_goes_on_with_agents_only(tmp_path: Path) -> None:
    with coordinator.coordinating(HOST, 0, 0) as address, agent(address, "a"):
        found = tune(spec(address, tmp_path / "run", 6.0, STACKS[:1]), Events())
    run = store.read(tmp_path / "run")
    assert hosts_of(run, final=False) == set()
    assert hosts_of(run, final=True) == {"host-of-a"}
    assert [(share.host, share.final) for share in found.tuned.hosts] == [("host-of-a", True)]
    assert judge_stored(run, catalog.stacks(), str(tmp_path / "run")) == found
    with pytest.raises(StudyChangedError, match="--agents"):
        tune(spec("", tmp_path / "run", 6.0, STACKS[:1], resume=True), Events())


@pytest.mark.exhaustive
@pytest.mark.timeout(400)
def test_hosts_race_and_confirm_together_and_one_of_them_proves_the_best(tmp_path: Path) -> None:
    with ExitStack() as stack, two(tmp_path, stack) as (address, _):
        found = tune(spec(address, tmp_path / "run", 200.0), Events())
    run = store.read(tmp_path / "run")
    looks = looked(run.trials)
    assert {stack for stack, _ in looks} == {*STACKS}
    assert {host for _, host in looks} == {"host-of-a", "host-of-b"}
    assert len(looks) == 3  # both at the first stack
    assert not any(share.apart for share in found.tuned.hosts)
    assert hosts_of(run, Purpose.CONFIRM) == {"host-of-a", "host-of-b"}
    assert [{share.host} for share in found.tuned.hosts if share.final] == [hosts_of(run, final=True)]
    assert hosts_of(run, Purpose.PROOF) == hosts_of(run, final=True)
    assert len({trial.trial.key for trial in run.trials}) == len(run.trials)
    assert len(found.proofs) >= 1
    assert found.proof is not None
    assert judge_stored(run, catalog.stacks(), str(tmp_path / "run")) == found


@pytest.mark.exhaustive
@pytest.mark.parametrize("after", [2, 5])
def test_what_a_killed_host_had_still_to_do_another_does(tmp_path: Path, after: int) -> None:
    left: list[psutil.Process] = []
    with ExitStack() as stack, two(tmp_path, stack) as (address, agents):
        victim = agents["host-of-a"]

        def kill() -> None:
            left.extend(races_of(victim.pid))
            os.kill(victim.pid, signal.SIGKILL)

        found = tune(spec(address, tmp_path / "run", 60.0), Seen(after, kill))
    assert found.tuned.best is not None
    assert [share.host for share in found.tuned.hosts if share.final] == ["host-of-b"]
    assert found.proof is not None
    assert found.proof.machine is not None
    assert found.proof.machine.name == "host-of-b"
    assert judge_stored(store.read(tmp_path / "run"), catalog.stacks(), str(tmp_path / "run")) == found
    assert eventually(lambda: not living(left), SOON_S)


def looked(trials: Sequence[Result]) -> set[tuple[str, str]]:
    """Return which host looked at which stack."""
    return {
        (trial.trial.contestant.stack, trial.machine.name)
        for trial in trials
        if trial.step and trial.machine and trial.step.purpose is Purpose.ALONE
    }


@pytest.mark.exhaustive
def test_with_nobody_left_what_is_known_is_kept_and_resume_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with ExitStack() as stack, two(tmp_path, stack) as (address, agents):

        def kill() -> None:
            for process in agents.values():
                os.kill(process.pid, signal.SIGKILL)

        with pytest.raises(AgentsGoneError, match="--resume"):
            tune(spec(address, out, 40.0), Seen(5, kill))
    kept = store.read(out).trials
    assert kept
    with ExitStack() as stack, two(tmp_path, stack) as (address, _):
        found = tune(spec(address, out, 40.0, resume=True), Events())
    assert found.tuned.best is not None
    run = store.read(out)
    assert run.trials[: len(kept)] == kept
    earlier, later = looked(run.trials[: len(kept)]), looked(run.trials[len(kept) :])
    assert earlier
    assert not earlier & later


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_an_app_is_tuned_over_hosts_and_its_lines_are_started_there(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "def app(environ, start):\n"
        "    known = environ.get('HTTP_X_API_KEY') == 'hunter22-hunter22'\n"
        "    start('200 OK' if known else '401 Unauthorized', [('Content-Length', '1')])\n"
        "    return [b'x']\n"
    )
    app = AppSpec("shop:app", cwd=str(tmp_path), headers=(("X-Api-Key", "hunter22-hunter22"),))
    with ExitStack() as stack, two(tmp_path, stack) as (address, _):
        found = tune(
            TuneSpec(
                ServedSpec(app),
                ("waitress", "gunicorn-sync"),
                budget_s=60.0,
                out=tmp_path / "run",
                agents=address,
            ),
            Events(),
        )
    assert found.claim is not None
    assert found.pasted is not None
    stored = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert b"hunter22" not in stored
    run = store.read(tmp_path / "run")
    assert all(trial.trial.app == run.header.study.questions[0].app for trial in run.trials)


def test_commands_around_an_app_are_refused(tmp_path: Path) -> None:
    app = AppSpec("shop:app", cwd=str(tmp_path), setup="true")
    with pytest.raises(UsageError, match="--setup"):
        tune(TuneSpec(ServedSpec(app), agents="2", out=tmp_path / "run"), Events())

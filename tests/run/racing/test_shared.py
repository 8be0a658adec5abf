"""Blocks given out to other hosts: which, when, and what of them is run again; no host is there."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.run import made
from tests.run.racing.short_race import Recorder, lab, raced, sessions, study

from velodrome.model.errors import AgentsRefuseRaceError, StudyChangedError
from velodrome.model.measurement import RanOn
from velodrome.model.noise import Noise
from velodrome.model.results import Entry, Result
from velodrome.model.study import Study
from velodrome.model.trial import Session
from velodrome.run.lab import Lab
from velodrome.run.racing import race, store
from velodrome.run.racing.opening import Follower
from velodrome.run.racing.plan import RunPlan
from velodrome.run.racing.race import Race, Settling, WorkUnit


class Elsewhere:
    """Hosts of which one after the other does a work unit; the last may be lost in the middle of its own."""

    def __init__(self, names: str = "ab", lost_after: int | None = None, refuses: str = "") -> None:
        self.names, self.lost_after, self.refuses = names, lost_after, refuses
        self.did: list[tuple[str, str]] = []
        self.waves: list[int] = []
        self.gone = ""
        self.hosts = len(names)

    @property
    def who(self) -> tuple[str, ...]:
        return tuple(self.names)

    def lab(self, lab: Lab) -> Lab:
        return lab

    def begin(self, plan: RunPlan, study: Study, lab: Lab, follower: Follower) -> None:
        if self.refuses:
            raise AgentsRefuseRaceError("a", self.refuses)

    def entries(
        self,
        upcoming: Callable[[], WorkUnit | None],
        follower: Follower,
        out: Path,
        left_s: Callable[[], float | None],
    ) -> Iterator[Entry]:
        units = []
        while (unit := upcoming()) is not None:
            units.append(unit)
        self.waves.append(len(units))
        for number, unit in enumerate(units):
            name = self.names[number % len(self.names)]
            self.did.append((name, unit.name))
            for trial in (trial for session in unit.sessions for trial in session.trials):
                if self.lost_after == 0:
                    self.gone, self.hosts = "all lost", 0
                    return
                if self.lost_after is not None:
                    self.lost_after -= 1
                yield replace(made.measurement(trial), flags=(), machine=RanOn(name, {"cpu": name}))


class Chooses:
    """Leaves open, after so many blocks, the cells that it was given for it."""

    def __init__(self, left: Mapping[int, set[str]]) -> None:
        self.left = left
        self.settling = Settling(8, (2, 4), self.still_open, self.sessions)

    def still_open(self, results: Sequence[Result], _noise: Noise, blocks: int) -> Collection[str] | None:
        return self.left.get(blocks)

    def sessions(self, block: int) -> Sequence[Session]:
        return tuple(
            Session(tuple(replace(trial, block=block) for trial in session.trials))
            for session in sessions(study(blocks=1))
        )


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for what else measures: here nothing does."""
    monkeypatch.setenv("VELODROME_LOCK", str(tmp_path / "measuring.lock"))


def given_out(
    out: Path, there: Elsewhere | None, blocks: int = 3, chooses: Chooses | None = None, resume: bool = False
) -> race.Finished:
    whole = replace(study(blocks=blocks), until_settled=chooses is not None)
    whole_race = Race(
        whole,
        sessions(whole),
        out,
        resume=resume,
        settling=chooses.settling if chooses else None,
        elsewhere=there,
    )
    return raced(whole_race, lab(), Recorder())


def test_each_block_is_given_out_as_a_whole(tmp_path: Path) -> None:
    there = Elsewhere()
    assert given_out(tmp_path / "run", there).how == "complete"
    assert there.did == [("a", "block 1"), ("b", "block 2"), ("a", "block 3")]
    hosts = {
        trial.trial.block: trial.machine.name
        for trial in store.read(tmp_path / "run").trials
        if trial.machine
    }
    assert hosts == {0: "a", 1: "b", 2: "a"}


def test_blocks_up_to_the_next_look_are_given_out_together(tmp_path: Path) -> None:
    first, second = (f"hello/hostile[does={does}]" for does in ("ignore-stop", "leave-children"))
    there = Elsewhere()
    ended = given_out(tmp_path / "run", there, 8, Chooses({2: {first, second}, 4: {first}}))
    assert there.waves[1:4] == [2, 2, 4]  # before them the experiments, of which there are none
    assert ended.how == "complete"
    trials = store.read(tmp_path / "run").trials
    assert {trial.trial.block for trial in trials if trial.trial.cell == second} == {0, 1, 2, 3}
    settled = given_out(tmp_path / "settled", Elsewhere(), 8, Chooses({2: set()}))
    assert settled.how == "settled"
    assert {trial.trial.block for trial in store.read(tmp_path / "settled").trials} == {0, 1}


def test_a_block_that_is_there_in_part_is_run_anew_by_one_host(tmp_path: Path) -> None:
    out = tmp_path / "run"
    ended = given_out(out, Elsewhere(lost_after=5))
    assert (ended.how, ended.done, ended.total) == (race.AGENTS_GONE, 5, 12)
    with pytest.raises(StudyChangedError, match="--agents"):
        given_out(out, None, resume=True)
    there = Elsewhere("xy")
    assert given_out(out, there, resume=True).how == "complete"
    assert [name for _, name in there.did] == ["block 2", "block 3"]
    hosts: dict[int, set[str]] = {}
    for trial in store.read(out).trials:
        assert trial.machine is not None
        hosts.setdefault(trial.trial.block, set()).add(trial.machine.name)
    assert hosts == {0: {"a"}, 1: {"x"}, 2: {"y"}}


def test_a_part_of_a_block_is_not_added_by_another_host(tmp_path: Path) -> None:
    out, whole = tmp_path / "run", study(blocks=2)
    first, second = sessions(whole)[::2], sessions(whole)[1::2]
    raced(Race(whole, first, out, elsewhere=Elsewhere("a")), lab(), Recorder())
    with pytest.raises(StudyChangedError, match="--only"):
        raced(Race(whole, second, out, resume=True, elsewhere=Elsewhere("b")), lab(), Recorder())


def test_a_race_that_a_host_refuses_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(AgentsRefuseRaceError, match="no such app"):
        given_out(tmp_path / "run", Elsewhere(refuses="there is no such app"))
    assert not (tmp_path / "run").exists()


def test_no_block_begins_that_would_end_after_the_budget(tmp_path: Path) -> None:
    whole = replace(study(blocks=3), budget_s=0.01)
    there = Elsewhere()
    ended = raced(Race(whole, sessions(whole), tmp_path / "run", elsewhere=there), lab(), Recorder())
    assert ended.how == "budget spent"
    assert there.did == [("a", "block 1")]

"""A race keeps every result, goes on where it was stopped, and never runs beside another."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.run.racing.short_race import Told, bare, heats, lab, study

from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack
from velodrome.model import results
from velodrome.model.errors import (
    BusyError,
    EnvironmentFailedError,
    LimitError,
    ResultsExistError,
    StudyChangedError,
)
from velodrome.model.experiment import Experiment, Finding
from velodrome.model.flag import Flag, FlagKind, Severity
from velodrome.model.limits import Limits
from velodrome.model.measurement import Failed, FailureKind, Measurement
from velodrome.model.profile import Profile
from velodrome.model.results import Result
from velodrome.model.trial import Trial
from velodrome.report.typeset import visible
from velodrome.run.environments.environment import Environment
from velodrome.run.lab import Lab
from velodrome.run.machine.measuring_lock import alone
from velodrome.run.racing import race, store
from velodrome.run.racing.race import Race

ONE_BLOCK = study(blocks=1)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VELODROME_CACHE", str(tmp_path / "cache"))


def test_every_trial_of_every_heat_is_in_the_file_in_order(tmp_path: Path) -> None:
    told = Told()
    all_heats = heats(ONE_BLOCK)
    finished = race.run(Race(ONE_BLOCK, all_heats, tmp_path / "out"), lab(), told)
    keys = [trial.key for heat in all_heats for trial in heat.trials]
    found = store.read(tmp_path / "out")
    assert [result.trial.key for result in found.trials] == keys
    assert found.trials == tuple(told.results)
    assert all(isinstance(result, Measurement) for result in found.trials)
    assert (finished.done, finished.total, finished.how) == (4, 4, "complete")
    assert found.header.study == ONE_BLOCK
    assert [label for label, _ in told.heats] == [heat.trials[0].cell for heat in all_heats]
    left = [seconds for _, seconds in told.heats]
    assert all(seconds is not None and seconds > 0 for seconds in left)


def test_resuming_runs_only_what_is_missing_and_tells_what_is_there(tmp_path: Path) -> None:
    whole = heats(ONE_BLOCK)
    race.run(Race(ONE_BLOCK, whole[:1], tmp_path / "out"), lab(), Told())
    before = store.read(tmp_path / "out").trials
    told = Told()
    race.run(Race(ONE_BLOCK, whole, tmp_path / "out", resume=True), lab(), told)
    after = store.read(tmp_path / "out").trials
    assert len(before) == 2
    assert after[:2] == before
    assert tuple(told.results) == after
    assert len(told.heats) == 1


def test_what_the_machine_spoilt_is_measured_again_when_asked_for_and_only_that(tmp_path: Path) -> None:
    whole = heats(ONE_BLOCK)[:1]
    out = tmp_path / "out"
    race.run(Race(ONE_BLOCK, whole, out), lab(), Told())
    before = store.read(out)
    stolen = Flag(FlagKind.CPU_STEAL, Severity.INVALID, "The host gave 43 % of its CPU to others.", "Wait.")
    slow = Flag(FlagKind.NOT_STATIONARY, Severity.INVALID, "It slowed down.", "Look why.")
    measured = [one for one in before.trials if isinstance(one, Measurement)]
    # Nothing else is told of them, whatever this machine did meanwhile.
    spoilt = [replace(measured[0], flags=(stolen,)), replace(measured[1], flags=(slow,))]
    with (out / "results.jsonl").open("a") as file:
        file.writelines(f"{results.dump(one)}\n" for one in spoilt)
    plain = Told()
    race.run(Race(ONE_BLOCK, whole, out, resume=True), lab(), plain)
    assert plain.heats == []
    again = Told()
    race.run(Race(ONE_BLOCK, whole, out, resume=True, redo=True), lab(), again)
    after = {one.trial.key: one for one in store.read(out).trials}
    assert len(again.heats) == 1
    assert stolen not in after[before.trials[0].trial.key].flags  # type: ignore[union-attr]
    assert slow in after[before.trials[1].trial.key].flags  # type: ignore[union-attr]


def test_a_new_race_does_not_write_over_an_old_one_nor_resume_another(tmp_path: Path) -> None:
    race.run(Race(ONE_BLOCK, (), tmp_path / "out"), lab(), Told())
    with pytest.raises(ResultsExistError):
        race.run(Race(ONE_BLOCK, (), tmp_path / "out"), lab(), Told())
    with pytest.raises(StudyChangedError, match="the study's contestants changed"):
        race.run(Race(replace(ONE_BLOCK, contestants=()), (), tmp_path / "out", resume=True), lab(), Told())
    called_otherwise = replace(ONE_BLOCK, title="What a study says may change.")
    race.run(Race(called_otherwise, (), tmp_path / "out", resume=True), lab(), Told())


def test_a_resume_may_ask_for_more_blocks(tmp_path: Path) -> None:
    first = heats(ONE_BLOCK)[:1]
    race.run(Race(ONE_BLOCK, first, tmp_path / "out"), lab(), Told())
    more = study(blocks=2)
    again = tuple(heat for heat in heats(more) if heat.trials[0].cell == first[0].trials[0].cell)
    race.run(Race(more, again, tmp_path / "out", resume=True), lab(), Told())
    assert {one.trial.block for one in store.read(tmp_path / "out").trials} == {0, 1}


def test_a_failed_installation_fails_its_stack_only_and_is_tried_again_on_resume(tmp_path: Path) -> None:
    good = heats(ONE_BLOCK)[:1]
    other = replace(ONE_BLOCK.contestants[0], stack="uvicorn", knobs={})
    bad = tuple(
        replace(heat, trials=tuple(replace(trial, contestant=other) for trial in heat.trials))
        for heat in good
    )
    attempts: list[str] = []

    def environment(
        stack: Stack, python: str | None, packages: Mapping[str, str], served: Recipe | None = None
    ) -> Environment:
        attempts.append(stack.name)
        if stack.name == "uvicorn":
            raise EnvironmentFailedError(
                stack.name, "its packages could not be installed", "cure", ["no wheel"]
            )
        return bare(stack, python, packages)

    there = replace(lab(), environment=environment)
    told = Told()
    race.run(Race(ONE_BLOCK, bad + good, tmp_path / "out"), there, told)
    kinds = [r.failure if isinstance(r, Failed) else None for r in told.results]
    assert kinds == [FailureKind.INSTALL, FailureKind.INSTALL, None, None]
    failed = next(one for one in told.results if isinstance(one, Failed))
    assert visible(failed.reason) == failed.reason, "a reason is shown on one line: it has no ends of lines"
    assert "Cure: cure" in failed.reason
    assert failed.last_lines == ("no wheel",)
    assert all(visible(text) == text for text in told.prepared)
    assert sorted(attempts) == ["hostile", "uvicorn"]
    again = Told()
    race.run(Race(ONE_BLOCK, bad + good, tmp_path / "out", resume=True), there, again)
    assert attempts.count("uvicorn") == 2
    assert len(again.results) == 4
    assert len(store.read(tmp_path / "out").trials) == 4


def test_no_block_is_begun_that_would_not_end_within_the_budget(tmp_path: Path) -> None:
    asked = study(blocks=3, budget_s=0.5)
    finished = race.run(Race(asked, heats(asked), tmp_path / "out"), lab(), Told())
    assert finished.how == "budget spent"
    assert {result.trial.block for result in store.read(tmp_path / "out").trials} == {0}


def test_an_impossible_limit_is_told_before_anything_is_written(tmp_path: Path) -> None:
    for asked, sentence in (
        (Limits(cpus=4096), "cpus = 4096 is impossible here: velodrome may use"),
        (Limits(memory_bytes=1000), "no Python server starts in less than 16 MiB"),
    ):
        with pytest.raises(LimitError, match=sentence):
            race.run(Race(ONE_BLOCK, heats(ONE_BLOCK, asked), tmp_path / "out"), lab(), Told())
    assert not (tmp_path / "out").exists()


def test_two_races_never_measure_at_once(tmp_path: Path) -> None:
    with alone("study other"), pytest.raises(BusyError, match="study other, process"):
        race.run(Race(ONE_BLOCK, (), tmp_path / "out"), lab(), Told())
    assert not (tmp_path / "out").exists()
    told = Told()
    with alone("study other"), pytest.raises(BusyError, match="still, after 1 s"):
        race.run(Race(ONE_BLOCK, (), tmp_path / "out", wait_s=1.0), lab(), told)
    assert len(told.prepared) == 1
    assert told.prepared[0].startswith("waiting for another velodrome (study other, process")
    race.run(Race(ONE_BLOCK, (), tmp_path / "out"), lab(), Told())


class Angry(Told):
    def finished(self, result: Result) -> None:
        super().finished(result)
        raise RuntimeError("no room on the screen")


def test_a_follower_that_fails_loses_no_result(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no room"):
        race.run(Race(ONE_BLOCK, heats(ONE_BLOCK), tmp_path / "out"), lab(), Angry())
    assert len(store.read(tmp_path / "out").trials) == 1


def test_experiments_come_first_and_profiles_last_and_resuming_repeats_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def finding(experiment: Experiment, _lab: Lab) -> Finding:
        tried.append(experiment.name)
        failed = "not yet" if experiment.name == "b" and tried.count("b") == 1 else ""
        return Finding(experiment, "2026-11-20T12:00:00+00:00", {"seen": 1.0}, "Seen.", failed)

    def profile(trial: Trial, _lab: Lab, folder: Path) -> Profile:
        tried.append(f"profile into {folder.name}")
        return Profile(trial, "2026-11-20T12:00:00+00:00", samples=5)

    monkeypatch.setattr(race, "run_experiment", finding)
    whole = heats(ONE_BLOCK)
    asked = Race(
        ONE_BLOCK,
        whole[:1],
        tmp_path / "out",
        experiments=(Experiment("a", "made"), Experiment("b", "made")),
        profiles=whole[0].trials[:1],
    )
    there = replace(lab(), profile=profile)
    told = Told()
    race.run(asked, there, told)
    cell = whole[0].trials[0].cell
    assert told.order == ["experiment a", "experiment b", f"heat {cell}", f"profile {cell}"]
    assert tried == ["a", "b", "profile into out"]
    found = store.read(tmp_path / "out")
    assert ([one.experiment.name for one in found.findings], len(found.profiles)) == (["a", "b"], 1)
    again = Told()
    race.run(replace(asked, resume=True), there, again)
    assert again.order == ["experiment b"]
    assert len(again.findings) == 2
    assert [one.failed for one in store.read(tmp_path / "out").findings] == ["", ""]

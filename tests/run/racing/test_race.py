"""A race keeps every result, goes on where it was stopped, and never runs beside another."""

import errno
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.run import made
from tests.run.racing.plain_driver import PlainDriver
from tests.run.racing.short_race import CONTESTANTS, LOADS, Recorder, bare, lab, raced, sessions, study

from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack
from velodrome.model import results
from velodrome.model.app import App
from velodrome.model.claim import Experiment, Finding
from velodrome.model.errors import (
    AppAnswersWrongError,
    AppNotServedError,
    BusyError,
    EnvironmentFailedError,
    LimitError,
    OutputError,
    RaceInterruptedError,
    ResultsExistError,
    StudyChangedError,
)
from velodrome.model.load import Limits, Load
from velodrome.model.measurement import Failed, FailureKind, Flag, FlagKind, LoadFacts, Measurement, Severity
from velodrome.model.noise import Noise
from velodrome.model.profile import Profile
from velodrome.model.results import Header, Result, Results
from velodrome.model.trial import Contestant, Session, Trial
from velodrome.report.typeset import visible
from velodrome.run.drivers.driver import OnEvent, Target
from velodrome.run.environments.environment import Environment
from velodrome.run.lab import Lab
from velodrome.run.machine import facts
from velodrome.run.machine.measuring_lock import alone
from velodrome.run.racing import race, store
from velodrome.run.racing.plan import PlannedSession, plan_of
from velodrome.run.racing.race import Race, Settling
from velodrome.run.servers import Server, Stopped

ONE_BLOCK = study(blocks=1)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VELODROME_CACHE", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def _nothing_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run beside each other, so anything may be disturbed; whoever tests repeats undoes this."""
    monkeypatch.setattr(race, "AGAIN_TIMES", 0)


STOLEN = Flag(FlagKind.CPU_STEAL, Severity.INVALID, "The host gave 43 % of its CPU to others.", "Wait.")
SLOW = Flag(FlagKind.NOT_STATIONARY, Severity.INVALID, "It slowed down.", "Look why.")


def repeated(
    monkeypatch: pytest.MonkeyPatch, flag: Flag, times: Mapping[str, int], seconds: float = 1.0
) -> list[tuple[int, str, str]]:
    """Return block, contestant and load of all that two blocks of two contestants run, where trials carry a flag.

    `times`: how often, by load; of the first contestant of the first block.
    """
    monkeypatch.setattr(race, "AGAIN_TIMES", 2)
    left, ran = dict(times), []

    def session(planned: PlannedSession, *_: object) -> Iterator[Result]:
        for trial in planned.trials:
            ran.append((trial.block, trial.contestant.label, trial.load.label))
            found = replace(made.measurement(trial), flags=())
            first = trial.block == 0 and trial.contestant == two_blocks.contestants[0]
            if first and left.get(trial.load.label):
                left[trial.load.label] -= 1
                found = replace(found, flags=(flag,))
            yield found

    monkeypatch.setattr(race, "run_session", session)
    two_blocks = study(blocks=2)
    plan = plan_of("short", sessions(two_blocks), lab(), lambda _: seconds)
    recorder = Recorder()
    assert len([*race.Scheduler(plan).results(lab(), recorder)]) == len(ran)
    return ran


def test_what_the_machine_disturbed_is_run_again_at_the_end_of_its_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lighter, heavier = (load.label for load in LOADS)
    first, second = (contestant.label for contestant in CONTESTANTS)
    ran = repeated(monkeypatch, STOLEN, {heavier: 1})
    assert ran[:5] == [
        (0, first, lighter),
        (0, first, heavier),
        (0, second, lighter),
        (0, second, heavier),
        (0, first, heavier),
    ]
    assert [block for block, _, _ in ran[5:]] == [1] * 4


def test_what_is_disturbed_again_and_again_is_run_again_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    lighter, heavier = (load.label for load in LOADS)
    ran = repeated(monkeypatch, STOLEN, {lighter: 99, heavier: 99})
    assert [block for block, _, _ in ran] == [0] * 6 + [1] * 4 + [0] * 2


def test_what_a_server_spoilt_by_itself_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(repeated(monkeypatch, SLOW, {LOADS[0].label: 99})) == 8


class Chooses:
    """Leaves open, after so many blocks, the cells that it was given for it."""

    def __init__(self, left: Mapping[int, set[str]]) -> None:
        self.left, self.seen = left, list[int]()
        self.settling = Settling(6, (2, 4), self.still_open, self.sessions)

    def still_open(self, results: Sequence[Result], _noise: Noise, blocks: int) -> Collection[str] | None:
        self.seen.append(len(results))
        return self.left.get(blocks)

    def sessions(self, block: int) -> Sequence[Session]:
        return tuple(
            Session(tuple(replace(trial, block=block) for trial in session.trials))
            for session in sessions(ONE_BLOCK)
        )


def settled(
    monkeypatch: pytest.MonkeyPatch, out: Path, chooses: Chooses, blocks: int = 3, resume: bool = False
) -> tuple[race.Finished, list[tuple[int, str]]]:
    """Return how a race ended, and the block and contestant of each of its sessions; no server is started."""
    ran = []

    def session(planned: PlannedSession, *_: object) -> Iterator[Result]:
        ran.append((planned.block, planned.trials[0].contestant.label))
        for trial in planned.trials:
            yield replace(made.measurement(trial), flags=())

    monkeypatch.setattr(race, "run_session", session)
    whole = replace(study(blocks=blocks), until_settled=True)
    whole_race = Race(whole, sessions(whole), out, resume=resume, settling=chooses.settling)
    return raced(whole_race, lab(), Recorder()), ran


CELLS = [session.trials[0].cell for session in sessions(ONE_BLOCK)]
FIRST, SECOND = (contestant.label for contestant in CONTESTANTS)


def test_who_is_clearly_behind_stops_and_others_get_its_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chooses = Chooses({1: {CELLS[0]}})
    finished, ran = settled(monkeypatch, tmp_path / "out", chooses)
    assert ran == [(0, FIRST), (0, SECOND), *((block, FIRST) for block in range(1, 5))]
    assert finished.how == "budget spent"
    # Each look sees all that was measured before it, two loads each.
    assert chooses.seen == [4, 6, 8, 10, 12]


def test_a_race_ends_where_nothing_is_open_and_at_its_last_block(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    finished, ran = settled(monkeypatch, tmp_path / "settled", Chooses({2: set()}))
    assert ([block for block, _ in ran], finished.how) == ([0, 0, 1, 1], "settled")
    finished, ran = settled(monkeypatch, tmp_path / "last", Chooses({1: {CELLS[0]}}), blocks=5)
    assert ([block for block, _ in ran], finished.how) == ([0, 0, 1, 2, 3, 4, 5], "complete")


def test_a_resumed_race_looks_again_at_what_is_there_and_goes_on_where_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    chooses = Chooses({1: {CELLS[0]}})
    settled(monkeypatch, out, chooses)
    lines = (out / "results.jsonl").read_text().splitlines(keepends=True)
    (out / "results.jsonl").write_text("".join(lines[:-2]))  # the last block is missing
    _, ran = settled(monkeypatch, out, chooses, resume=True)
    assert ran == [(4, FIRST)]
    _, ran = settled(monkeypatch, out, chooses, resume=True)
    assert ran == []


def test_a_race_that_began_with_a_fixed_length_keeps_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    raced(Race(ONE_BLOCK, (), out), lab(), Recorder())
    finished, ran = settled(monkeypatch, out, Chooses({1: set()}), resume=True)
    assert ([block for block, _ in ran], finished.how) == ([0, 0, 1, 1, 2, 2], "complete")


def test_repeats_take_a_quarter_of_the_time_of_a_plan_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "AGAIN_SHARE", 0.0)
    assert len(repeated(monkeypatch, STOLEN, {LOADS[0].label: 99})) == 8


def test_every_trial_of_every_session_is_in_the_file_in_order(tmp_path: Path) -> None:
    recorder = Recorder()
    all_sessions = sessions(ONE_BLOCK)
    finished = raced(Race(ONE_BLOCK, all_sessions, tmp_path / "out"), lab(), recorder)
    keys = [trial.key for session in all_sessions for trial in session.trials]
    found = store.read(tmp_path / "out")
    assert [result.trial.key for result in found.trials] == keys
    assert found.trials == tuple(recorder.results)
    assert all(isinstance(result, Measurement) for result in found.trials)
    assert (finished.done, finished.total, finished.how) == (4, 4, "complete")
    assert found.header.study == ONE_BLOCK
    assert [label for label, _ in recorder.sessions] == [session.trials[0].cell for session in all_sessions]
    left = [seconds for _, seconds in recorder.sessions]
    assert all(seconds is not None and seconds > 0 for seconds in left)


def test_resuming_runs_only_what_is_missing_and_tells_what_is_there(tmp_path: Path) -> None:
    whole = sessions(ONE_BLOCK)
    raced(Race(ONE_BLOCK, whole[:1], tmp_path / "out"), lab(), Recorder())
    before = store.read(tmp_path / "out").trials
    recorder = Recorder()
    raced(Race(ONE_BLOCK, whole, tmp_path / "out", resume=True), lab(), recorder)
    after = store.read(tmp_path / "out").trials
    assert len(before) == 2
    assert after[:2] == before
    assert tuple(recorder.results) == after
    assert len(recorder.sessions) == 1


def test_what_the_machine_spoilt_is_measured_again_when_asked_for_and_only_that(tmp_path: Path) -> None:
    whole = sessions(ONE_BLOCK)[:1]
    out = tmp_path / "out"
    raced(Race(ONE_BLOCK, whole, out), lab(), Recorder())
    before = store.read(out)
    measured = [trial for trial in before.trials if isinstance(trial, Measurement)]
    # Nothing else is reported of them, whatever this machine did meanwhile.
    spoilt = [replace(measured[0], flags=(STOLEN,)), replace(measured[1], flags=(SLOW,))]
    with (out / "results.jsonl").open("a") as file:
        file.writelines(f"{results.dump(measurement)}\n" for measurement in spoilt)
    plain = Recorder()
    raced(Race(ONE_BLOCK, whole, out, resume=True), lab(), plain)
    assert plain.sessions == []
    again = Recorder()
    raced(Race(ONE_BLOCK, whole, out, resume=True, redo=True), lab(), again)
    after = {trial.trial.key: trial for trial in store.read(out).trials}
    assert len(again.sessions) == 1
    assert STOLEN not in after[before.trials[0].trial.key].flags  # type: ignore[union-attr]
    assert SLOW in after[before.trials[1].trial.key].flags  # type: ignore[union-attr]


def test_a_new_race_does_not_write_over_an_old_one_nor_resume_another(tmp_path: Path) -> None:
    raced(Race(ONE_BLOCK, (), tmp_path / "out"), lab(), Recorder())
    with pytest.raises(ResultsExistError):
        raced(Race(ONE_BLOCK, (), tmp_path / "out"), lab(), Recorder())
    with pytest.raises(StudyChangedError, match="the study's contestants changed"):
        raced(Race(replace(ONE_BLOCK, contestants=()), (), tmp_path / "out", resume=True), lab(), Recorder())
    called_otherwise = replace(ONE_BLOCK, title="What a study says may change.")
    raced(Race(called_otherwise, (), tmp_path / "out", resume=True), lab(), Recorder())


def test_a_resume_may_ask_for_more_blocks(tmp_path: Path) -> None:
    first = sessions(ONE_BLOCK)[:1]
    raced(Race(ONE_BLOCK, first, tmp_path / "out"), lab(), Recorder())
    more = study(blocks=2)
    again = tuple(session for session in sessions(more) if session.trials[0].cell == first[0].trials[0].cell)
    raced(Race(more, again, tmp_path / "out", resume=True), lab(), Recorder())
    assert {trial.trial.block for trial in store.read(tmp_path / "out").trials} == {0, 1}


def test_a_failed_installation_fails_its_stack_only_and_is_tried_again_on_resume(tmp_path: Path) -> None:
    good = sessions(ONE_BLOCK)[:1]
    other = replace(ONE_BLOCK.contestants[0], stack="uvicorn", knobs={})
    bad = tuple(
        replace(session, trials=tuple(replace(trial, contestant=other) for trial in session.trials))
        for session in good
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
    recorder = Recorder()
    raced(Race(ONE_BLOCK, bad + good, tmp_path / "out"), there, recorder)
    kinds = [r.failure if isinstance(r, Failed) else None for r in recorder.results]
    assert kinds == [FailureKind.INSTALL, FailureKind.INSTALL, None, None]
    failed = next(result for result in recorder.results if isinstance(result, Failed))
    assert visible(failed.reason) == failed.reason, "a reason is shown on one line: it has no ends of lines"
    assert "Cure: cure" in failed.reason
    assert failed.last_lines == ("no wheel",)
    assert all(visible(text) == text for text in recorder.prepared)
    assert sorted(attempts) == ["hostile", "uvicorn"]
    again = Recorder()
    raced(Race(ONE_BLOCK, bad + good, tmp_path / "out", resume=True), there, again)
    assert attempts.count("uvicorn") == 2
    assert len(again.results) == 4
    assert len(store.read(tmp_path / "out").trials) == 4


def test_no_block_is_begun_that_would_not_end_within_the_budget(tmp_path: Path) -> None:
    three_blocks = study(blocks=3, budget_s=0.5)
    finished = raced(Race(three_blocks, sessions(three_blocks), tmp_path / "out"), lab(), Recorder())
    assert finished.how == "budget spent"
    assert {result.trial.block for result in store.read(tmp_path / "out").trials} == {0}


def test_an_impossible_limit_is_reported_before_anything_is_written(tmp_path: Path) -> None:
    for limits, sentence in (
        (Limits(cpus=0), "cpus = 0 .*velodrome may use"),
        (Limits(memory_bytes=1000), "no Python server starts in less than 16 MiB"),
    ):
        with pytest.raises(LimitError, match=sentence):
            raced(Race(ONE_BLOCK, sessions(ONE_BLOCK, limits), tmp_path / "out"), lab(), Recorder())
    assert not (tmp_path / "out").exists()


def test_two_races_never_measure_at_once(tmp_path: Path) -> None:
    with alone("study other"), pytest.raises(BusyError, match="study other, process"):
        raced(Race(ONE_BLOCK, (), tmp_path / "out"), lab(), Recorder())
    assert not (tmp_path / "out").exists()
    recorder = Recorder()
    with alone("study other"), pytest.raises(BusyError, match="still, after 1 s"):
        raced(Race(ONE_BLOCK, (), tmp_path / "out", wait_s=1.0), lab(), recorder)
    assert len(recorder.prepared) == 1
    assert recorder.prepared[0].startswith("waiting for another velodrome (study other, process")
    raced(Race(ONE_BLOCK, (), tmp_path / "out"), lab(), Recorder())


class Angry(Recorder):
    def finished(self, result: Result) -> None:
        super().finished(result)
        raise RuntimeError("no room on the screen")


def test_a_follower_that_fails_loses_no_result(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no room"):
        raced(Race(ONE_BLOCK, sessions(ONE_BLOCK), tmp_path / "out"), lab(), Angry())
    assert len(store.read(tmp_path / "out").trials) == 1


class Faulty(PlainDriver):
    """Fails the first load in a way that nobody foresaw."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error: BaseException | None = error

    def run(self, load: Load, target: Target, on_event: OnEvent) -> LoadFacts:
        error, self.error = self.error, None
        if error is not None:
            raise error
        return super().run(load, target, on_event)


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), "open files"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/somewhere/full"), "/somewhere/full"),
        (MemoryError(), "memory"),
        (RuntimeError("can't start new thread"), "processes and threads"),
        (KeyError("absent"), "KeyError: 'absent'"),
        (RecursionError("too deep"), "RecursionError"),
    ],
)
def test_what_goes_wrong_in_one_trial_fails_it_alone_and_is_named(
    error: Exception, named: str, tmp_path: Path
) -> None:
    faulty = Faulty(error)
    recorder = Recorder()
    finished = raced(
        Race(ONE_BLOCK, sessions(ONE_BLOCK), tmp_path / "out"), lab(lambda *_, **__: faulty), recorder
    )
    assert (finished.done, finished.total) == (4, 4)
    first, *others = recorder.results
    assert isinstance(first, Failed)
    assert first.failure is FailureKind.LOAD
    assert named in first.reason
    assert all(isinstance(other, Measurement) for other in others)
    # Neither what the machine refuses nor what a stranger's code raises is a bug of velodrome's.
    assert not (tmp_path / "cache" / "crashes").exists()


def test_a_bug_in_a_trial_is_reported_with_where_its_traceback_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("velodrome.run.racing.session.validity.flags", "".index)
    recorder = Recorder()
    raced(Race(ONE_BLOCK, sessions(ONE_BLOCK)[:1], tmp_path / "out"), lab(), recorder)
    crashes = list((tmp_path / "cache" / "crashes").iterdir())
    assert len(crashes) == len(recorder.results) == 2
    for result in recorder.results:
        assert isinstance(result, Failed)
        assert "TypeError" in result.reason
        (crash,) = [file for file in crashes if str(file) in result.reason]
        assert "Traceback" in crash.read_text()


def test_an_interrupt_ends_the_race_and_keeps_what_was_finished(tmp_path: Path) -> None:
    whole = sessions(ONE_BLOCK)
    with pytest.raises(RaceInterruptedError) as ended:
        raced(
            Race(ONE_BLOCK, whole, tmp_path / "out"),
            lab(lambda *_, **__: Faulty(KeyboardInterrupt())),
            Recorder(),
        )
    assert (ended.value.exit_code, ended.value.done) == (130, 0)


def test_a_server_that_cannot_be_stopped_as_planned_fails_its_last_trial_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, faults = Server.stop, [OSError(errno.ENFILE, os.strerror(errno.ENFILE))]

    def failing(self: Server, deadline_s: float = 1.0) -> Stopped:
        found = stop(self, deadline_s)
        if faults:
            raise faults.pop()
        return found

    monkeypatch.setattr(Server, "stop", failing)
    recorder = Recorder()
    raced(Race(ONE_BLOCK, sessions(ONE_BLOCK), tmp_path / "out"), lab(), recorder)
    kinds = [result.failure if isinstance(result, Failed) else None for result in recorder.results]
    assert kinds == [None, FailureKind.STOP, None, None]
    assert [result.trial.key for result in recorder.results] == [
        trial.key for session in sessions(ONE_BLOCK) for trial in session.trials
    ]


def test_an_environment_that_fails_as_nobody_foresaw_fails_its_stack_alone(tmp_path: Path) -> None:
    def environment(*_: object) -> Environment:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "cache" / "envs" / "x"))

    recorder = Recorder()
    raced(
        Race(ONE_BLOCK, sessions(ONE_BLOCK), tmp_path / "out"),
        replace(lab(), environment=environment),
        recorder,
    )
    assert len(recorder.results) == 4
    for result in recorder.results:
        assert isinstance(result, Failed)
        assert os.strerror(errno.ENOSPC) in result.reason
        assert "VELODROME_CACHE" in result.reason


def test_results_that_cannot_be_written_end_the_race_and_what_was_written_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite, left = os.pwrite, 2

    def full(number: int, data: bytes, at: int) -> int:
        nonlocal left
        if os.readlink(f"/proc/self/fd/{number}").endswith(store.NAME):
            left -= 1
            if left < 0:
                pwrite(number, bytes(data)[:10], at)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(number, data, at)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OutputError, match=os.strerror(errno.ENOSPC)):
        raced(Race(ONE_BLOCK, sessions(ONE_BLOCK), tmp_path / "out"), lab(), Recorder())
    monkeypatch.undo()
    found = store.read(tmp_path / "out")
    assert len(found.trials) == 1
    assert not found.torn


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
    whole = sessions(ONE_BLOCK)
    whole_race = Race(
        ONE_BLOCK,
        whole[:1],
        tmp_path / "out",
        experiments=(Experiment("a", "made"), Experiment("b", "made")),
        profiles=whole[0].trials[:1],
    )
    there = replace(lab(), profile=profile)
    recorder = Recorder()
    raced(whole_race, there, recorder)
    cell = whole[0].trials[0].cell
    assert recorder.order == ["experiment a", "experiment b", f"session {cell}", f"profile {cell}"]
    assert tried == ["a", "b", "profile into out"]
    found = store.read(tmp_path / "out")
    assert ([stored.experiment.name for stored in found.findings], len(found.profiles)) == (["a", "b"], 1)
    again = Recorder()
    raced(replace(whole_race, resume=True), there, again)
    assert again.order == ["experiment b"]
    assert len(again.findings) == 2
    assert [stored.failed for stored in store.read(tmp_path / "out").findings] == ["", ""]


APP = App("shop:app", "wsgi", sys.executable, "/")


def outcome(question: str, contestant: str, failure: FailureKind | None) -> Result:
    first = sessions(ONE_BLOCK)[0].trials[0]
    trial = replace(
        first, question=question, contestant=Contestant(contestant), app=replace(APP, path=question)
    )
    if failure is None:
        return made.measurement(trial)
    return Failed(trial, "2026-01-01", failure, f"{contestant}: it failed", ("last words",))


def answers_of(*questions: str, stacks: int = 3, baselines: Sequence[str] = ()) -> race.Answers:
    trials = [
        replace(first.trials[0], question=question, contestant=Contestant(f"stack-{number}"))
        for first in sessions(ONE_BLOCK)[:1]
        for question in questions
        for number in range(stacks)
    ]
    plan = plan_of("study apps", [Session((trial,)) for trial in trials], lab())
    before = Results(Header(ONE_BLOCK, 1, facts.facts(), "0", "now"), (), 0, torn=False)
    return race.Answers(plan, before, set(questions) - set(baselines))


def test_a_baseline_that_cannot_be_served_ends_no_race() -> None:
    answers = answers_of("shop", "shop~server", stacks=1, baselines=["shop~server"])
    answers.see(outcome("shop~server", "stack-0", FailureKind.WRONG_ANSWER))
    assert not answers.measured


def test_an_app_that_answers_wrongly_on_two_stacks_ends_the_race_with_the_first_reason() -> None:
    answers = answers_of("shop")
    answers.see(outcome("shop", "stack-0", FailureKind.WRONG_ANSWER))
    with pytest.raises(AppAnswersWrongError) as error:
        answers.see(outcome("shop", "stack-1", FailureKind.WRONG_ANSWER))
    assert "stack-0" in str(error.value)
    assert not answers.measured


def test_an_app_that_one_stack_served_is_not_refused_for_others() -> None:
    answers = answers_of("shop")
    answers.see(outcome("shop", "stack-0", FailureKind.START))
    answers.see(outcome("shop", "stack-1", None))
    answers.see(outcome("shop", "stack-2", FailureKind.WRONG_ANSWER))
    assert answers.measured


def test_what_is_missing_here_is_no_fault_of_the_app_until_nothing_is_left() -> None:
    answers = answers_of("shop")
    answers.see(outcome("shop", "stack-0", FailureKind.INSTALL))
    answers.see(outcome("shop", "stack-1", FailureKind.INSTALL))
    with pytest.raises(AppNotServedError):
        answers.see(outcome("shop", "stack-2", FailureKind.INSTALL))


def test_a_server_that_dies_under_load_had_answered() -> None:
    answers = answers_of("shop", stacks=1)
    answers.see(outcome("shop", "stack-0", FailureKind.DIED))


def test_each_app_is_judged_by_its_own_stacks() -> None:
    answers = answers_of("shop", "mall")
    answers.see(outcome("shop", "stack-0", None))
    answers.see(outcome("mall", "stack-0", FailureKind.START))
    with pytest.raises(AppNotServedError, match="mall"):
        answers.see(outcome("mall", "stack-1", FailureKind.START))


def test_a_race_of_an_app_that_nobody_serves_leaves_no_results(tmp_path: Path) -> None:
    apps = tuple(
        Session(tuple(replace(trial, app=APP) for trial in session.trials)) for session in sessions(ONE_BLOCK)
    )
    out = tmp_path / "out"
    with pytest.raises(AppNotServedError):
        raced(Race(ONE_BLOCK, apps, out, must_answer=True), replace(lab(), stacks={}), Recorder())
    assert not out.exists()

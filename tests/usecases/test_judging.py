"""Which stored runs are judged together, and by which claims."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.stored_runs import write
from tests.judge.made import FAST, MACHINE, SLOW, STACKS, THIRD_Q, failed, results, steady, trial

from velodrome.model.errors import OtherClaimsError, OtherStudyError, SameTrialsError
from velodrome.model.results import Results
from velodrome.usecases.judge import judge

pytestmark = pytest.mark.unit


def run() -> Results:
    return results([*FAST, *SLOW])


def another() -> Results:
    return results([*steady("granian", [4010, 4020, 3990]), *steady("uvicorn", [1010, 1000, 990])])


def of_study(run: Results, name: str) -> Results:
    return replace(run, header=replace(run.header, study=replace(run.header.study, name=name)))


def test_runs_of_one_study_add_up(tmp_path: Path) -> None:
    both = [write(tmp_path / "a", run()), write(tmp_path / "b", another())]
    assert [row.blocks_valid for row in judge(both, STACKS).verdict.answers[0].standings] == [6, 6]


def test_runs_of_one_study_on_two_machines_add_up(tmp_path: Path) -> None:
    there = results(another().trials, machine={**MACHINE, "cpus": 4})
    both = [write(tmp_path / "a", run()), write(tmp_path / "b", there)]
    assert [row.blocks_valid for row in judge(both, STACKS).verdict.answers[0].standings] == [6, 6]


def test_runs_in_which_the_same_failed_add_up(tmp_path: Path) -> None:
    both = [
        write(tmp_path / name, results([failed(trial("uvicorn")), *own]))
        for name, own in (("a", FAST), ("b", steady("granian", [4010, 4020, 3990])))
    ]
    assert judge(both, STACKS).verdict.set_aside


def test_a_run_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a", run())
    (tmp_path / "link").symlink_to(path)
    for again in (path, path / "results.jsonl", tmp_path / "link"):
        with pytest.raises(SameTrialsError) as refused:
            judge([path, again], STACKS)
        assert refused.value.exit_code == 2


def test_a_copy_of_a_run_is_refused_also_when_it_went_on_since(tmp_path: Path) -> None:
    path = write(tmp_path / "a", run())
    shutil.copytree(path, tmp_path / "copy")
    longer = write(tmp_path / "longer", results([*run().trials, *steady("granian", [1, 2, 3, 3999])[3:]]))
    for again in (tmp_path / "copy", longer):
        with pytest.raises(SameTrialsError, match=str(again)):
            judge([path, again], STACKS)


def test_runs_of_two_studies_are_refused(tmp_path: Path) -> None:
    path, other = write(tmp_path / "a", run()), write(tmp_path / "b", of_study(another(), "other"))
    with pytest.raises(OtherStudyError, match=r"made.*other"):
        judge([path, other], STACKS)


def test_claims_of_another_study_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a", run())
    other = of_study(results(steady("granian", [1, 2], THIRD_Q), [THIRD_Q]), "other").header.study
    with pytest.raises(OtherClaimsError, match="--claims other"):
        judge([path], STACKS, now=other)


def test_claims_of_the_study_are_judged_also_when_its_file_has_another_name_now(tmp_path: Path) -> None:
    path = write(tmp_path / "a", run())
    study = run().header.study
    assert judge([path], STACKS, now=study).verdict.study == "made"
    assert judge([path], STACKS, now=replace(study, name="renamed")).verdict.study == "made"

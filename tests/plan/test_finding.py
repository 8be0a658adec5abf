"""A study is found by name or path."""

from pathlib import Path

import pytest
from tests.plan.made import KNOWN

from velodrome.guest import catalog
from velodrome.model.errors import NoStudiesError, StudyFileError, UnknownNameError
from velodrome.plan import study_file
from velodrome.plan.findings import Known
from velodrome.plan.study_file import find_study, load_study, shipped_studies
from velodrome.run.drivers import driver
from velodrome.run.experiments import experiment as experiments


def test_a_study_that_ships_is_found_by_name_and_all_are_right() -> None:
    assert "first-lap" in shipped_studies()
    known = Known(catalog.stacks(), catalog.recipes(), driver.driver_names(), experiments.settings())
    for name in shipped_studies():
        assert load_study(name, known).name == name
        assert load_study(name, known, quick=True).form == "quick"


def test_in_a_clone_the_studies_stand_at_the_top() -> None:
    top = Path(__file__).parents[2] / "studies"
    # A link is followed by name, not by rglob.
    assert {path.name for path in top.resolve().rglob("*.toml")} == {
        path.name for path in shipped_studies().values()
    }


def test_a_path_is_taken_as_it_is() -> None:
    assert find_study("./mine") == Path("mine")
    assert find_study("mine.toml") == Path("mine.toml")
    with pytest.raises(StudyFileError, match=r"mine\.toml has 1 problem"):
        load_study("mine.toml", Known({}, {}))


def test_an_unknown_name_has_a_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"no study is called 'first-lop'\. Nearest: first-lap"):
        find_study("first-lop")


def test_a_folder_of_studies_is_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one.toml", "few/a.toml", "few/b.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(
            'contestants = ["uvicorn"]\n[[questions]]\nrecipe = "hello"\nloads = [{connections = 1, duration = 1}]\n'
        )
    monkeypatch.setattr(study_file, "studies_folder", lambda: tmp_path)
    assert list(shipped_studies()) == ["one", "few/a", "few/b"]
    assert study_file.groups() == {"few": ("few/a", "few/b")}
    assert [study_file.is_group(name) for name in ("few", "one", "few/a", str(tmp_path / "few"))] == [
        True,
        False,
        False,
        True,
    ]
    assert list(study_file.members("few")) == ["few/a", "few/b"]
    assert list(study_file.members(str(tmp_path / "few"))) == [
        str(tmp_path / "few/a.toml"),
        str(tmp_path / "few/b.toml"),
    ]
    assert load_study("few/a", KNOWN).name == "few/a"
    with pytest.raises(UnknownNameError, match=r"no study is called 'few/c'\. Nearest: few/b, few/a"):
        find_study("few/c")
    with pytest.raises(UnknownNameError, match=r"no study is called 'fex'\. Nearest: few"):
        find_study("fex")
    (tmp_path / "none").mkdir()
    with pytest.raises(NoStudiesError, match="has no study"):
        study_file.members(str(tmp_path / "none"))

"""A study is found by name or path."""

from pathlib import Path

import pytest

from velodrome.guest import catalog
from velodrome.model.errors import StudyFileError, UnknownNameError
from velodrome.plan.finding import find, load, shipped
from velodrome.plan.known import Known
from velodrome.run.drivers import choosing


def test_a_study_that_ships_is_found_by_name_and_all_are_right() -> None:
    assert "first-lap" in shipped()
    known = Known(catalog.stacks(), catalog.recipes(), choosing.known())
    for name in shipped():
        assert load(name, known).name == name
        assert load(name, known, quick=True).form == "quick"


def test_in_a_clone_the_studies_stand_at_the_top() -> None:
    top = Path(__file__).parents[2] / "studies"
    assert {path.name for path in top.glob("*.toml")} == {path.name for path in shipped().values()}


def test_a_path_is_taken_as_it_is() -> None:
    assert find("./mine") == Path("mine")
    assert find("mine.toml") == Path("mine.toml")
    with pytest.raises(StudyFileError, match=r"mine\.toml has 1 problem"):
        load("mine.toml", Known({}, {}))


def test_an_unknown_name_has_a_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"no study is called 'first-lop'\. Nearest: first-lap"):
        find("first-lop")

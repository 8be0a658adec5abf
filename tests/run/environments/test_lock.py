"""The locks that ship are those of the stacks that ship."""

import re
import runpy
from pathlib import Path

import pytest

from velodrome.run.environments import environment

TOOL = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "locks.py"))
WANTED = environment.requirement_sets(TOOL["raced"]())


def test_there_is_a_lock_for_every_set_of_requirements_and_no_other() -> None:
    wanted = {environment.path_of(requires).name for requires in WANTED}
    there = {path.name for path in environment.FOLDER.glob("*.txt")}
    assert there == wanted, "run: make lock"


@pytest.mark.parametrize("requires", WANTED, ids=" ".join)
def test_a_lock_names_what_is_required_with_hashes_and_without_a_place(requires: tuple[str, ...]) -> None:
    text = environment.path_of(requires).read_text()
    for line in requires:
        pinned = line.partition(";")[0].strip()  # uv writes a marker in its own words
        assert re.search(rf"^{re.escape(pinned)}(?=[ ;])", text, re.MULTILINE), line
    packages = re.findall(r"^[a-z0-9].*$", text, re.MULTILINE)
    assert all(package.endswith("\\") for package in packages)
    assert text.count("--hash=sha256:") >= len(packages)
    assert "://" not in text
    assert "index" not in text


def test_an_older_python_or_another_set_is_not_covered() -> None:
    requires = WANTED[0]
    assert environment.covering(requires, (3, 11)) is not None
    assert environment.covering(requires, (3, 10)) is None
    assert environment.covering((*requires, "more==1"), (3, 11)) is None
    assert environment.covering((), (3, 11)) is None

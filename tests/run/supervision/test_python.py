"""How a Python is started: nothing is imported from the current folder, and velodrome itself still is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from velodrome.model.errors import InterpreterNotFoundError
from velodrome.run.environments import guest_tree
from velodrome.run.environments.interpreter import find_interpreter
from velodrome.run.supervision import python

PRINTS_PATHS = """
import json, os, sys
from velodrome.run.supervision import python
begun = python.own("platform")
import subprocess
child = "import sys, velodrome; print(velodrome.__file__, *sys.path, sep='|')"
finished = subprocess.run([*begun.argv[:2], "-c", child], env=begun.env, capture_output=True, text=True)
print(json.dumps([begun.env.get("PYTHONPATH"), finished.stdout.strip().split("|"), finished.stderr]))
"""


def paths_of_child(folder: Path, first: str = "", **variables: str) -> tuple[str | None, list[str]]:
    """Return PYTHONPATH and `sys.path` of a process of ours, if velodrome runs in a folder with these variables."""
    ran = subprocess.run(
        [sys.executable, "-c", first + PRINTS_PATHS],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, **variables},
    )
    path, entries, wrong = json.loads(ran.stdout)
    assert not wrong
    return path, entries


@pytest.mark.parametrize("named", ["", ".", ":", "./.", "below", ".:"])
def test_no_entry_that_means_the_current_folder_is_handed_on(tmp_path: Path, named: str) -> None:
    (tmp_path / "below").mkdir()
    path, entries = paths_of_child(tmp_path, PYTHONPATH=named)
    assert path is None
    assert [entry for entry in entries if not entry or entry.startswith(str(tmp_path))] == []


def test_an_absolute_entry_stays_and_those_beside_it_go(tmp_path: Path) -> None:
    (tmp_path / "libraries").mkdir()
    libraries = str(tmp_path / "libraries")
    path, entries = paths_of_child(tmp_path, PYTHONPATH=os.pathsep.join([".", libraries, ""]))
    assert path == libraries
    assert entries[1] == libraries
    assert str(tmp_path) not in entries


def test_nothing_is_said_of_a_current_folder_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    path, entries = paths_of_child(tmp_path / "gone", "import os; os.rmdir(os.getcwd())", PYTHONPATH="")
    assert path is None
    assert entries[0].endswith("__init__.py")


def test_a_source_that_is_run_as_it_lies_there_is_found_by_its_children_too(tmp_path: Path) -> None:
    """Without being installed: by a relative entry, or from the folder it lies in."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "velodrome").symlink_to(Path(python.HOME) / "velodrome")
    for folder, variables in ((tmp_path, {"PYTHONPATH": "src"}), (tmp_path / "src", {"PYTHONPATH": ""})):
        path, entries = paths_of_child(folder, **variables)
        assert path == str(tmp_path / "src")
        assert entries[0] == str(tmp_path / "src" / "velodrome" / "__init__.py")


def test_variables_that_name_folders_are_handed_on_where_they_are_absolute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "greeting.py"))
    monkeypatch.setenv("PYTHONINSPECT", "1")
    monkeypatch.setenv("PYTHONUSERBASE", "mine")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    env = python.own_environment()
    assert env["PYTHONPYCACHEPREFIX"] == str(tmp_path)
    assert env.keys() & {"PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONUSERBASE"} == set()


@pytest.mark.parametrize("version", ["3.7", "3.8", "3.13"])
def test_a_guest_imports_nothing_from_the_current_folder_on_any_interpreter(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        interpreter = find_interpreter(version).path
    except InterpreterNotFoundError as error:
        pytest.skip(f"no Python {version} here: {error}")
    seen = tmp_path / "seen"
    for name in ("json", "site", "re", "sitecustomize", "velodrome"):
        (tmp_path / f"{name}.py").write_text(f"open({str(seen)!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(tmp_path)
    begun = python.guest(interpreter, guest_tree.export(), "velodrome.guest.apps.surroundings", env={})
    ran = subprocess.run(
        begun.argv, env=begun.env, cwd=begun.cwd, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0 or version == "3.7", ran.stderr  # that one cannot tell what is installed
    assert not seen.exists()

"""Finds a study by its name among those that ship, or by the path of its file."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack
from velodrome.model.errors import UnknownNameError
from velodrome.model.study import Study
from velodrome.plan.study_file import read


def folder() -> Path:
    """Return the folder of the studies that ship; in a clone, `studies/` points to it."""
    return Path(str(files("velodrome") / "studies"))


def shipped() -> dict[str, Path]:
    """Return the studies that ship, name to file, sorted."""
    return {path.stem: path for path in sorted(folder().glob("*.toml"))}


def find(asked: str) -> Path:
    """Return the file of a study asked for by name or path. Raises UnknownNameError when there is none.

    What has a slash or ends in `.toml` is a path and may not exist: reading it then says so.
    """
    if "/" in asked or asked.endswith(".toml"):
        return Path(asked)
    known = shipped()
    if asked not in known:
        raise UnknownNameError("study", asked, list(known))
    return known[asked]


def load(asked: str, stacks: Mapping[str, Stack], recipes: Mapping[str, Recipe]) -> Study:
    """Find and read a study. Raises UnknownNameError or StudyFileError."""
    return read(find(asked), stacks, recipes)

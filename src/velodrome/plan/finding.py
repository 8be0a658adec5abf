"""Finds a study by its name among those that ship, or by the path of its file."""

from importlib.resources import files
from pathlib import Path

from velodrome.model.errors import UnknownNameError
from velodrome.model.study import Study
from velodrome.plan.known import Known
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


def load(asked: str, known: Known, *, quick: bool = False) -> Study:
    """Find and read a study, in its quick form if asked to. Raises UnknownNameError or StudyFileError."""
    return read(find(asked), known, quick=quick)

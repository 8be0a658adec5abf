"""Finds a study, or a group of them, by its name among those that ship, or by the path of its file.

A group is a folder of studies: `articles` holds `articles/asyncio-http` and others.
"""

import os
from dataclasses import replace
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
    """Return the studies that ship, name to file, sorted: `first-lap`, `articles/asyncio-http`."""
    found = {path.relative_to(folder()).with_suffix("").as_posix(): path for path in folder().rglob("*.toml")}
    return dict(sorted(found.items(), key=lambda pair: ("/" in pair[0], pair[0])))


def groups() -> dict[str, tuple[str, ...]]:
    """Return the groups that ship, each with the names of its studies."""
    found: dict[str, tuple[str, ...]] = {}
    for name in shipped():
        group = name.rpartition("/")[0]
        if group:
            found[group] = (*found.get(group, ()), name)
    return found


def is_group(asked: str) -> bool:
    """Return whether a name is that of a group, or a path that of a folder of studies."""
    return asked in groups() or (_is_path(asked) and asked not in shipped() and os.path.isdir(asked))


def members(asked: str) -> dict[str, Path]:
    """Return the studies of a group, name (or path) to file. Raises UnknownNameError for an empty folder."""
    found = {name: shipped()[name] for name in groups().get(asked, ())}
    if not found:
        found = {str(path): path for path in sorted(Path(asked).glob("*.toml"))}
    if not found:
        raise UnknownNameError("study", asked, [*shipped(), *groups()])
    return found


def find(asked: str) -> Path:
    """Return the file of a study asked for by name or path. Raises UnknownNameError when there is none.

    What has a slash or ends in `.toml`, and is not the name of a study that ships, is a path and may not exist:
    reading it then says so.
    """
    every = shipped()
    if asked in every:
        return every[asked]
    if _is_path(asked) and asked.partition("/")[0] not in groups():
        return Path(asked)
    raise UnknownNameError("study", asked, [*every, *groups()])


def load(asked: str, known: Known, *, quick: bool = False) -> Study:
    """Find and read a study, in its quick form if asked to. Raises UnknownNameError or StudyFileError."""
    study = read(find(asked), known, quick=quick)
    # One of a group is known by its whole name, which its file does not hold.
    return replace(study, name=asked) if asked in shipped() else study


def _is_path(asked: str) -> bool:
    return "/" in asked or asked.endswith(".toml")

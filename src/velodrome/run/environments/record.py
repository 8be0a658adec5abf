"""The record of an environment that uv made: what is in it, and by being there, that it is whole.

<environment>/velodrome.json        written last, when all else is on the disk

It lists every file with size, time of change and hash. Sizes and times are compared at each use (4 to 10 µs a file);
`velodrome cache verify` compares the hashes too. Files that came later, such as bytecode of another optimization, are
no damage.
"""

import ctypes
import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

NAME = "velodrome.json"
FILES = "files"
Files = dict[str, list[Any]]
"""Path in the environment to size in bytes, time of change in ns and SHA-256; of a link, to where it leads."""


def python(home: Path) -> Path:
    """Return the interpreter of an environment."""
    return home / "bin" / "python"


def read(home: Path) -> dict[str, Any] | None:
    """Return the record of a whole environment; None: it is not there, not whole, or its interpreter is gone."""
    told = told_of(home)
    if told is None or not os.access(python(home), os.X_OK):
        return None
    return told if next(differences(home, told), None) is None else None


def told_of(home: Path) -> dict[str, Any] | None:
    """Return what an environment says of itself, whether that is still so or not."""
    try:
        told = json.loads((home / NAME).read_bytes())
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and isinstance(told.get(FILES), dict) else None


def damage(home: Path) -> str:
    """Return why an environment that is there cannot be used; empty: it can, or there is none."""
    told = told_of(home)
    if told is None:
        return f"it has no readable {NAME}" if home.exists() else ""
    if not os.access(python(home), os.X_OK):
        return "the interpreter it was made of is gone"
    return next(differences(home, told), "")


def differences(home: Path, told: Mapping[str, Any], hashes: bool = False) -> Iterator[str]:
    """Yield each file that is not as the record says, with what differs; `hashes`: read them all."""
    for name, was in told[FILES].items():
        path = f"{home}/{name}"
        try:
            found = os.lstat(path)
            if len(was) == 1:
                if not stat.S_ISLNK(found.st_mode) or os.readlink(path) != was[0] or not os.path.exists(path):
                    yield f"{name} does not lead to {was[0]} any more"
            elif found.st_size != was[0]:
                yield f"{name} has {found.st_size} bytes instead of {was[0]}"
            elif found.st_mtime_ns != was[1]:
                yield f"{name} was changed"
            elif hashes and _hash(path) != was[2]:
                yield f"{name} has other content"
        except FileNotFoundError:
            yield f"{name} is missing"
        except OSError as error:
            yield f"{name} cannot be read: {error.strerror}"


def write(home: Path, told: Mapping[str, Any]) -> None:
    """Call an environment whole, and say what is in it: after this, a power cut takes nothing of it. Raises OSError."""
    whole = json.dumps({**told, FILES: _files(home)})
    sync(home)  # before there is a record that says they are whole
    with open(home / NAME, "w", encoding="utf-8") as record:
        record.write(whole)
        record.flush()
        os.fsync(record.fileno())
    sync_folder(home)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk. Raises OSError."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sync(folder: Path) -> None:
    """Have all that was written to a folder's file system on its disk: a sync of each of 6 000 files may take minutes.

    Raises OSError.
    """
    if sys.platform != "linux":
        os.sync()
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(number) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(number)


def _files(home: Path) -> Files:
    found: Files = {}
    folders = [""]
    while folders:
        folder = folders.pop()
        with os.scandir(home / folder) as entries:
            for entry in entries:
                name = f"{folder}{entry.name}"
                if entry.is_symlink():
                    found[name] = [os.readlink(entry.path)]
                elif entry.is_dir():
                    folders.append(f"{name}/")
                elif name != NAME:
                    seen = entry.stat()
                    found[name] = [seen.st_size, seen.st_mtime_ns, _hash(entry.path)]
    return found


def _hash(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

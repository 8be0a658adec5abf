"""The guest tree: a copy of `velodrome/guest/` and nothing else, which servers under test import from.

    <cache>/guest/<hash>/velodrome/guest/…        PYTHONPATH is <cache>/guest/<hash>

Its `velodrome/__init__.py` is empty: nothing of the host can be imported, nor what is installed for it, also where
a velodrome is installed beside whoever imports from here. Copies are keyed by their content and made by a rename:
one that exists is whole, and a server keeps the files it was started from while the source is edited.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

import velodrome.guest
from velodrome.run import cache

LAYOUT = b"2"
"""Raised when copies made by an older velodrome must not be used any more."""
SOURCE = Path(velodrome.guest.__path__[0])


def export(extra_stacks: Iterable[str | Path] = ()) -> Path:
    """Return the folder that is the PYTHONPATH of a server, made if it is not there yet.

    `extra_stacks` are files named by the user; they are put among those that ship,
    where `-m velodrome.guest.stacks.<file name>` finds them. Raises CacheError if the cache cannot be written.
    """
    files = _shipped()
    for path in map(Path, extra_stacks):
        files[PurePosixPath("stacks") / path.name] = path.read_bytes()
    home = cache.folder("guest")
    tree = home / _digest(files)
    if not tree.is_dir():
        with cache.written(tree):
            _write(files, tree)
    return tree


def _shipped() -> dict[PurePosixPath, bytes]:
    return {
        PurePosixPath(path.relative_to(SOURCE).as_posix()): path.read_bytes()
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def _digest(files: Mapping[PurePosixPath, bytes]) -> str:
    digest = hashlib.sha256(LAYOUT)
    for path in sorted(files):
        digest.update(b"%s\0%d\0" % (str(path).encode(), len(files[path])))
        digest.update(files[path])
    return digest.hexdigest()[:16]


def _write(files: Mapping[PurePosixPath, bytes], tree: Path) -> None:
    building = Path(tempfile.mkdtemp(prefix="building-", dir=tree.parent))
    try:
        (building / "velodrome").mkdir()
        (building / "velodrome" / "__init__.py").touch()
        for path, content in files.items():
            target = building / "velodrome" / "guest" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        building.chmod(0o755)  # mkdtemp makes it private, but a server may run as another user
        os.rename(building, tree)
    except OSError:
        # Somebody else was first, which is as good.
        if not tree.is_dir():
            raise
    finally:
        shutil.rmtree(building, ignore_errors=True)

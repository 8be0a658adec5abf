"""The guest tree: a copy of `velodrome/guest/` and nothing else, which servers under test import from.

    <cache>/guest/<hash>/velodrome/guest/…        PYTHONPATH is <cache>/guest/<hash>

Its `velodrome/__init__.py` is empty: nothing of the host can be imported, nor what is installed for it, also where
a velodrome is installed beside whoever imports from here. Copies are keyed by their content and made by a rename, and
their sizes looked at on each use. A server keeps the files it was started from while the source is edited.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

import velodrome.guest
from velodrome.model.kept import Damage, Kept
from velodrome.run import cache
from velodrome.run.environments import installing

LAYOUT = b"2"
"""Raised when copies made by an older velodrome must not be used any more."""
SOURCE = Path(velodrome.guest.__path__[0])
PACKAGE = Path("velodrome") / "guest"


def export(extra_stacks: Iterable[str | Path] = ()) -> Path:
    """Return the folder that is the PYTHONPATH of a server, made if it is not there yet.

    `extra_stacks` are files named by the user; they are put among those that ship,
    where `-m velodrome.guest.stacks.<file name>` finds them. Raises CacheError if the cache cannot be written.
    """
    files = _in(SOURCE)
    extra = tuple(extra_stacks)
    for path in map(Path, extra):
        files[PurePosixPath("stacks") / path.name] = path.read_bytes()
    tree = cache.folder("guest") / _digest(files)
    cache.use(tree, ", ".join(["what ships", *(Path(stack).name for stack in extra)]))
    if not _whole(tree, files):
        with cache.cache_errors(tree):
            _write(files, tree)
    return tree


def tree_changed(tree: Path) -> bool:
    """Return whether a copy does not hold what it was made of any more."""
    home = tree / PACKAGE
    return _digest(_in(home)) != tree.name


def _in(home: Path) -> dict[PurePosixPath, bytes]:
    return {
        PurePosixPath(path.relative_to(home).as_posix()): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def _whole(tree: Path, files: Mapping[PurePosixPath, bytes]) -> bool:
    """Return whether every file is there in its length: a power cut may have taken what was just written."""
    try:
        return all(os.stat(tree / PACKAGE / path).st_size == len(files[path]) for path in files)
    except OSError:
        return False


def _digest(files: Mapping[PurePosixPath, bytes]) -> str:
    digest = hashlib.sha256(LAYOUT)
    for path in sorted(files):
        digest.update(b"%s\0%d\0" % (str(path).encode(), len(files[path])))
        digest.update(files[path])
    return digest.hexdigest()[:16]


def _write(files: Mapping[PurePosixPath, bytes], tree: Path) -> None:
    name = f"{tree.name}-{os.urandom(4).hex()}"
    building, old = tree.with_name(f".building-{name}"), tree.with_name(f".old-{name}")
    building.mkdir()
    try:
        (building / "velodrome").mkdir()
        (building / "velodrome" / "__init__.py").touch()
        for path, content in files.items():
            target = building / PACKAGE / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        installing.sync(building)
        if tree.is_dir() and not _whole(tree, files):
            tree.rename(old)
        building.rename(tree)
        installing.sync_folder(tree.parent)
    except OSError:
        # Somebody else was first, which is as good.
        if not _whole(tree, files):
            raise
    finally:
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def verify_trees() -> Iterator[tuple[Kept, Damage | None]]:
    """Yield each environment, overlay and copy of the guest tree, with what is damaged in it; takes about 0.2 s each.

    What is damaged is not used any more but made again when it is next needed. Raises OSError.
    """
    for kept in cache.inventory(sizes=False).every:
        if kept.kind not in {"envs", "overlays", "guest"} or kept.name.startswith("."):
            continue
        differences = _differences(kept)
        yield kept, Damage(kept, differences) if differences else None


def _differences(kept: Kept) -> tuple[str, ...]:
    home = Path(kept.path)
    if kept.kind == "guest":
        if not tree_changed(home):
            return ()
        return ("it holds other files than it was made of",) if cache.remove(kept) else (IN_USE,)
    record = installing.record_of(home)
    if record is None:
        return ()  # made by an older velodrome, or not to its end: nobody takes it for whole
    found = tuple(installing.differences(home, record, hashes=True))
    if found:
        (home / installing.RECORD).unlink(missing_ok=True)
    return found


IN_USE = "it holds other files than it was made of, and is in use: end what uses it, and verify again"

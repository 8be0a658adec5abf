"""Where velodrome keeps what it can make again: environments, copies of the guest tree, compiled bytecode.

    <cache>/<kind>/<name>           what is kept, a folder or a file
    <cache>/used/<kind>-<name>      when it was last used, by its time of change; locked by whoever uses it now

What is used now is never removed. What no run of 90 days used goes by itself.
"""

import fcntl
import os
import re
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from velodrome.model import quantity
from velodrome.model.errors import CacheError, NoHomeError
from velodrome.model.kept import Kept, Stock
from velodrome.run.account import acting

VARIABLE = "VELODROME_CACHE"
SHARED = Path("/var/cache/velodrome")
"""Where root keeps it when servers run as an ordinary user: root's own, for others to read."""


def root() -> Path:
    """Return where the cache is, whether it is there or not: $VELODROME_CACHE, else the user's cache of this system.

    Raises NoHomeError.
    """
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).absolute()
    if acting() is not None:
        return SHARED  # the home of root is closed to whom servers run as
    if sys.platform != "darwin" and (kept := os.environ.get("XDG_CACHE_HOME")):
        return Path(kept).absolute() / "velodrome"
    try:
        home = Path.home()
    except RuntimeError as error:
        raise NoHomeError(os.getuid()) from error
    return (home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache") / "velodrome"


def folder(name: str) -> Path:
    """Return (and make) a folder of the cache, which can be written. Raises CacheError, NoHomeError."""
    made = root() / name
    with cache_errors(made):
        made.mkdir(parents=True, exist_ok=True)
        if acting() is not None:
            for path in (root(), made):
                path.chmod(0o755)  # for whom servers run as
        # A folder that is there already may be somebody else's, or of a file system that is mounted read-only.
        if not os.access(made, os.W_OK | os.X_OK):
            probe = made / f".written-{os.getpid()}"
            probe.touch()
            probe.unlink()
    return made


@contextmanager
def cache_errors(path: Path) -> Iterator[None]:
    """Say of what the system refuses within the block that the cache cannot be written. Raises CacheError."""
    try:
        yield
    except OSError as error:
        raise CacheError(str(path), error.errno or 0) from error


USED = "used"
DAY_S = 86400.0
UNUSED_S = 90 * DAY_S
"""What no run used for so long goes by itself."""
TIDIED = "tidied"
"""Its time of change is when that was last looked at."""
BLOCK_BYTES = 512
"""Unit of `st_blocks`."""
LEAVINGS_S = DAY_S
"""What has no lock, such as what an interrupted run left, is nobody's after so long."""
_WHOLE = re.compile("[0-9a-f]{16}")
_HASHED = re.compile(rf"{_WHOLE.pattern}|\.(building|old)-{_WHOLE.pattern}-[0-9a-f]+")
KINDS: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("envs", "overlays", "guest", "bytecode"), _HASHED),
    "looks": re.compile(r"(look|command)-.*"),
    "crashes": re.compile(r"velodrome-crash-.*"),
}
"""Folders of the cache, and the names of what velodrome keeps there: nothing else is ever removed."""
_using: dict[Path, int] = {}
_lock = threading.Lock()


def use(path: Path, what: str) -> None:
    """Record that something kept is used now, and for `what`; nobody removes it while this process lives.

    Waits for whoever removes it now.
    """
    with _lock, suppress(OSError):  # who cannot write here cannot prune here either
        number = _using.get(path)
        if number is None:
            mark = _mark(path)
            mark.parent.mkdir(exist_ok=True)
            number = lock_file(mark, shared=True)
            if number is None:
                return
            _using[path] = number
        os.ftruncate(number, 0)
        os.pwrite(number, what.encode(), 0)
        os.utime(number)


def lock_file(path: Path, shared: bool = False) -> int | None:
    """Return the descriptor of a file that was made and locked, to be closed; None: somebody else holds it.

    A shared lock is waited for. The kernel lets go of it when all who have the descriptor are gone. Raises OSError.
    """
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX | fcntl.LOCK_NB
    while True:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(number, how)
            if os.fstat(number).st_ino == os.stat(path).st_ino:
                return number
        except BlockingIOError:
            os.close(number)
            return None
        except FileNotFoundError:
            pass  # removed with what it stood for, between our opening and our locking it
        except BaseException:
            os.close(number)
            raise
        os.close(number)


def inventory(sizes: bool = True) -> Stock:
    """Return all that is kept, what was used last first; without `sizes` it is quick. Raises OSError."""
    return _stock(_entries(sizes))


def prune(older_than_s: float | None = None, to_bytes: int | None = None) -> Stock:
    """Remove what was not used for so long, then what was used longest ago until the rest is small enough.

    What a living velodrome uses stays. Raises OSError.
    """
    entries = _entries(sizes=True)
    links: Counter[int] = Counter()
    for entry in entries:
        links.update(entry.names)
    blocks = {inode: size for entry in entries for inode, (size, _) in entry.inodes.items()}
    left_bytes = sum(blocks.values())
    gone: Counter[int] = Counter()
    removed: list[_Entry] = []
    for entry in reversed(entries):
        old = older_than_s is not None and time.time() - entry.kept.last_used > older_than_s
        if not old and (to_bytes is None or left_bytes <= to_bytes):
            continue
        if not remove(entry.kept):
            continue
        removed.append(entry)
        gone.update(entry.names)
        left_bytes -= sum(blocks[inode] for inode in entry.names if gone[inode] == links[inode])
    if older_than_s is not None:
        _forget(older_than_s)
    return _stock(removed)


def _stock(some: Sequence["_Entry"]) -> Stock:
    """Return what some are together."""
    found: dict[int, tuple[int, int]] = {}
    names: Counter[int] = Counter()
    for entry in some:
        found.update(entry.inodes)
        names.update(entry.names)
    size = sum(size for size, _ in found.values())
    freed = sum(size for inode, (size, count) in found.items() if names[inode] >= count)
    return Stock(tuple(entry.kept for entry in some), size, freed)


def tidy(tell: Callable[[str], None]) -> None:
    """Remove what killed installers left, and at most once a day what no run used for 90 days, with a notice."""
    try:
        for kept in inventory(sizes=False).every:
            if kept.name.startswith((".building-", ".old-")) and not kept.in_use:
                remove(kept)
        tidied = folder("") / TIDIED
        if tidied.exists() and 0 <= time.time() - tidied.stat().st_mtime < DAY_S:
            return
        tidied.touch()
        oldest = min((kept.last_used for kept in inventory(sizes=False).every), default=time.time())
        if time.time() - oldest <= UNUSED_S:
            return
        found = prune(older_than_s=UNUSED_S)
    except OSError:
        return  # what cannot be removed now may be another day
    if found.every:
        things = f"{len(found.every)} thing{'s' if len(found.every) > 1 else ''}"
        tell(
            f"removed {things} from the cache that no run used for {UNUSED_S / DAY_S:.0f} days "
            f"({quantity.memory(found.size_bytes)}): velodrome cache"
        )


@dataclass(frozen=True)
class _Entry:
    """Something kept, and the files it is made of."""

    kept: Kept
    inodes: Mapping[int, tuple[int, int]]
    """Bytes on the disk and number of names anywhere, by inode."""
    names: Mapping[int, int]
    """Number of names in it, by inode."""


def _entries(sizes: bool) -> list[_Entry]:
    """Return what is kept, what was used last first."""
    found = []
    for kind, pattern in KINDS.items():
        for path in _in(folder("") / kind):
            if pattern.fullmatch(path.name):
                with suppress(FileNotFoundError):  # removed meanwhile
                    found.append(_entry(kind, path, sizes))
    return sorted(found, key=lambda entry: entry.kept.last_used, reverse=True)


def _in(home: Path) -> list[Path]:
    try:
        return sorted(home.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _entry(kind: str, path: Path, sizes: bool) -> _Entry:
    used, what, in_use = path.lstat().st_mtime, "", False
    mark = _mark(path)
    with suppress(OSError):
        used, what = mark.stat().st_mtime, mark.read_text(errors="replace")
        in_use = _is_held(mark)
    lock = _making(path)
    in_use = in_use or (lock is not None and lock.exists() and _is_held(lock))
    inodes: dict[int, tuple[int, int]] = {}
    names: Counter[int] = Counter()
    for inode, size, count in _stats(path) if sizes else ():
        inodes[inode] = (size, count)
        names[inode] += 1
    kept = Kept(
        kind,
        path.name,
        str(path),
        what,
        used,
        in_use,
        sum(size for size, _ in inodes.values()),
        sum(size for inode, (size, count) in inodes.items() if names[inode] >= count),
    )
    return _Entry(kept, inodes, names)


def _stats(path: Path) -> Iterator[tuple[int, int, int]]:
    """Yield inode, bytes and names anywhere of each file and folder; links of a folder are no names."""
    own = path.lstat()
    if not path.is_dir() or path.is_symlink():
        yield own.st_ino, own.st_blocks * BLOCK_BYTES, own.st_nlink
        return
    yield own.st_ino, own.st_blocks * BLOCK_BYTES, 1
    folders = [str(path)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                seen = entry.stat(follow_symlinks=False)
                below = entry.is_dir(follow_symlinks=False)
                if below:
                    folders.append(entry.path)
                yield seen.st_ino, seen.st_blocks * BLOCK_BYTES, 1 if below else seen.st_nlink


def _mark(path: Path) -> Path:
    return path.parent.parent / USED / f"{path.parent.name}-{path.name}"


def _making(path: Path) -> Path | None:
    """Return the lock of whoever makes this, or fills it; None: nobody does."""
    if path.parent.name not in {"envs", "overlays"}:
        return None
    whole = _WHOLE.search(path.name)
    return path.with_name(f"{whole[0]}.lock") if whole else None  # nothing else matches its kind's names


def _is_held(file: Path) -> bool:
    number = lock_file(file)
    if number is None:
        return True
    os.close(number)
    return False


def remove(kept: Kept) -> bool:
    """Remove something kept unless it is used; whether it has gone."""
    path = Path(kept.path)
    if (
        _making(path) is None
        and not _WHOLE.fullmatch(kept.name)
        and time.time() - kept.last_used < LEAVINGS_S
    ):
        return False
    held: list[int] = []
    mark, lock = _mark(path), _making(path)
    try:
        mark.parent.mkdir(exist_ok=True)
        for file in filter(None, (mark, lock)):
            number = lock_file(file)
            if number is None:
                return False
            held.append(number)
        if path.is_dir() and not path.is_symlink():
            # Aside first: what is there under its own name is always whole.
            aside = path.with_name(f".old-{path.name[-16:]}-{os.urandom(4).hex()}")
            if _WHOLE.fullmatch(kept.name):
                path.rename(aside)
                path = aside
            shutil.rmtree(path)
        else:
            path.unlink()
        if lock is not None:
            lock.with_suffix(".failed").unlink(missing_ok=True)
            lock.unlink(missing_ok=True)
        mark.unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        for number in held:
            os.close(number)
    return True


def _forget(older_than_s: float) -> None:
    """Remove notes of environments that are not there any more."""
    for kind in ("envs", "overlays"):
        for note in _in(folder("") / kind):
            with suppress(OSError):
                unused = time.time() - note.stat().st_mtime > older_than_s
                if note.suffix == ".failed" and unused and not note.with_suffix("").exists():
                    note.unlink()
    for mark in _in(folder("") / USED):
        kind, _, name = mark.name.partition("-")
        with suppress(OSError):
            unused = time.time() - mark.stat().st_mtime > older_than_s
            if unused and not (folder("") / kind / name).exists() and not _is_held(mark):
                mark.unlink()

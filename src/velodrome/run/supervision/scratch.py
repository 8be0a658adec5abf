"""Temporary folders with an owner: gone with the velodrome that made them, at the latest when the next velodrome
starts.

    with scratch.hold_folder("look") as folder: ...     # made, and removed at the end
    scratch.make_folder("run")                          # kept until this process ends
    scratch.new_path("server")                      # for an `Order`: its warden makes and removes it

All of one process lie in one folder, `velodrome-PID-…` in the folder for temporary files. In it is a lock file that the
process holds, and its wardens with it: so ownership ends when the last of them does, however they end, and is seen
from other containers that share the folder. The number in the name is for people.
"""

import atexit
import os
import re
import secrets
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from velodrome.model.errors import ScratchError
from velodrome.run.faults import refusals
from velodrome.run.supervision.warden import (
    LOCK,
    Found,
    claim,
    clear,
    descendants,
    end_all,
    look_up,
    start_time,
    take_away,
)

MARK = "VELODROME_WARD"
"""Environment variable whose value is unique to one tree: whoever carries it belongs to it."""
_ENTRY = f"{MARK}=".encode()


def mark(lock: str) -> str:
    """Return a fresh mark: a random part, who we are (number and start), and the lock that we and our wardens hold."""
    return f"{secrets.token_hex(8)}:{os.getpid()}:{start_time(os.getpid())}:{lock}"


def end_orphans() -> int:
    """End what dead velodromes left running; return how many processes that were."""
    if sys.platform != "linux":
        return 0
    spared = {os.getpid(), *_ancestors(os.getpid())}
    cared: dict[str, bool] = {}

    def nobodys(pid: int, value: str) -> bool:
        if value not in cared:
            cared[value] = _cared_for(value)
        return not cared[value] and pid not in spared and _seen_alike(pid)

    first = _bearing(nobodys, spared)
    end_all(lambda: _bearing(nobodys, spared), lambda pid: pid not in spared and _bears(pid, nobodys))
    return len(first)


def end_marked(mark: str, seconds: float) -> list[int]:
    """End the processes that carry a mark, and all below them; return what is left."""

    def meant(_: int, value: str) -> bool:
        return value == mark

    return end_all(lambda: _bearing(meant), lambda pid: _bears(pid, meant), seconds)


def _bearing(meant: Callable[[int, str], bool], spared: Container[int] = ()) -> Found:
    """Return the living processes with a mark that is meant, and all below them."""
    roots = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        found = look_up(pid)  # first: where the number is given away in between the start is not its own
        if found and found[0] not in b"ZX" and (value := _mark_of(pid)) and meant(pid, value):
            roots[pid] = found[2], found[0]
    every = descendants(*roots) | roots if roots else {}
    return {pid: process for pid, process in every.items() if pid not in spared}


def _bears(pid: int, meant: Callable[[int, str], bool]) -> bool:
    """Return whether a process, or a process above it, has a mark that is meant."""
    return any(
        (value := _mark_of(candidate)) and meant(candidate, value) for candidate in (pid, *_ancestors(pid))
    )


def _mark_of(pid: int) -> str:
    """Return the mark in the environment of a process; empty: it has none, or we may not know."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as environment:
            _, entry, rest = (b"\0" + environment.read()).partition(b"\0" + _ENTRY)
    except OSError:
        return ""
    return os.fsdecode(rest.partition(b"\0")[0]) if entry else ""


def _cared_for(value: str) -> bool:
    """Return whether whoever set this mark lives, or a warden does; also where that is not known."""
    _, pid, start, lock = (*value.split(":", 3), "", "", "")[:4]
    if not (pid.isdecimal() and start.isdecimal()) or start_time(int(pid)) == int(start):
        return True
    try:
        # Anybody may write anything into an environment; root opens no device for it.
        if os.path.basename(lock) != LOCK or not stat.S_ISREG(os.lstat(lock).st_mode):
            return True
    except FileNotFoundError:
        return False
    except OSError:
        return True
    if (number := claim(lock)) < 0:
        return True
    os.close(number)
    return False


def _seen_alike(pid: int) -> bool:
    """Return whether process numbers and paths mean the same to a process and to us."""
    with suppress(OSError):
        return all(
            os.readlink(f"/proc/{pid}/ns/{kind}") == os.readlink(f"/proc/self/ns/{kind}")
            for kind in ("pid", "mnt")
        )
    return False


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 1 and (found := look_up(pid)):
        pid = found[1]
        yield pid


NAME = re.compile(r"velodrome-\d+-[0-9a-f]{16}")
UNLOCKED_S = 60.0
"""Between the making of a folder and of its lock are microseconds: older than this, it will never get a lock."""


@dataclass(frozen=True)
class Home:
    """The folder of one process."""

    process: int
    folder: Path
    descriptor: int
    """Of its lock."""

    @property
    def lock(self) -> Path:
        """Its lock file."""
        return self.folder / LOCK


_home: list[Home] = []
"""Of this process; empty until it needs a folder."""
_guard = threading.Lock()


def home() -> Home:
    """Return the folder of this process, made when first needed; what others left is swept. Raises ScratchError."""
    with _guard:
        if _home and _home[0].process == os.getpid():
            return _home[0]
        if _home:
            os.close(_home.pop().descriptor)  # we were forked; it is held on by whom it belongs to
        else:
            atexit.register(_end)
        sweep()
        _home.append(_make_home(_temporary()))
        return _home[0]


def new_path(kind: str) -> Path:
    """Return the path of a folder that is not there yet. Raises ScratchError."""
    return home().folder / f"{kind}-{secrets.token_hex(8)}"


def make_folder(kind: str) -> Path:
    """Make a folder, for ourselves alone, that is removed when this process has ended. Raises ScratchError."""
    folder = new_path(kind)
    try:
        folder.mkdir(0o700)
    except OSError as error:
        raise ScratchError(str(folder), error.strerror or str(error)) from error
    return folder


@contextmanager
def hold_folder(kind: str) -> Iterator[Path]:
    """Make a folder, for ourselves alone, and remove it at the end. Raises ScratchError."""
    folder = make_folder(kind)
    try:
        yield folder
    finally:
        clear(str(folder))


def holds(path: str) -> bool:
    """Return whether a path lies in the folder of this process."""
    ours = _home[0] if _home else None
    return bool(
        ours and ours.process == os.getpid() and Path(os.path.realpath(path)).is_relative_to(ours.folder)
    )


def sweep(place: Path | None = None) -> int:
    """Remove the folders of our user's velodromes whose lock nobody holds; return how many that were.

    What still runs in them is ended first. `place`: where to look, if not among our own temporary files.
    """
    swept = 0
    for folder in _of_ours(place or _temporary()):
        if (number := claim(str(folder / LOCK))) < 0:
            continue
        os.close(number)  # else what carries its mark would look cared for
        end_orphans()
        if (number := claim(str(folder / LOCK))) >= 0:
            try:
                swept += _remove(folder)
            finally:
                os.close(number)
    return swept


def _of_ours(place: Path) -> list[Path]:
    """Return the folders of velodromes of our user; those without a lock that are empty and old are removed."""
    found = []
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if not NAME.fullmatch(entry.name) or not entry.is_dir(follow_symlinks=False):
                continue
            with suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                if about.st_uid != os.geteuid():
                    continue
                if os.path.lexists(os.path.join(entry.path, LOCK)):
                    found.append(Path(entry.path))
                elif about.st_mtime < time.time() - UNLOCKED_S:
                    os.rmdir(entry.path)
    return found


def _remove(folder: Path) -> bool:
    """Remove the folder of a velodrome; whether it is gone."""
    with suppress(OSError):
        take_away(str(folder))
    return not os.path.lexists(folder)


def _temporary() -> Path:
    """Return where temporary files go, as the kernel calls it. Raises ScratchError."""
    with refusals():
        return Path(os.path.realpath(tempfile.gettempdir()))


def _make_home(place: Path) -> Home:
    """Make a folder and take its lock, before anybody takes it for an orphan's. Raises ScratchError."""
    while True:
        folder = place / f"velodrome-{os.getpid()}-{secrets.token_hex(8)}"
        try:
            folder.mkdir()
            folder.chmod(0o711)  # databases, and servers of another user, go through it to their own
            os.close(os.open(folder / LOCK, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_RDWR, 0o600))
        except OSError as error:
            raise ScratchError(str(folder), error.strerror or str(error)) from error
        if (number := claim(str(folder / LOCK))) >= 0:
            return Home(os.getpid(), folder, number)


def _end() -> None:
    """Remove all that is left of this process, at its end."""
    if _home and _home[0].process == os.getpid():
        _remove(_home[0].folder)

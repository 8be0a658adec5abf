"""What a dead velodrome left running: found by its mark, and ended, at the next start.

Every tree under a warden carries a mark in its environment, which says whose it is (`mark`). While velodrome or one of
its wardens lives, the tree is theirs to end. When all were killed at the same moment, nobody is: then the next
velodrome of the same user (of any user, where it is root) does it.
"""

import os
import secrets
import stat
import sys
from collections.abc import Callable, Container, Iterator
from contextlib import suppress

from velodrome.run.supervision.warden import LOCK, Found, claim, descendants, end_all, looked_up, started

MARK = "VELODROME_WARD"
"""Environment variable whose value is unique to one tree: whoever carries it belongs to it."""
_ENTRY = f"{MARK}=".encode()


def mark(lock: str) -> str:
    """Return a fresh mark: a random part, who we are (number and start), and the lock that we and our wardens hold."""
    return f"{secrets.token_hex(8)}:{os.getpid()}:{started(os.getpid())}:{lock}"


def sweep() -> int:
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


def end(mark: str, seconds: float) -> list[int]:
    """End the processes that carry a mark, and all below them; return what is left."""

    def meant(_: int, value: str) -> bool:
        return value == mark

    return end_all(lambda: _bearing(meant), lambda pid: _bears(pid, meant), seconds)


def _bearing(meant: Callable[[int, str], bool], spared: Container[int] = ()) -> Found:
    """Return the living processes with a mark that is meant, and all below them."""
    roots = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        found = looked_up(pid)  # first: where the number is given away in between the start is not its own
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
    if not (pid.isdecimal() and start.isdecimal()) or started(int(pid)) == int(start):
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
    while pid > 1 and (found := looked_up(pid)):
        pid = found[1]
        yield pid

"""What a dead velodrome left running: found by its mark, and ended, at the next start.

Every tree under a warden carries a mark in its environment, which says whose it is (`mark`). While velodrome or one of
its wardens lives, the tree is theirs to end. When all were killed at the same moment, nobody is: then the next
velodrome of the same user (of any user, where it is root) does it.
"""

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import suppress

from velodrome.run.supervision.warden import Found, claim, descendants, end_all, looked_up, started

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
    first = _orphans()
    end_all(_orphans, lambda pid: pid in _orphans())
    return len(first)


def carriers(mark: str) -> Found:
    """Return the living processes that carry a mark, and all below them."""
    roots = {pid: (start, state) for pid, start, state, value in _marked() if value == mark}
    return descendants(*roots) | roots


def _orphans() -> Found:
    """Return the processes that carry a mark of which nobody takes care any more, and all below them."""
    spared = {os.getpid(), *_ancestors(os.getpid())}
    cared: dict[str, bool] = {}
    roots: dict[int, tuple[int, bytes]] = {}
    for pid, start, state, value in _marked():
        if value not in cared:
            cared[value] = _cared_for(value)
        if not cared[value] and pid not in spared and _seen_alike(pid):
            roots[pid] = start, state
    if not roots:
        return {}
    return {pid: one for pid, one in (descendants(*roots) | roots).items() if pid not in spared}


def _marked() -> Iterator[tuple[int, int, bytes, str]]:
    """Yield number, start, state and mark of every process that has a mark and lets us read it."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        found = looked_up(int(name))  # first: of a number that is given away in between neither is right
        if found is None or found[0] in b"ZX":
            continue
        with suppress(OSError), open(f"/proc/{name}/environ", "rb") as environment:
            text = b"\0" + environment.read()
            _, entry, rest = text.partition(b"\0" + _ENTRY)
            if entry:
                yield int(name), found[2], found[0], os.fsdecode(rest.partition(b"\0")[0])


def _cared_for(value: str) -> bool:
    """Return whether whoever set this mark lives, or a warden does; also where that cannot be told."""
    _, pid, start, lock = (*value.split(":", 3), "", "", "")[:4]
    if not (pid.isdecimal() and start.isdecimal() and lock) or started(int(pid)) == int(start):
        return True
    if not os.path.lexists(lock):
        return False
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

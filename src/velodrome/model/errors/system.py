"""The system refuses what the lab itself needs, velodrome is not whole, or it failed in a way nobody foresaw."""

from __future__ import annotations

import errno
import os

from velodrome.model.errors.root import VelodromeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
CURES = {
    "open files": "Allow more (ulimit -n 4096), or ask for fewer connections",
    "open files of the machine": "End other programs, or raise fs.file-max",
    "processes and threads": "End some of this user's processes, or allow more (ulimit -u; pids.max of its "
    "control group)",
    "memory": "End other programs, or ask for less",
}


class CacheError(VelodromeError):
    """Raised when the folder of what velodrome keeps cannot be found, made or written."""

    def __init__(self, folder: str, number: int) -> None:
        """`number` is the errno."""
        self.folder, self.reason = folder, os.strerror(number)
        room = "Free some space there, or set" if number in NO_ROOM else "Set"
        super().__init__(
            f"the cache {folder} cannot be written: {self.reason}. {room} VELODROME_CACHE to a folder you may write to"
        )


class NoHomeError(VelodromeError):
    """Raised when nothing says where a user's files are: neither HOME nor the system's list of users."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        super().__init__(
            f"there is no place for the cache: HOME is not set, and the system knows no user with the number {uid}. "
            "Set HOME, or VELODROME_CACHE to a folder you may write to"
        )


class ScratchError(VelodromeError):
    """Raised when there is no folder for temporary files, or it cannot be written."""

    def __init__(self, folder: str, reason: str) -> None:
        self.folder, self.reason = folder, reason
        super().__init__(
            f"temporary files cannot be written into {folder}: {reason}. Free some space there, or set TMPDIR to a "
            "folder you may write to"
        )


class FullError(VelodromeError):
    """Raised when a file system has no room left; `places` are those of velodrome's that have none."""

    def __init__(self, places: Sequence[str], reason: str) -> None:
        self.places, self.reason = tuple(places), reason
        where = " and ".join(places) or "a file system that velodrome writes to"
        super().__init__(
            f"{where} cannot be written: {reason}. Free some space there, or choose another place"
        )


class ExhaustedError(VelodromeError):
    """Raised when the system gives this process no more of something; `limit` is how much it may have, if known."""

    def __init__(self, what: str, limit: int | None, reason: str) -> None:
        self.what, self.limit, self.reason = what, limit, reason
        most = f" ({limit} at most)" if limit is not None else ""
        super().__init__(f"the system gives velodrome no more {what}{most}: {reason}. {CURES[what]}")


class TerminalError(VelodromeError):
    """Raised when what a command prints cannot be written."""

    def __init__(self, where: str, reason: str) -> None:
        self.where, self.reason = where, reason
        super().__init__(f"cannot write {where}: {reason}. Send it elsewhere")


class BrokenInstallationError(VelodromeError):
    """Raised when a part of velodrome, or of what it needs, is not there or cannot be loaded."""

    def __init__(self, module: str, reason: str) -> None:
        self.module, self.reason = module, reason
        super().__init__(
            f"velodrome is not installed whole: {module} cannot be loaded: {reason}. Install it again: "
            "python -m pip install --force-reinstall velodrome"
        )


class UnforeseenError(VelodromeError):
    """Raised in place of what nobody foresaw, a bug of velodrome's most often. `crash`: where its traceback is."""

    def __init__(self, kind: str, text: str, crash: str, why_not: str = "") -> None:
        self.kind, self.text, self.crash = kind, text, crash
        told = f"{kind}: {text}" if text else kind
        where = (
            f"The traceback is in {crash}; please report it"
            if crash
            else f"The traceback could be written nowhere ({why_not})"
        )
        super().__init__(f"velodrome failed in a way that was not foreseen ({told}). {where}")

"""Files that a user names, by `--out` or `--csv`: whether they can be written, and how.

A file is written whole or not at all: beside its place, and then moved there with the mode of the old one. What is no
file (a terminal, a pipe, a device, `/dev/fd/63`) is written into: moving a file there would take it away.
"""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Hashable
    from pathlib import Path


def write(path: Path, content: str) -> None:
    """Write what a user named. Raises OutputError when it cannot be written."""
    from velodrome.model.errors import OutputError  # noqa: PLC0415

    try:
        _write(str(path), content.encode())
    except OSError as error:
        raise OutputError(str(path), error.strerror or str(error)) from error


def _write(path: str, data: bytes) -> None:
    if (number := _descriptor(path)) is not None:
        sys.stdout.flush()  # what was printed before comes before it
        # A copy goes on where the last writer stopped; a file that is opened anew begins at its start.
        with open(os.dup(number), "wb") as file:
            file.write(data)
        return
    found = _found(path)
    if found is not None and not stat.S_ISREG(found.st_mode):
        _write_into(path, data)
        return
    import errno  # noqa: PLC0415 - `velodrome load` looks at paths before its first request

    if found is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    target = os.path.realpath(path)
    try:
        replace(target, data, found)
    except OSError as error:
        # Its folder is not ours to change, or the file is mounted: it may be written all the same.
        if found is None or error.errno not in (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS):
            raise
        _write_into(target, data)


def replace(target: str, data: bytes, found: os.stat_result | None) -> None:
    """Move a file with this content to its place; `found` is the one that is there. Raises OSError."""
    unfinished = os.path.join(os.path.dirname(target), f".velodrome-{os.urandom(6).hex()}.part")
    mode = 0o666 if found is None else 0o600
    number = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(number, "wb") as file:
            if found is not None:
                _make_alike(number, found)
            file.write(data)
        os.replace(unfinished, target)
    except BaseException:
        os.unlink(unfinished)
        raise


def _make_alike(number: int, found: os.stat_result) -> None:
    """Give an open file the owner and the mode of another, as far as we may."""
    from contextlib import suppress  # noqa: PLC0415

    with suppress(PermissionError):
        os.fchown(number, found.st_uid, found.st_gid)
    with suppress(PermissionError):  # last: another owner takes bits away
        os.fchmod(number, found.st_mode & 0o777)


def _write_into(path: str, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_TRUNC), "wb") as file:
        file.write(data)


def obstacle(path: str) -> str:
    """Return why a file cannot be written; empty: it can, as far as is known. Opens nothing: a pipe would wait."""
    if (number := _descriptor(path)) is not None:
        return _obstacle_of_descriptor(number)
    try:
        found = _found(path)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    if found is None:
        folder = os.path.dirname(os.path.realpath(path))
        if not path or not os.path.isdir(folder):
            return f"there is no folder {os.path.dirname(path) or folder}" if path else "it has no name"
        return "" if os.access(folder, os.W_OK | os.X_OK) else f"nothing may be written in {folder}"
    for of_kind, kind in ((stat.S_ISDIR, "folder"), (stat.S_ISSOCK, "socket")):
        if of_kind(found.st_mode):
            return f"it is a {kind}"
    return "" if os.access(path, os.W_OK) else "it is not yours to write"


def is_stream(path: str) -> bool:
    """Return whether a path is no file and is to be none: what is written comes after what was written before."""
    if _descriptor(path) is not None:
        return True
    try:
        found = _found(path)
    except OSError:
        return False
    return found is not None and not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))


def identity(path: str) -> Hashable | None:
    """Return what two paths of one file share; None: several may be written there, as on a terminal."""
    if _descriptor(path) is not None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return None if stat.S_ISCHR(found.st_mode) else (found.st_dev, found.st_ino)


def _found(path: str) -> os.stat_result | None:
    """Return what is at the end of a path's links; None: nothing. Raises OSError, as for links in a circle."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


MOST_LINKS = 40
"""As the kernel follows."""


def _descriptor(path: str) -> int | None:
    """Return the number of the open file that a path stands for, as `/dev/stdout` and `/dev/fd/63` do."""
    own = {"/dev/fd", os.path.realpath("/dev/fd"), f"/proc/{os.getpid()}/fd"}
    for _ in range(MOST_LINKS):
        folder, name = os.path.split(os.path.abspath(path))
        if name.isascii() and name.isdigit() and os.path.realpath(folder) in own:
            return int(name)
        try:
            path = os.path.join(folder, os.readlink(path))
        except (OSError, ValueError):
            return None
    return None


def _obstacle_of_descriptor(number: int) -> str:
    import fcntl  # noqa: PLC0415

    try:
        flags = fcntl.fcntl(number, fcntl.F_GETFL)
    except (OSError, OverflowError):
        return "no file of this number is open"
    return "it is open for reading only" if flags & os.O_ACCMODE == os.O_RDONLY else ""

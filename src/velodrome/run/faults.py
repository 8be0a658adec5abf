"""What went wrong, as an error that names its cause: what the system refuses, or else a bug and where its traceback is.

    with refusals():                 # what may need descriptors, processes, room
        ...
    raise as_velodrome_error(error)                # the last net: of whatever came through

Nothing is imported at the top that a load does without.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import contextmanager, suppress

from velodrome.model.errors import VelodromeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
CRASHES = "crashes"
"""Folder of the cache for tracebacks."""
KEPT = 20
"""So many, the newest."""
LEAST_BYTES = 64 * 1024
"""A file system with less room than this is what could not be written."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def refusals() -> Iterator[None]:
    """Raise what the system refuses within the block as the VelodromeError that names it; all else as it is."""
    try:
        yield
    except (OSError, RuntimeError, MemoryError, ImportError) as error:
        found = name_fault(error)
        if found is None:
            raise
        raise found from error


def as_velodrome_error(error: BaseException) -> VelodromeError:
    """Return what a user reads of any exception; the traceback of an exception that nobody foresaw is in a file."""
    found = name_fault(error)
    if found is not None:
        return found
    from velodrome.model.errors.lab import UnforeseenError  # noqa: PLC0415

    path, why_not = keep(error)
    return UnforeseenError(type(error).__name__, str(error), path, why_not)


def sentence(error: Exception) -> str:
    """Return how a result describes an exception: of a stranger's code, such as a stack's, its class and text."""
    if name_fault(error) is None and _of_others(error.__traceback__):
        return f"{type(error).__name__}: {error}"
    return as_velodrome_error(error).sentence


def name_fault(error: BaseException) -> VelodromeError | None:
    """Return the error that names what the system, or this installation, lacks; None: it is something else."""
    from velodrome.model.errors import lab  # noqa: PLC0415

    if isinstance(error, VelodromeError):
        return error
    if isinstance(error, MemoryError):
        return lab.ExhaustedError("memory", _limit("RLIMIT_AS"), os.strerror(errno.ENOMEM))
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return _no_process()
    if isinstance(error, RuntimeError) and "home directory" in str(error):
        return lab.NoHomeError(os.getuid())
    if isinstance(error, ImportError):
        return _import(error)
    return _of_system(error) if isinstance(error, OSError) else None


def _of_system(error: OSError) -> VelodromeError | None:
    from velodrome.model.errors import lab  # noqa: PLC0415

    number, reason = error.errno or 0, error.strerror or str(error)
    exhausted = {
        errno.EMFILE: ("open files", "RLIMIT_NOFILE"),
        errno.ENFILE: ("open files of the machine", ""),
        errno.ENOMEM: ("memory", "RLIMIT_AS"),
    }
    if number in exhausted:
        what, limit = exhausted[number]
        return lab.ExhaustedError(what, _limit(limit), reason)
    if number == errno.EAGAIN and _started_something(error.__traceback__):
        return _no_process()
    if "No usable temporary directory" in reason:
        return lab.ScratchError(_scratch(), os.strerror(_full(_scratch()) or errno.EACCES))
    return _no_room(error, reason) if number in (*NO_ROOM, errno.EROFS) else None


def _no_room(error: OSError, reason: str) -> VelodromeError:
    """Name what has no room, or is mounted read-only: the file that was written, or else by how much room there is."""
    from velodrome.model.errors import lab  # noqa: PLC0415
    from velodrome.run import cache  # noqa: PLC0415

    number = error.errno or 0
    kept = ""
    with suppress(VelodromeError):
        kept = str(cache.root())
    scratch = _scratch()
    if isinstance(error.filename, str | bytes):
        file = os.path.abspath(os.fsdecode(error.filename))
        if kept and file.startswith(kept + os.sep):
            return lab.CacheError(kept, number)
        if file.startswith(scratch + os.sep):
            return lab.ScratchError(scratch, reason)
        return lab.FullError([file], reason)
    if _takes_nothing(1):
        return lab.TerminalError("standard output", reason)
    full = [place for place in dict.fromkeys((kept, scratch, os.getcwd())) if place and _full(place)]
    if full == [kept]:
        return lab.CacheError(kept, number)
    return lab.ScratchError(scratch, reason) if full == [scratch] else lab.FullError(full, reason)


def _no_process() -> VelodromeError:
    from velodrome.model.errors.lab import ExhaustedError  # noqa: PLC0415

    return ExhaustedError("processes and threads", _limit("RLIMIT_NPROC"), os.strerror(errno.EAGAIN))


def _import(error: ImportError) -> VelodromeError | None:
    """Name what is not installed, or cannot be loaded: what velodrome itself imports, not what a stack does."""
    from velodrome.model.errors import lab  # noqa: PLC0415

    if os.strerror(errno.EMFILE) in str(error):
        return lab.ExhaustedError("open files", _limit("RLIMIT_NOFILE"), os.strerror(errno.EMFILE))
    if _of_others(error.__traceback__):
        return None
    part = str(error).split("'")[1] if str(error).startswith("cannot import name '") else ""
    return lab.BrokenInstallationError(".".join(filter(None, (error.name, part))) or "a module", str(error))


def _started_something(trace: TracebackType | None) -> bool:
    """Whether an exception comes from starting a process: EAGAIN means many things elsewhere."""
    return any("fork" in name or name == "_execute_child" for _, name in _frames(trace))


def _of_others(trace: TracebackType | None) -> bool:
    """Whether code that is neither velodrome's nor installed with it took part."""
    import sysconfig  # noqa: PLC0415

    ours = tuple(
        filter(None, (PACKAGE, *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))))
    )
    files = [file for file, _ in _frames(trace) if not file.startswith("<")]
    first = next((number for number, file in enumerate(files) if file.startswith(PACKAGE)), 0)
    return any(not os.path.abspath(file).startswith(ours) for file in files[first:])


def _frames(trace: TracebackType | None) -> Iterator[tuple[str, str]]:
    while trace is not None:
        code = trace.tb_frame.f_code
        yield code.co_filename, code.co_name
        trace = trace.tb_next


def _limit(name: str) -> int | None:
    import resource  # noqa: PLC0415

    if not name:
        return None
    soft, _ = resource.getrlimit(getattr(resource, name))
    return None if soft == resource.RLIM_INFINITY else soft


def _scratch() -> str:
    return os.path.abspath(os.environ.get("TMPDIR") or "/tmp")  # noqa: S108 - where Python looks itself


def _full(place: str) -> int:
    """Return why nothing can be written into a folder, which need not be there yet: no room, or read-only; else 0."""
    while not os.path.isdir(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    try:
        found = os.statvfs(place)
    except OSError:
        return 0
    if found.f_flag & os.ST_RDONLY:
        return errno.EROFS
    return errno.ENOSPC if found.f_bavail * found.f_frsize < LEAST_BYTES else 0


def _takes_nothing(number: int) -> bool:
    """Whether a descriptor is a file without room, or a device that is no terminal (/dev/full)."""
    try:
        kind = os.fstat(number).st_mode
        room = os.fstatvfs(number)
    except OSError:
        return False
    if stat.S_ISREG(kind):
        return room.f_bavail * room.f_frsize < LEAST_BYTES
    return stat.S_ISCHR(kind) and os.major(os.fstat(number).st_rdev) == 1 and not _is_null(number)


def _is_null(number: int) -> bool:
    return os.path.samestat(os.fstat(number), os.stat(os.devnull))


def keep(error: BaseException) -> tuple[str, str]:
    """Write a traceback into the cache, or else among the temporary files; return its path, or nothing and why not."""
    from velodrome.model.secrets import mask  # noqa: PLC0415

    text = mask(_report(error))
    why_not = ""
    for place in (_in_cache, _in_scratch):
        try:
            return _write(place(), text), ""
        except (OSError, VelodromeError) as trouble:
            why_not = getattr(trouble, "strerror", None) or getattr(trouble, "reason", None) or str(trouble)
    return "", why_not


def _in_cache() -> Path:
    from velodrome.run import cache  # noqa: PLC0415

    where = cache.folder(CRASHES)
    for old in sorted(where.glob("*.txt"), key=lambda file: file.name)[: -KEPT + 1]:
        with suppress(OSError):
            old.unlink()
    return where


def _in_scratch() -> Path:
    import tempfile  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    return Path(tempfile.gettempdir())


def _write(where: Path, text: str) -> str:
    """Write a file that nobody else may read, and that was not there: the folder may be everybody's."""
    import time  # noqa: PLC0415

    path = (
        where
        / f"velodrome-crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10**6}.txt"
    )
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with open(number, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return str(path)


def _report(error: BaseException) -> str:
    """Return the traceback, under what velodrome ran on. Options are left out: their values may be secrets."""
    import platform  # noqa: PLC0415
    import traceback  # noqa: PLC0415

    engine = sys.modules.get("velodrome._native")
    version = getattr(engine, "VERSION", "(its engine is not loaded)")
    command = next((word for word in sys.argv[1:] if word.isalpha()), "")
    ran = f"Python {platform.python_version()}, {platform.platform()}"
    return f"velodrome {version} {command}, {ran}\n\n{''.join(traceback.format_exception(error))}"

"""One race at a time on one machine: two would measure each other.

The file may be everybody's (`VELODROME_LOCK`), in a folder that is everybody's: it is opened as it is and never
followed elsewhere, whoever may not write it can hold it all the same, and a stranger may have written what it says.
"""

import errno
import fcntl
import os
import pwd
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from velodrome.model.errors import BusyError, CacheError, LockError
from velodrome.run import cache
from velodrome.run.faults import refusals

NAME = "measuring.lock"
VARIABLE = "VELODROME_LOCK"
"""Environment variable that names another file: one for all users of a machine, whose caches differ."""
POLL_SECONDS = 0.25
FOR_ALL = 0o666
LONGEST = 400
"""Bytes of what it says."""
LONGEST_WHAT = 80
"""Characters of what is done: all of it together is to stay below that."""
SAID = re.compile(r"[^\n]*, process (\d+)( of [^\n]*)?\n?")
"""What a lock of ours says. A file that says anything else is somebody's, and is not written."""


@contextmanager
def alone(
    what: str,
    wait_s: float | None = 0.0,
    on_wait: Callable[[str], None] | None = None,
    file: Path | None = None,
) -> Iterator[None]:
    """Hold the machine while the context lasts; `what` tells others who we are.

    `wait_s` is how long to wait for another velodrome (None: as long as it takes), `on_wait` is called once with who
    it is: what it does, its process and its user. Raises BusyError, LockError, CacheError. The kernel lets go of the
    lock when its holder dies, however that dies.
    """
    path = file or lock_file()
    number = _take(path, wait_s, on_wait)
    try:
        holder = f"{what[:LONGEST_WHAT]}, process {os.getpid()} of {_user(os.geteuid())}".replace("\n", " ")
        with suppress(
            OSError
        ):  # of another user who keeps it to themselves, or on a full disk: held all the same
            os.ftruncate(number, 0)
            os.pwrite(number, holder.encode(), 0)
        yield
    finally:
        os.close(number)


def lock_file() -> Path:
    """Return the file whose lock holds the machine: of this user's velodromes, or of all users', as it is set up."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else cache.folder("") / NAME


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _take(path: Path, wait_s: float | None, on_wait: Callable[[str], None] | None) -> int:
    """Return a descriptor that holds the lock; another file may take its place meanwhile."""
    until = None if wait_s is None else time.monotonic() + wait_s
    began = time.monotonic()
    reported = False
    while True:
        number = _open_file(path)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_there(path, number):
                return number
            os.close(number)
            continue
        except BlockingIOError:
            holder = _holder(number)
            os.close(number)
            if until is not None and time.monotonic() >= until:
                raise BusyError(holder, time.monotonic() - began) from None
            if on_wait is not None and not reported:
                on_wait(holder)
                reported = True
            time.sleep(POLL_SECONDS)
        except BaseException:
            os.close(number)
            raise


def _open_file(path: Path) -> int:
    """Open the file as it is, or make it. Raises LockError, CacheError."""
    careful = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with refusals():
            number = _open(path, careful)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LockError(str(path), "it is a symbolic link, which is not followed") from error
        if not os.environ.get(VARIABLE):
            raise CacheError(str(path.parent), error.errno or 0) from error
        raise LockError(str(path), os.strerror(error.errno or 0)) from error
    try:
        _refuse_foreign(path, number)
    except BaseException:
        os.close(number)
        raise
    return number


def _open(path: Path, careful: int) -> int:
    while True:
        # Not with O_CREAT: in /tmp the kernel then refuses another user's file (fs.protected_regular).
        for access in (os.O_RDWR, os.O_RDONLY):
            try:
                return os.open(path, access | careful)
            except PermissionError:
                if access == os.O_RDONLY:
                    raise
            except FileNotFoundError:
                break
        try:
            made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | careful, FOR_ALL)
        except FileExistsError:
            if os.path.islink(path):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
            continue  # another was first
        if os.environ.get(VARIABLE):
            os.fchmod(made, FOR_ALL)  # whatever the umask: others are to say who they are
        return made


def _refuse_foreign(path: Path, number: int) -> None:
    """Raise LockError for what is no lock of ours: it would be overwritten."""
    if not stat.S_ISREG(os.fstat(number).st_mode):
        raise LockError(str(path), "it is no ordinary file")
    holder = os.pread(number, LONGEST + 1, 0).decode(errors="replace")
    if holder and (len(holder) > LONGEST or not SAID.fullmatch(holder)):
        raise LockError(str(path), "it holds something else, which is left as it is")


def _is_there(path: Path, number: int) -> bool:
    """Whether the file that is held is still the file of that name."""
    try:
        return os.path.samestat(os.fstat(number), path.lstat())
    except FileNotFoundError:
        return False


def _holder(number: int) -> str:
    """Return who holds the lock: as the file says, unless the kernel knows of another process."""
    holder = os.pread(number, LONGEST, 0).decode(errors="replace").strip()
    named = SAID.fullmatch(holder)
    pid = _pid_of_holder(os.fstat(number))
    if pid and not (named and named[1] == str(pid)):
        return f"process {pid}{_of_user(pid)}"
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in holder)


def _pid_of_holder(file: os.stat_result) -> int:
    """Return the process that holds the lock of a file; 0: the kernel does not tell, as in a namespace of processes."""
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return 0
    place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    for line in lines:
        fields = line.split()
        if len(fields) > 5 and fields[1] == "FLOCK" and fields[5] == place:
            return max(int(fields[4]), 0)
    return 0


def _of_user(pid: int) -> str:
    try:
        return f" of {_user(Path(f'/proc/{pid}').stat().st_uid)}"
    except OSError:
        return ""

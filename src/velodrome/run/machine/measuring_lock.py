"""One race at a time on one machine: two would measure each other."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from velodrome.model.errors import BusyError
from velodrome.run import cache

NAME = "measuring.lock"
VARIABLE = "VELODROME_LOCK"
"""Environment variable that names another file: one for all users of a machine, whose caches differ."""
POLL_SECONDS = 0.25


@contextmanager
def alone(
    what: str,
    wait_s: float | None = 0.0,
    on_wait: Callable[[str], None] | None = None,
    file: Path | None = None,
) -> Iterator[None]:
    """Hold the machine while the context lasts; `what` tells others who we are.

    `wait_s` is how long to wait for another velodrome (None: as long as it takes), `on_wait` is told once who
    it is. Raises BusyError. The kernel lets go of the lock when its holder dies, however that dies.
    """
    path = file or _shared()
    number = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _take(number, wait_s, on_wait)
        os.ftruncate(number, 0)
        os.pwrite(number, f"{what}, process {os.getpid()}".encode(), 0)
        yield
    finally:
        os.close(number)


def _shared() -> Path:
    named = os.environ.get(VARIABLE)
    return Path(named) if named else cache.folder("") / NAME


def _take(number: int, wait_s: float | None, on_wait: Callable[[str], None] | None) -> None:
    began = time.monotonic()
    told = False
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            waited = time.monotonic() - began
            holder = os.pread(number, 400, 0).decode(errors="replace")
            if wait_s is not None and waited >= wait_s:
                raise BusyError(holder, waited) from None
            if on_wait is not None and not told:
                on_wait(holder)
                told = True
            time.sleep(POLL_SECONDS)

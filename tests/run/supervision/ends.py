"""Whether processes have ended."""

import time
from collections.abc import Callable, Iterable

import psutil


def eventually(true: Callable[[], bool], within_s: float = 10.0) -> bool:
    until = time.monotonic() + within_s
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def lives(process: psutil.Process) -> bool:
    """Whether a process runs; a number that was given to another is an end, and so is waiting to be reaped."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two
        return False


def gone(processes: Iterable[psutil.Process]) -> bool:
    return not any(map(lives, processes))

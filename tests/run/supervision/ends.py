"""Whether processes have ended."""

from collections.abc import Iterable

import psutil


def lives(process: psutil.Process) -> bool:
    """Whether a process runs; a number that was given to another is an end, and so is waiting to be reaped."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two
        return False


def living(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Return those that have not ended; whoever is to reap orphans here may be slow at it."""
    return [process for process in processes if lives(process)]


def gone(processes: Iterable[psutil.Process]) -> bool:
    return not living(processes)

"""Whether processes have ended."""

import time
from collections.abc import Callable

import psutil


def eventually(true: Callable[[], bool], within_s: float = 10.0) -> bool:
    until = time.monotonic() + within_s
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def gone(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)

"""To wait for what has to come: look again and again until a deadline, and never sleep for a guessed time."""

import time
from collections.abc import Callable

AGAIN_S = 0.02


def eventually(true: Callable[[], object], within_s: float = 10.0) -> bool:
    """Return whether it came true in time."""
    until = time.monotonic() + within_s
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(AGAIN_S)
    return True


def wait_until(true: Callable[[], object], within_s: float = 10.0) -> None:
    """Return when it is true; fail where that does not come about in time."""
    assert eventually(true, within_s), f"in vain for {within_s:g} s"

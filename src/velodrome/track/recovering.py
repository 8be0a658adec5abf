"""When a server that was asked for too much has done with it: answers come about as fast again as one alone did.

    recovered(ask, alone_ms=4.0, patience_s=3.0)

Whoever searches asks it after a rate that did not hold; the next would be answered late else, whatever it is.
"""

import time
from collections.abc import Callable

REQUESTS = 3
"""So many in a row, on one connection."""
TIMES = 3.0
"""An answer takes no longer than so many times what it took before anything was asked."""
LEAST_MS = 1.0
PAUSE_S = 0.1


def recovered(ask: Callable[[float], tuple[int, float] | None], alone_ms: float, patience_s: float) -> bool:
    """Return whether `REQUESTS` answers in a row come about as fast as one alone did, within the patience.

    Where that is not known (0), right answers are enough. `ask` makes them, for so many seconds at most, and returns
    how many were right and what the slowest took, milliseconds; None: there is no server any more.
    """
    until = time.monotonic() + patience_s
    while (left_s := until - time.monotonic()) > 0:
        found = ask(left_s)
        if found is None:
            return False
        right, slowest_ms = found
        if right == REQUESTS and (not alone_ms or slowest_ms <= max(TIMES * alone_ms, LEAST_MS)):
            return True
        time.sleep(PAUSE_S)
    return False

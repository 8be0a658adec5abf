"""`own-ends`: a guard that has each worker replaced long before it would have to be; cured by a higher limit."""

import itertools
import os
import signal
import time

from plain import saying

STARTS_S, TAKES_S = 0.5, 0.01
SOON, LATE = 80, 10_000_000
"""Requests, in the place of megabytes."""

begun = time.process_time()
while time.process_time() - begun < STARTS_S:
    pass


def guarded(most):
    served = itertools.count(1)

    def check(environ):
        time.sleep(TAKES_S)
        if next(served) >= most:
            os.kill(os.getpid(), signal.SIGTERM)

    return saying(check)


severe, cured = guarded(SOON), guarded(LATE)

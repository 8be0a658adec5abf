"""Waits until a server that was asked for too much has done with it."""

import time

from velodrome.model.errors import VelodromeError
from velodrome.model.load import Closed, Load
from velodrome.run.lab import Lab
from velodrome.run.link.namespace import entered
from velodrome.run.racing.boot import Booted

TIMES = 3.0
"""An answer takes no longer than so many times what it took before anything was asked."""
LEAST_MS = 1.0
PATIENCE_S = 3.0
"""Then it is better served anew: one that goes on with requests whose clients have left may be busy for long."""
PAUSE_S = 0.1


def recovered(booted: Booted, lab: Lab, alone_ms: float, patience_s: float = PATIENCE_S) -> bool:
    """Return whether three answers in a row come about as fast as one alone did, within the patience.

    Where that is not known (0), answers are enough.
    """
    until = time.monotonic() + patience_s
    few = Load(Closed(1), duration_s=patience_s, timeout_s=patience_s, drain_s=0.1, requests=3)
    while time.monotonic() < until and booted.server.exit() is None:
        driver = lab.driver(few.driver, booted.placed, 1)
        try:
            with entered(booted.site.client):
                facts = driver.run(few, booted.target, lambda _: time.monotonic() < until)
        except VelodromeError:
            return False
        slowest = facts.sent.max or 0.0
        if facts.ok == few.requests and (not alone_ms or slowest <= max(TIMES * alone_ms, LEAST_MS)):
            return True
        time.sleep(PAUSE_S)
    return False

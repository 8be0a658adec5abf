"""Requests that are lost when a worker is replaced, as `max_requests` has it all the time."""

from dataclasses import replace

from velodrome.diagnoses.fault import (
    Absent,
    Counting,
    Experiment,
    Fault,
    Screened,
    Unknown,
    counting,
    replaces,
)
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

LEAST = 0.01
REQUESTS, EACH = 200, 40
"""Of the open loop, and after how many a worker is replaced."""


def look(setting: Setting) -> Probe | None:
    """End a worker in order under load, as `max_requests` does, where somebody replaces it."""
    if not replaces(setting):
        return None
    return Probe(
        "stop",
        "an open loop, with 16 requests more in flight when a worker is replaced",
        "lost",
        {"replaces": 1},
        unprovoked={"replaces": 0},
        seconds=3.0,
        worth=0.02,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether requests are answered while a worker is replaced."""
    probe = look(seen.setting)
    if probe is None:
        return Absent("nobody replaces its only process")
    found = counting(
        seen, "lost-at-replacement", probe, LEAST, none=Unknown("there was no worker that could be ended")
    )
    if not isinstance(found, Counting):
        return found
    cure = Cure(
        "no max_requests (mend what grows instead), or a server and a worker class that answer what they took before a "
        "worker ends; no handler of SIGTERM of the app's own that exits",
        "the server's command line",
        "--max-requests N",
        "--max-requests 0",
    )
    recycled = Experiment(
        Treatment(f"max_requests {EACH}", {"max-requests": EACH}),
        0,
        cure,
        proof="dose",
        takes="max-requests",
        probe=replace(
            probe,
            about=f"an open loop of {REQUESTS} requests or more",
            settings={"requests": REQUESTS},
            unprovoked={},
            seconds=5.0,
            warm=False,
        ),
    )
    return found.suspect(0.8, recycled, found.dose(cure), loss=0.1)


fault = Fault(
    "lost-at-replacement",
    "now and then an error, as often as max_requests replaces a worker: it ends before what it took is answered",
    ("field practice",),
    "A worker that is replaced ends without answering what it has taken.",
    "With max_requests set, or where a worker is ended in order, requests of an open loop are lost; without, none is.",
    screen,
    look=look,
)

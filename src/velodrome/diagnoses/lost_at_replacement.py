"""Requests that are lost when a worker is replaced, as `max_requests` has it all the time."""

from dataclasses import replace

from velodrome.diagnoses.fault import (
    LEAST_LOST,
    Absent,
    Counting,
    Experiment,
    Fault,
    Screened,
    Unknown,
    counting,
    losing,
)
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

GLANCED = 0.0005
"""Share of the requests of such a load, from which on it is named."""
REQUESTS, EACH = 200, 40
"""Of the open loop, and after how many a worker is replaced."""


def look(setting: Setting) -> Probe | None:
    """End a worker in order under load, as `max_requests` does, where somebody replaces it."""
    return losing("a worker is replaced", "replaces") if setting.replaces else None


def screen(seen: Symptoms) -> Screened:
    """Look whether requests are answered while a worker is replaced."""
    probe = look(seen.setting)
    if probe is None:
        return Absent("nobody replaces a worker that ends")
    none = Unknown("there was no worker that could be ended")
    found = counting(seen, "lost-at-replacement", probe, LEAST_LOST, none)
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


def glance(seen: Symptoms) -> str:
    """Look for requests that were lost in a load in which workers were replaced."""
    counted = seen.counted
    if counted is None or not counted.replaced or counted.lost < GLANCED or not seen.setting.replaces:
        return ""
    return (
        f"{counted.replaced} processes of the server were replaced under load, and {counted.lost:.2%} of its requests "
        "were reset or refused"
    )


fault = Fault(
    "lost-at-replacement",
    "now and then an error, as often as max_requests replaces a worker: it ends before what it took is answered",
    ("field practice",),
    "A worker that is replaced ends without answering what it has taken.",
    "With max_requests set, or where a worker is ended in order, requests of an open loop are lost; without, none is.",
    screen,
    look=look,
    glance=glance,
)

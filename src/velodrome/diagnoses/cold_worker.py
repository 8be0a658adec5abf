"""A worker whose first request is slow: what it needs is imported, read or connected only then."""

from dataclasses import replace

from velodrome.diagnoses.fault import Counting, Fault, Screened, Unknown, counting
from velodrome.model.diagnosis import Cure, Probe
from velodrome.model.symptoms import Setting, Symptoms

ROUNDS, LOOKED = 6, 2


def look(setting: Setting) -> Probe:
    """Have workers replaced, or where nobody replaces them, servers started."""
    return _probe(setting, LOOKED)


def _probe(setting: Setting, rounds: int) -> Probe:
    if setting.replaces:
        event, each_s = "replaced", 1.4
        about = f"{rounds} workers ended and replaced, then the first requests to each that took their place"
    else:
        event, each_s = "started", 2.0
        about = f"{rounds} more servers started, then the first request to each"
    return Probe(
        "renew",
        about,
        "cold",
        {event: 1, "rounds": rounds},
        unprovoked={event: 0},
        seconds=each_s * rounds,
        worth=0.5,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether the first requests of a new worker take longer."""
    none = (
        "a worker that ended was not replaced"
        if seen.setting.replaces
        else "a second server beside it does not start"
    )
    found = counting(seen, "cold-worker", look(seen.setting), 1.0, none=Unknown(none))
    if not isinstance(found, Counting):
        return found
    cure = Cure(
        "import, read and connect when the worker starts, and warm it before it takes requests",
        "what the first request does and no other",
        "a lazy import, a cache or a client made on first use",
        "the same when the module is imported, or in the app's lifespan (gunicorn: post_worker_init)",
    )
    dose = replace(found.dose(cure), probe=_probe(seen.setting, ROUNDS))
    return found.suspect(0.8, dose, loss=0.1)


fault = Fault(
    "cold-worker",
    "the first requests after a start, a reload or max_requests are slow: lazy imports; warm before it is ready",
    ("gunicorn#2502", "posthog#83283"),
    "The first request of a worker does what no other has to do.",
    "The first request to each new worker, or to each server that is started, is slow; those after it are not.",
    screen,
    look=look,
)

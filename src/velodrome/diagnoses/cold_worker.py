"""A worker whose first request is slow: what it needs is imported, read or connected only then."""

from dataclasses import replace

from velodrome.diagnoses.fault import Counting, Fault, Screened, Unknown, counting, replaces
from velodrome.model.diagnosis import Cure, Probe
from velodrome.model.symptoms import Setting, Symptoms

ROUNDS, LOOKED = 6, 2


def look(setting: Setting) -> Probe | None:
    """Have workers replaced, where there is somebody who replaces them."""
    return _probe(LOOKED) if replaces(setting) else None


def _probe(rounds: int) -> Probe:
    return Probe(
        "renew",
        f"{rounds} workers ended and replaced, then the first requests to each that took their place",
        "cold",
        {"replaced": 1, "rounds": rounds},
        unprovoked={"replaced": 0},
        seconds=1.4 * rounds,
        worth=0.5,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether the first requests of a new worker take longer."""
    if look(seen.setting) is None:
        return Unknown(
            "its only process got its first request to see whether it answers, and nobody replaces it"
        )
    found = counting(
        seen, "cold-worker", _probe(LOOKED), 1.0, none=Unknown("a worker that ended was not replaced")
    )
    if not isinstance(found, Counting):
        return found
    cure = Cure(
        "import, read and connect when the worker starts, and warm it before it takes requests",
        "what the first request does and no other",
        "a lazy import, a cache or a client made on first use",
        "the same when the module is imported, or in the app's lifespan (gunicorn: post_worker_init)",
    )
    dose = replace(found.dose(cure), probe=_probe(ROUNDS))
    return found.suspect(0.8, dose, loss=0.1)


fault = Fault(
    "cold-worker",
    "the first requests after a start, a reload or max_requests are slow: lazy imports; warm before it is ready",
    ("gunicorn#2502", "posthog#83283"),
    "The first request of a worker does what no other has to do.",
    "The first request to each new worker is slow; without new workers none is.",
    screen,
    look=look,
)

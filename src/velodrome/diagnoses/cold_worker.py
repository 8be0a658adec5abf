"""A worker whose first request is slow: what it needs is imported, read or connected only then."""

from velodrome.diagnoses.fault import (
    Absent,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    counted,
    met,
    said,
)
from velodrome.model.diagnosis import AS_IT_IS, Cure, Probe
from velodrome.model.symptoms import Setting, Symptoms

ROUNDS, LOOKED = 6, 2


def look(setting: Setting) -> Probe | None:
    """Have workers replaced, where there is somebody who replaces them."""
    supervised = "gunicorn" in setting.stack or setting.workers > 1
    return _probe(LOOKED) if supervised else None


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
    found = met(seen, "cold-worker")
    if isinstance(found, Unknown):
        return found
    if not found.of:
        return Unknown("a worker that ended was not replaced")
    probe = _probe(LOOKED)
    evidence = counted(found, probe)
    if found.hits < found.of:
        return Absent(said(found, probe), evidence)
    cure = Cure(
        "import, read and connect when the worker starts, and warm it before it takes requests",
        "what the first request does and no other",
        "a lazy import, a cache or a client made on first use",
        "the same when the module is imported, or in the app's lifespan (gunicorn: post_worker_init)",
    )
    probe = _probe(ROUNDS)
    dose = Experiment(AS_IT_IS, 0, cure, proof="dose", probe=probe)
    return Suspect(0.8, said(found, _probe(LOOKED)), (dose,), evidence, loss=0.1)


fault = Fault(
    "cold-worker",
    "the first requests after a start, a reload or max_requests are slow: lazy imports; warm before it is ready",
    ("gunicorn#2502", "posthog#83283"),
    "The first request of a worker does what no other has to do.",
    "The first request to each new worker is slow; without new workers none is.",
    screen,
    look=look,
)

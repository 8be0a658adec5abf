"""A thread of the app's own that computes now and then, whether or not a request comes: requests get what is left."""

from velodrome.diagnoses.fault import (
    Counting,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    counting,
    filling,
)
from velodrome.guest.injected.background import TOOK
from velodrome.guest.injected.marks import BACKGROUND
from velodrome.model.diagnosis import Cure, Evidence, Probe, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Setting, Symptoms

LEAST = 0.1
"""Of a CPU, at rest, from which on it is looked into."""
SEEN = 0.05
"""Of a CPU under load, of threads that the app starts, from which on it is these."""
RESTS = 9.0
"""Times as long as such a thread computed, for which it rests before it waits again: a tenth of a CPU is left to it."""
SECONDS = 3.0
"""Of a load: many pieces of such work."""


def look(setting: Setting) -> Probe:
    """Count what is computed while no request is in flight."""
    return Probe("rest", "no request is in flight", "hundredths of a CPU in use", seconds=1.5, in_turn=0)


def screen(seen: Symptoms) -> Screened:
    """Look whether a thread that the app starts is what computes at rest."""
    found = counting(seen, "background-work", look(seen.setting), LEAST)
    if not isinstance(found, Counting):
        return found
    watched = seen.watched
    share = watched.at_once.get(BACKGROUND, 0.0) if watched is not None else 0.0
    called = watched.called.get(BACKGROUND) if watched is not None else None
    if watched is None or share < SEEN or called is None:
        return Unknown(f"{found.said}, and no thread that the app's own code starts is seen to compute")
    sentence = (
        f"{found.said}; under load threads that the app starts compute {significant(share, 2)} s in each second, "
        f"most at {called.place} ({called.text})"
    )
    cure = Cure(
        "compute it in a process of its own, less often, or only what has changed",
        called.place,
        called.text,
        "with concurrent.futures.ProcessPoolExecutor(1) as pool: pool.submit(…)",
    )
    rests = Treatment("threads that the app starts rest nine times as long as they compute", {TOOK: RESTS})
    experiment = Experiment(rests, filling(seen), cure, ("rps", "p99_ms"), seconds=SECONDS)
    evidence = Evidence("stack", sentence, {"share": share, "called": vars(called)})
    return Suspect(0.8, sentence, (experiment,), (*found.evidence, evidence), min(share, 0.8))


fault = Fault(
    "background-work",
    "a thread of the app's own computes beside the requests, which get what is left; another process, or less often",
    ("field practice",),
    "The server's processes use a CPU while no request is in flight, in a thread that the app starts.",
    "Where such threads rest for most of the time throughput, or p99, is better.",
    screen,
    look=look,
)

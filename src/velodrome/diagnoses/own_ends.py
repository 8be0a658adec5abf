"""The app ends its own workers: each start costs what an import does, and requests wait meanwhile."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown, filling
from velodrome.guest.injected.own_ends import TOOK
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.symptoms import Symptoms

SECONDS = 4.0
"""Of each load: a worker takes about a second to start."""


def screen(seen: Symptoms) -> Screened:
    """Look whether code of the app's own ended a process under load."""
    watched = seen.watched
    if watched is None or not (watched.seconds or watched.ends):
        return Unknown("no heartbeat came out of its processes")
    if not watched.ended:
        return Absent("no code of the app's own ended one of its processes under load")
    most = watched.ended[0]
    processes = "a process" if watched.ends == 1 else f"{watched.ends} processes"
    sentence = f"the app's own code ended {processes} under load, at {most.place}: {most.text}".removesuffix(
        ": "
    )
    cure = Cure(
        "set the limit above what a worker needs from its start, with a margin, or let the server replace workers: "
        "after so many requests, not all at once",
        most.place,
        most.text,
        "--max-requests N --max-requests-jitter N (uvicorn: --limit-max-requests N)",
    )
    left_out = Treatment("the app does not end its own workers", {TOOK: True})
    experiment = Experiment(left_out, filling(seen), cure, ("rps", "p99_ms"), seconds=SECONDS)
    evidence = Evidence(
        "stack", sentence, {"ends": watched.ends, "ended": [vars(called) for called in watched.ended]}
    )
    return Suspect(0.9, sentence, (experiment,), (evidence,), loss=0.5)


fault = Fault(
    "own-ends",
    "dips, and workers that start again and again: the app ends them itself, by a limit that is too low; a higher one",
    ("field practice",),
    "Code of the app's own, such as a guard of its memory, ends the process that serves, which has to be replaced.",
    "Where such ends are left out throughput, or p99, is better.",
    screen,
)

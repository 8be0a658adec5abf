"""Threads that were started before the fork: in the worker nobody does their work."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown, filling
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.symptoms import Symptoms

FAILS = 0.05
SECONDS = 2.0


def screen(seen: Symptoms) -> Screened:
    """Look for threads that were there before a process was forked."""
    watched = seen.watched
    if watched is None or not watched.seconds:
        return Unknown("no heartbeat came out of its processes")
    if not watched.left_behind:
        return Absent("no thread was there when its processes were forked")
    names = ", ".join(sorted(watched.left_behind)[:3])
    sentence = f"threads that were there before the fork, and are not in its workers: {names}"
    evidence = Evidence("threads", sentence, {"left_behind": sorted(watched.left_behind)})
    cure = Cure(
        "start threads, pools, clients and gRPC channels in each worker, after the fork",
        "what the module does when it is imported, or the server's command line",
        "--preload, with a thread, pool or channel made at import",
        "without --preload; or made on first use (gunicorn: post_fork, os.register_at_fork)",
    )
    later = Treatment("the app imported in each worker", {"preload": "off"})
    failing = seen.slope is not None and max(point.errors for point in seen.slope.points) >= FAILS
    return Suspect(
        0.9 if failing else 0.5,
        sentence,
        (Experiment(later, filling(seen), cure, ("rps", "p50_ms"), seconds=SECONDS),),
        (evidence,),
        loss=0.5,
    )


fault = Fault(
    "fork-after-init",
    "hangs in the worker only: a thread, pool, loop or gRPC channel that was made before the fork; make it after",
    ("field practice",),
    "What was made before the fork waits in the worker for a thread that stayed in the parent.",
    "Where gunicorn imports the app in each worker, throughput or the median is better.",
    screen,
)

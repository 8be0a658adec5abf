"""asgiref runs all that is thread-sensitive in one thread: synchronous views and queries under ASGI, one at a time."""

from velodrome.diagnoses.fault import (
    Absent,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    no_plateau,
    plateau,
    stops_at,
)
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms

LEAST = 0.02
"""Share of the stacks of busy threads in asgiref's thread, from which on it is looked into."""
THREADS = 64
CONNECTIONS = 16
DJANGO = "django_asgi"
ALIKE = 1.5
"""Requests in work over workers: about one each."""


def screen(seen: Symptoms) -> Screened:
    """Look for a plateau while nothing computes, in an app that calls through asgiref's threads."""
    if seen.watched is None:
        return no_plateau(seen) or Unknown("its threads could not be seen")
    if "asgiref" not in seen.watched.libraries:
        return Absent("asgiref is not imported")
    if (bound := no_plateau(seen)) is not None:
        return bound
    assert seen.slope is not None
    share = seen.watched.shares.get("sync-to-async", 0.0)
    sentence = f"{share:.0%} of the stacks of busy threads are in asgiref's sync_to_async"
    evidence = Evidence("stack", sentence, {"share": share})
    if share < LEAST:
        return Absent(sentence, (evidence,))
    in_work = seen.slope.in_work.mid
    cure = Cure(
        "use what is async where there is such a thing (async queries of the ORM); where calls do not depend on one "
        "thread, sync_to_async(…, thread_sensitive=False); or serve synchronous views by WSGI in threads",
        "where the synchronous code is called",
        "sync_to_async(view): all of them in one thread of the process",
        "sync_to_async(view, thread_sensitive=False)",
    )
    more = Treatment(f"{THREADS} threads for asgiref's one", {"sync-to-async": THREADS})
    return Suspect(
        0.9 if in_work < ALIKE * seen.workers else 0.4,
        f"{sentence}, {significant(in_work)} requests in work",
        (Experiment(more, CONNECTIONS * seen.workers, cure, needless=True),),
        (*plateau(seen), evidence),
        loss=0.7,
    )


def glance(seen: Symptoms) -> str:
    """Look for one request in work at a time in each process of Django under ASGI."""
    sentence = stops_at(seen, 1) if seen.setting.interface == DJANGO else ""
    return sentence and f"{sentence}: asgiref has one thread for all synchronous views"


fault = Fault(
    "sync-under-asgi",
    "synchronous views under ASGI run one at a time: asgiref has one thread for them; async code, or WSGI threads",
    ("asgiref#218", "channels#1582"),
    "Requests wait for the one thread that asgiref has for all that is thread-sensitive.",
    "With more threads in its place throughput rises. What asgiref runs in a thread for each request is left as it is.",
    screen,
    glance=glance,
)

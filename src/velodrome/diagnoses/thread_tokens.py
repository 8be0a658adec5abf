"""AnyIO runs at most 40 calls in threads at once: `def` endpoints and dependencies, files, `run_in_threadpool`."""

from velodrome.diagnoses.fault import (
    Absent,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    lacks,
    no_plateau,
    plateau,
    stops_at,
)
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms

POOL = "AnyIO worker thread"
TOKENS = 40
"""Where the app sets no other number."""
LEAST_THREADS = 2
TIMES = 10
"""The treated arm has so many times the tokens that were used."""
MOST_CONNECTIONS = 256
ALIKE = 1.25
"""Requests in work over threads, or the other way round, that are about as many."""


def screen(seen: Symptoms) -> Screened:
    """Look whether AnyIO's threads are as many as there are requests in work."""
    if seen.watched is None:
        return no_plateau(seen) or Unknown("its threads could not be seen")
    if "anyio" not in seen.watched.libraries:
        return Absent("AnyIO is not imported")
    if (bound := no_plateau(seen)) is not None:
        return bound
    assert seen.slope is not None
    threads = seen.watched.threads.get(POOL, 0)
    if threads < LEAST_THREADS:
        return Absent(f"at most {threads} calls ran in AnyIO's threads at once")
    in_work = seen.slope.in_work.mid
    # A request may have several calls in threads: as many threads as there are without a setting tell as much.
    alike = threads == TOKENS or max(in_work / threads, threads / in_work) < ALIKE
    connections = min(max(seen.slope.plateau.connections, 3 * threads), MOST_CONNECTIONS)
    tokens = max(TIMES * threads, MOST_CONNECTIONS)
    cure = Cure(
        "raise AnyIO's limit in the app's lifespan, or make the endpoint async; more threads need more of what they "
        "wait for, such as database connections",
        "the app's lifespan",
        f"{threads} threads at once",
        f"anyio.to_thread.current_default_thread_limiter().total_tokens = {2 * threads}",
    )
    treatment = Treatment(f"{tokens} AnyIO tokens", {"anyio-tokens": tokens})
    sentence = f"{threads} threads of AnyIO at once"
    return Suspect(
        0.9 if alike else 0.4,
        f"{sentence}, {significant(in_work)} requests in work",
        (Experiment(treatment, connections, cure, needless=True, raises=True),),
        (*plateau(seen), Evidence("threads", sentence, {"threads": threads})),
        loss=1 - threads / connections,
    )


def glance(seen: Symptoms) -> str:
    """Look for as many requests in work as AnyIO has threads."""
    sentence = "" if lacks(seen, "anyio") else stops_at(seen, TOKENS)
    return sentence and f"{sentence}: AnyIO runs {TOKENS} calls in threads at once"


fault = Fault(
    "thread-tokens",
    "throughput stops at 40 requests in flight, CPU idle: AnyIO's tokens; raise them, or make the endpoint async",
    ("discord/access#496",),
    "Requests wait for one of the threads that AnyIO allows at once.",
    "With more tokens throughput goes on rising. One that stays is bound by something else of the same size.",
    screen,
    glance=glance,
)

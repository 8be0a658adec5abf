"""AnyIO runs at most 40 calls in threads at once: `def` endpoints and dependencies, files, `run_in_threadpool`."""

from velodrome.diagnoses.fault import (
    LEAST_THREADS,
    Absent,
    Fault,
    Screened,
    Unknown,
    bound_by_threads,
    lacks,
    no_plateau,
    size_beyond,
    stops_at,
)
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms

POOL = "AnyIO worker thread"
TOKENS = 40
"""Where the app sets no other number."""


def screen(seen: Symptoms) -> Screened:
    """Look whether AnyIO's threads are as many as there are requests in work."""
    if seen.watched is None:
        return no_plateau(seen) or Unknown("its threads could not be seen")
    if "anyio" not in seen.watched.libraries:
        return Absent("AnyIO is not imported")
    if (bound := no_plateau(seen)) is not None:
        return bound
    threads = seen.watched.threads.get(POOL, 0)
    if threads < LEAST_THREADS:
        return Absent(f"at most {threads} calls ran in AnyIO's threads at once")
    cure = Cure(
        "raise AnyIO's limit in the app's lifespan, or make the endpoint async; more threads need more of what they "
        "wait for, such as database connections",
        "the app's lifespan",
        f"{threads} threads at once",
        f"anyio.to_thread.current_default_thread_limiter().total_tokens = {2 * threads}",
    )
    tokens = size_beyond(threads)
    treatment = Treatment(f"{tokens} AnyIO tokens", {"anyio-tokens": tokens})
    return bound_by_threads(seen, threads, "AnyIO", treatment, cure, usual=TOKENS)


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

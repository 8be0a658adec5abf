"""The default executor of an event loop has CPUs + 4 threads: `asyncio.to_thread`, `run_in_executor(None, …)`."""

from velodrome.diagnoses.fault import (
    LEAST_THREADS,
    Absent,
    Fault,
    Screened,
    Unknown,
    bound_by_threads,
    no_plateau,
    size_beyond,
    stops_at,
)
from velodrome.guest.injected.heartbeat import EXECUTORS
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms

MORE, MOST_THREADS = 4, 32
"""Threads of `ThreadPoolExecutor()` beyond the CPUs, and at most."""


def screen(seen: Symptoms) -> Screened:
    """Look whether its threads are as many as there are requests in work."""
    if seen.watched is None:
        return no_plateau(seen) or Unknown("its threads could not be seen")
    threads = max(seen.watched.threads.get(pool, 0) for pool in EXECUTORS)
    if threads < LEAST_THREADS:
        return Absent(f"at most {threads} calls ran in an executor's threads at once")
    cure = Cure(
        "give the loop an executor as large as the calls that wait at once need, in the app's lifespan",
        "the app's lifespan",
        f"{threads} threads at once: the default, CPUs + 4",
        f"asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor({4 * threads}))",
    )
    size = size_beyond(threads)
    treatment = Treatment(f"a default executor of {size} threads", {"default-executor": size})
    return bound_by_threads(seen, threads, "an executor", treatment, cure)


def glance(seen: Symptoms) -> str:
    """Look for as many requests in work as the default executor has threads."""
    cpus = seen.counted.machine_cpus if seen.counted else 0
    size = min(cpus + MORE, MOST_THREADS)
    sentence = stops_at(seen, size) if cpus else ""
    return sentence and f"{sentence}: the default executor has {size} threads on {cpus} CPUs"


fault = Fault(
    "default-executor",
    "throughput stops at CPUs + 4 requests in work, CPU idle: the loop's default executor; set a larger one",
    ("N.E.K.O#1882", "ray#59750"),
    "Requests wait for one of the threads of the loop's default executor.",
    "With more threads throughput goes on rising. An executor of the app's own is left as it is.",
    screen,
    glance=glance,
)

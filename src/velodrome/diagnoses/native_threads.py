"""BLAS and OpenMP start a thread for each CPU they see, in every worker: together far more than can run."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown, filling
from velodrome.guest.injected.heartbeat import NATIVE, NATIVE_LIMITS
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.symptoms import Symptoms

BUSY = 0.5
"""CPUs in use under full load, over those it has."""


def screen(seen: Symptoms) -> Screened:
    """Look for more threads that compute natively than there are CPUs, in an app that computes."""
    watched = seen.watched
    if watched is None or not watched.seconds or seen.slope is None:
        return Unknown("its threads could not be seen")
    if not {"numpy", "torch"} & watched.libraries:
        return Absent("neither numpy nor torch is imported")
    threads = watched.threads.get(NATIVE, 0)
    cpus = max(point.cpus for point in seen.slope.points)
    sentence = (
        f"{threads} threads of a process that Python did not start, {seen.workers} workers, {seen.server_cpus} CPUs, "
        f"{cpus:.2f} of them busy"
    )
    evidence = Evidence("threads", sentence, {"threads": threads, "cpus": seen.server_cpus})
    busy = cpus >= BUSY * seen.server_cpus
    if not threads and seen.server_cpus == 1 and busy and not watched.limited:
        each = f", in each of {seen.workers} workers" if seen.workers > 1 else ""
        return Unknown(
            "on one CPU these libraries compute in one thread, and nothing limits them: on more they take a thread for "
            f"each CPU{each}. Examine it with --cpus 2 or more, or start it with OMP_NUM_THREADS=1"
        )
    # The thread that calls the library computes as well.
    if not threads or (threads + 1) * seen.workers <= seen.server_cpus:
        return Absent(sentence, (evidence,))
    if not busy:
        return Absent(f"{sentence}: they do not compute", (evidence,))
    cure = Cure(
        "one thread for each worker: requests are what runs in parallel",
        "the server's environment, before anything is imported",
        f"{threads} threads in each worker",
        "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1",
    )
    treatment = Treatment(
        "one thread for BLAS and OpenMP", {"native-threads": 1}, environment=dict.fromkeys(NATIVE_LIMITS, "1")
    )
    return Suspect(
        min(0.9, 0.4 + 0.1 * threads * seen.workers / seen.server_cpus),
        sentence,
        (Experiment(treatment, filling(seen), cure, ("rps", "cpu_us")),),
        (evidence,),
        loss=0.5,
    )


fault = Fault(
    "native-threads",
    "all CPUs are full, and it is slower than with fewer: threads of BLAS × workers; OMP_NUM_THREADS=1",
    ("vllm#45124",),
    "Threads of native libraries (BLAS, OpenMP) take the CPU from each other.",
    "With one thread in each process, throughput or CPU time per request is better.",
    screen,
)

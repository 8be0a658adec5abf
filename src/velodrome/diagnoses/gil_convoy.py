"""A thread that computes beside the event loop, which then waits up to 5 ms for the interpreter's lock each time."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Slope, Symptoms

BLOCKED = 0.05
"""Share of the time in which the loop's thread was blocked, from which on it is looked into."""
OTHERS = 0.5
"""CPU time of other threads, over the time in which the loop's was blocked, from which on they may be why."""
ALONE_CPUS, TIMES = 0.6, 4.0
"""CPUs in use with one request in flight, and CPU time a request then, over that under full load: from which on
somebody computes whom no request made compute. Alone a request takes up to three times as much, since nothing is done
for several at once."""
INTERVAL_S = 0.0002
"""In place of Python's 5 ms; small enough for the lock to be had at once, and large enough not to cost much itself."""
CONNECTIONS = 1
"""With several requests in flight one turn of the loop serves all that came meanwhile, which hides the wait."""


def screen(seen: Symptoms) -> Screened:
    """Look for a loop that is blocked while others of its process compute, or for CPU time that no request needs."""
    watched = seen.watched
    if watched is None or not watched.seconds:
        return Unknown("no heartbeat came out of its processes")
    if not watched.loop:
        return Absent("no asyncio event loop runs in its processes")
    share, others = (one / watched.seconds for one in (watched.blocked_s, watched.others_s))
    sentence = f"the loop is blocked for {share:.0%} of the time, and other threads compute meanwhile for {others:.0%}"
    evidence = Evidence("counter", sentence, {"blocked_share": share, "others_share": others})
    held_up = share >= BLOCKED and others >= OTHERS * share
    if not held_up and not _computes_beside(seen.slope):
        return Absent(sentence, (evidence,))
    cure = Cure(
        "compute in a process of its own (concurrent.futures.ProcessPoolExecutor); until then a shorter switch "
        "interval gives the loop its turn sooner",
        "where the thread is started",
        "a thread that computes in the process of the event loop",
        f"sys.setswitchinterval({INTERVAL_S:g})",
    )
    treatment = Treatment(f"a switch interval of {1000 * INTERVAL_S:g} ms", {"switch-interval": INTERVAL_S})
    return Suspect(
        0.8,
        sentence,
        (Experiment(treatment, CONNECTIONS, cure),),
        (evidence,),
        loss=0.8,
    )


def glance(seen: Symptoms) -> str:
    """Look for CPU time that no request needs."""
    if not seen.setting.awaits or seen.slope is None or not _computes_beside(seen.slope):
        return ""
    alone, full = seen.slope.alone, seen.slope.plateau
    return (
        f"{significant(alone.cpus, 2)} CPUs are busy at {significant(alone.rps, 4)}/s, and no more than "
        f"{significant(full.cpus, 2)} at {significant(full.rps, 4)}/s: "
        "something computes beside the requests"
    )


def _computes_beside(slope: Slope | None) -> bool:
    """Return whether the CPU is used with hardly any request: waits of 5 ms make no loop late by much."""
    if slope is None or slope.alone.cpus < ALONE_CPUS:
        return False
    alone, full = slope.alone, slope.plateau
    return alone.cpus / alone.rps >= TIMES * full.cpus / full.rps


fault = Fault(
    "gil-convoy",
    "a thread that computes caps the loop near 100/s: 5 ms until it has the interpreter's lock again; use a process",
    ("distributed#6325",),
    "Each time the loop has waited, it waits again for the interpreter's lock, until the computing thread's turn ends.",
    "With shorter turns (sys.setswitchinterval) throughput is better, although nothing computes less.",
    screen,
    glance=glance,
)

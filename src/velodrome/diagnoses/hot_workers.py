"""One worker that does nearly all: whichever wakes first takes every connection that waits."""

from velodrome.diagnoses.fault import Absent, Counting, Fault, Screened, Unknown, counting
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

CONNECTIONS = 48
LEAST = 1.6
"""Times its fair share that the busiest worker holds."""


def look(setting: Setting) -> Probe | None:
    """Open connections one after the other."""
    if setting.workers < 2:
        return None
    return Probe(
        "spread",
        f"{CONNECTIONS} connections, one after the other, to {setting.workers} workers",
        "held by the busiest worker",
        {"connections": CONNECTIONS},
        seconds=0.5,
        in_turn=CONNECTIONS,
    )


def screen(seen: Symptoms) -> Screened:
    """Look how many connections the busiest worker holds."""
    probe = look(seen.setting)
    if probe is None or (why := _evenly(seen)):
        return Absent(why if probe else "one worker")
    found = counting(
        seen,
        "hot-workers",
        probe,
        min(LEAST / seen.setting.workers, 0.9),
        none=Unknown("which worker holds a connection could not be seen"),
    )
    if not isinstance(found, Counting):
        return found
    cure = Cure(
        "a listening socket for each worker (SO_REUSEPORT), so that the kernel spreads connections",
        "how the server listens",
        "one listening socket that all workers share",
        "SO_REUSEPORT in each worker",
    )
    own = Treatment("a listening socket for each worker", {"reuseport": True})
    loss = 1 - 1 / (seen.setting.workers * found.met.share)
    return found.suspect(0.8, found.cured(own, cure), loss=loss)


def _evenly(seen: Symptoms) -> str:
    """Return why it does not matter which worker holds a connection; empty: it does."""
    if seen.server_cpus < 2:
        return "the server has one CPU: it is the same whichever worker uses it"
    return (
        ""
        if seen.setting.keeps_alive
        else "it ends each connection with the answer: none stays with a worker"
    )


def glance(seen: Symptoms) -> str:
    """Look for one worker that does most, in the closed loop in which they are most equal."""
    counted = seen.counted
    if counted is None or counted.busiest is None or counted.busiest < LEAST or _evenly(seen):
        return ""
    share = counted.busiest / max(seen.workers, 1)
    return f"one of {seen.workers} workers does {share:.0%} of the work, under every closed loop"


fault = Fault(
    "hot-workers",
    "one worker does all, the others idle: they share a listening socket, and one wakes first; SO_REUSEPORT",
    ("granian#849", "skypilot#10016"),
    "Workers share one listening socket, and the one that wakes first takes what waits.",
    "The busiest worker holds far more connections than its share; with a listening socket for each it does not.",
    screen,
    look=look,
    glance=glance,
)

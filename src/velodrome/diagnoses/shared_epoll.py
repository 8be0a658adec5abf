"""Workers that wait on one epoll, since the event loop was made before the fork: each is woken for all."""

from velodrome.diagnoses.fault import (
    Absent,
    Counting,
    Experiment,
    Fault,
    Screened,
    Unknown,
    counting,
    filling,
)
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms


def look(setting: Setting) -> Probe | None:
    """Compare the epolls of processes, at rest."""
    if setting.workers < 2:
        return None
    return Probe("epolls", "at rest", "processes that wait on one epoll with another", seconds=0.5)


def screen(seen: Symptoms) -> Screened:
    """Look for an epoll that several processes have."""
    probe = look(seen.setting)
    if probe is None:
        return Absent("one worker")
    found = counting(
        seen, "shared-epoll", probe, none=Unknown("whether processes share an epoll could not be seen")
    )
    if not isinstance(found, Counting):
        return found
    cure = Cure(
        "make the event loop in each worker, after the fork",
        "where the loop is made",
        "asyncio.new_event_loop() before os.fork()",
        "asyncio.run(…) in each worker",
    )
    own = Treatment("an epoll for each process", {"own-epoll": True})
    experiment = Experiment(own, filling(seen), cure, ("rps", "cpu_us", "p99_ms"))
    return found.suspect(0.9, experiment, loss=0.4)


def glance(seen: Symptoms) -> str:
    """Look for workers without a connection that use CPU while others serve."""
    counted = seen.counted
    if counted is None or not counted.burning or seen.workers < 2:
        return ""
    return f"{counted.burning} of its processes use CPU under load, and have no connection"


fault = Fault(
    "shared-epoll",
    "idle workers burn CPU, and the wrong one wakes: the loop was made before the fork; make it in each worker",
    ("measured here",),
    "An epoll is shared by all processes that were forked after it was made, and wakes each for the events of all.",
    "With an epoll for each process (asyncio's loops), throughput, CPU time per request or p99 is better.",
    screen,
    look=look,
    glance=glance,
)

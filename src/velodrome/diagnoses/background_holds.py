"""Work after the answer that holds its connection: the next request on it waits."""

from velodrome.diagnoses.fault import Absent, Counting, Fault, Screened, Unknown, counting
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

LEAST = 0.5


def look(setting: Setting) -> Probe | None:
    """Send two requests on one connection."""
    if not setting.keeps_alive:
        return None
    return Probe(
        "again",
        "16 requests, each right behind the answer of another on the same connection",
        "late",
        {"same": 1},
        unprovoked={"same": 0},
        seconds=2.0,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether the next request on a connection waits."""
    probe = look(seen.setting)
    if probe is None:
        return Absent("it ends each connection with the answer")
    none = Unknown("no connection stayed with one worker: workers are replaced all the time")
    found = counting(seen, "background-holds", probe, LEAST, none)
    if not isinstance(found, Counting):
        return found
    cure = Cure(
        "hand work that goes on after the answer to a queue, or to a task of its own",
        "where the background task is added",
        "BackgroundTask, or code after the last `send` of the answer",
        "asyncio.create_task(…), kept by a reference until it is done",
    )
    detached = Treatment("background tasks detached", {"background-detached": True})
    return found.suspect(0.8, found.cured(detached, cure), found.dose(cure), loss=0.3)


fault = Fault(
    "background-holds",
    "the next request on the same connection waits for work behind the answer (BackgroundTask): a queue, or a task",
    ("starlette#919",),
    "The server takes the next request of a connection when the app's call has returned, background tasks included.",
    "The second request on a connection is late; with Starlette's background tasks detached, or on another connection, "
    "it is not.",
    screen,
    look=look,
)

"""Work that goes on after its client has left: for nobody, and others wait for it."""

from velodrome.diagnoses.fault import Absent, Counting, Fault, Screened, counting
from velodrome.model.diagnosis import WORK_COUNTED, Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

LEAST, WORTH = 0.5, 0.4
"""Share of the work of requests that is done after their clients have left, from which on it is looked into, and is
worth a diagnosis: a few that had not got their turn when their clients left are no reason to change an app."""


def look(setting: Setting) -> Probe | None:
    """Have clients leave a third into their requests, where a handler can learn of it."""
    if not setting.awaits:
        return None
    return Probe(
        "leave",
        "16 requests whose clients leave a third into them",
        "worked on for nobody",
        {"leaves": 1},
        unprovoked={"leaves": 0},
        seconds=2.6,
        worth=WORTH,
        seen_by=WORK_COUNTED,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether work goes on."""
    probe = look(seen.setting)
    if probe is None:
        return Absent(
            "no handler is told that its client has left, as under WSGI: work that goes on is no fault of it"
        )
    found = counting(
        seen,
        "no-cancel",
        probe,
        LEAST,
        none=Absent(
            "requests are too short, or too little is done for them, for clients to leave in the middle"
        ),
    )
    if not isinstance(found, Counting):
        return found
    cure = Cure(
        "stop when the client has left: cancel the task when `receive()` gives `http.disconnect` (in Starlette "
        "`await request.is_disconnected()`), and with it the tasks that it started (`asyncio.TaskGroup`), or ask that "
        "between the steps of long work",
        "the handler",
        "work to the end, whoever is still there",
        "cancelled at the next `await`",
    )
    cancelled = Treatment("the call cancelled when its client has left", {"cancelled": True})
    # Where the handler has tasks of its own do the work, these go on when its call is cancelled.
    of_call = found.cured(cancelled, cure, refutes=False)
    return found.suspect(0.6, of_call, found.dose(cure), loss=0.3 * found.met.share)


fault = Fault(
    "no-cancel",
    "busy after the clients have left: work goes on for nobody, and a retry doubles it; cancel it",
    ("ray#21438",),
    "Nobody looks whether the client is still there.",
    "After clients left, third parties and databases are called and CPU is used: much less where the call is cancelled "
    "then (uvicorn), or, where other tasks do the work, where no client leaves.",
    screen,
    look=look,
)

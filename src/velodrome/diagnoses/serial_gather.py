"""gather() over one session of a database: it carries one statement at a time, so nothing is gained."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms

MARK = "async-session"
CONNECTIONS = 4
MOSTLY, LEAST = 0.5, 0.1
"""Of the time in an await, what it waits for a lock; and of the whole time, what tasks spend there."""


def screen(seen: Symptoms) -> Screened:
    """Look for several tasks of one request that wait in sessions of SQLAlchemy at once."""
    watched = seen.watched_alone
    if watched is None or not watched.looked_s:
        return Unknown("where a request that is alone waits could not be seen")
    most = watched.waiting.get(MARK, 0)
    sentence = (
        f"up to {most} tasks of a request that is alone wait in asynchronous sessions of SQLAlchemy at once"
    )
    evidence = Evidence("counter", sentence, {"tasks": most})
    if most < 2:
        return _in_turn(seen) or Absent(sentence, (evidence,))
    places = [wait for wait in watched.waits if wait.most > 1]
    where = places[0].place if places else "where gather() is called"
    cure = Cure(
        "give each task a session of its own, of a pool that has as many connections; or await them in turn, which "
        "takes no longer",
        where,
        "await asyncio.gather(*(session.execute(statement) for statement in statements))",
        "async def alone(statement):\n"
        "    async with sessions() as own:\n"
        "        return await own.execute(statement)\n"
        "await asyncio.gather(*map(alone, statements))",
    )
    each = Treatment("a session for each statement at once", {"session-each": True})
    return Suspect(
        0.8,
        sentence,
        (Experiment(each, CONNECTIONS, cure, ("p50_ms", "rps"), needless=True),),
        (evidence,),
        loss=0.5,
    )


def _in_turn(seen: Symptoms) -> Unknown | None:
    """Return where tasks of one request wait for each other: for a lock, or, if its calls follow each other, elsewhere.

    What they wait for is the app's own, and nothing can be given to it from outside.
    """
    watched, stepped = seen.watched_alone, seen.stepped
    if watched is None:
        return None
    longest, why = watched.longest_queue, ""
    if longest is not None and stepped is not None and stepped.in_sequence >= longest.most:
        calls = significant(stepped.in_sequence, 2)
        why = f", and its calls of third parties, {calls}, follow each other"
    else:
        together = (wait for wait in watched.waits if wait.inner and wait.most > 1)
        longest = next((wait for wait in together if wait.locked_s > MOSTLY * wait.seconds), None)
        if longest is None or longest.seconds < LEAST * watched.looked_s:
            return None
    return Unknown(
        f"up to {longest.most} tasks of a request that is alone wait for each other at {longest.place} "
        f"({longest.text}){why}: gather() gains nothing there, and what the tasks share is the app's own, which cannot "
        "be treated from outside"
    )


fault = Fault(
    "serial-gather",
    "gather() gains nothing: all statements go over one session, one after the other; a session each",
    ("fractal-server#1000", "sqlalchemy#10092"),
    "Tasks of one request wait for each other's statements on one connection.",
    "With a session for each statement that is sent while another one is (asynchronous sessions and connections of "
    "SQLAlchemy), the median or throughput is better. Sessions with unwritten changes are left as they are. Where "
    "tasks wait for each other at something of the app's own, such as a lock, only the place is named.",
    screen,
    steps=True,
)

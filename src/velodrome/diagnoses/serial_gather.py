"""gather() over one session of a database: it carries one statement at a time, so nothing is gained."""

from velodrome.diagnoses.fault import (
    WITHOUT_LOOP,
    Absent,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    without_loop,
)
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms, Waits, Watched

MARK = "async-session"
CONNECTIONS = 4
MOSTLY, LEAST = 0.5, 0.1
"""Of the time in an await, what it waits for a lock; and of the whole time, what tasks spend there."""


def screen(seen: Symptoms) -> Screened:
    """Look for several tasks of one request that wait in sessions of SQLAlchemy at once."""
    if without_loop(seen):
        return Absent(WITHOUT_LOOP)
    watched = seen.watched_alone
    if watched is None or not watched.looked_s:
        return Unknown("where a request that is alone waits could not be seen")
    most = watched.waiting.get(MARK, 0)
    sentence = (
        f"up to {most} tasks of a request that is alone wait in asynchronous sessions of SQLAlchemy at once"
    )
    evidence = Evidence("counter", sentence, {"tasks": most})
    if most < 2:
        return _through_a_lock(watched) or _in_turn(seen) or Absent(sentence, (evidence,))
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
    """Return where tasks of one request wait for each other, if its calls follow each other though they are gathered.

    What they wait for is the app's own, and nothing can be given to it from outside.
    """
    watched, stepped = seen.watched_alone, seen.stepped
    longest = watched.longest_queue if watched is not None else None
    if longest is None or stepped is None or stepped.in_sequence < longest.most:
        return None
    return Unknown(
        f"{_together(longest)}, and its calls of third parties, {significant(stepped.in_sequence, 2)}, follow each "
        "other: gather() gains nothing there, and what the tasks share is the app's own, which cannot be treated from "
        "outside"
    )


def _through_a_lock(watched: Watched) -> Suspect | None:
    """Look for tasks of one request that go through a lock of the app's own, one after the other.

    Both arms make each of them wait: one arm while it has the lock, so that the others wait as well.
    """
    lock = next((wait for wait in watched.queues if wait.locked_s > MOSTLY * wait.seconds), None)
    if lock is None or lock.locked_s < LEAST * watched.looked_s or not watched.rps:
        return None
    tasks = lock.most + 1  # one has it
    # The last of them waits for all others, the first for nobody: n(n - 1)/2 times as long as one has it.
    held_s = lock.locked_s / (watched.rps * watched.looked_s) / (tasks * lock.most / 2)
    where = {"file": lock.place.rpartition(":")[0], "function": lock.function, "seconds": held_s}

    def pause(about: str, held: bool) -> Treatment:
        return Treatment(about, {"locks-longer": {**where, "held": held}})

    cure = Cure(
        "give each task what it needs of its own: a connection, or a session, of a pool that has as many; or await the "
        "tasks in turn, which takes no longer",
        lock.place,
        lock.text,
        "async with pool.connection() as own:  # one for each task",
    )
    sentence = _together(lock)
    dose = Experiment(
        pause("the lock held twice as long", True),
        1,
        cure,
        ("p50_ms",),
        "dose",
        seen_by=pause("as long a pause behind the lock", False),
    )
    data = {"place": lock.place, "tasks": lock.most, "held_s": held_s}
    return Suspect(0.8, sentence, (dose,), (Evidence("waits", sentence, data),), loss=0.4)


def _together(wait: Waits) -> str:
    return f"up to {wait.most} tasks of a request that is alone wait for each other at {wait.place} ({wait.text})"


fault = Fault(
    "serial-gather",
    "gather() gains nothing: all statements go over one session, one after the other; a session each",
    ("fractal-server#1000", "sqlalchemy#10092"),
    "Tasks of one request wait for each other's statements on one connection.",
    "With a session for each statement that is sent while another one is (asynchronous sessions and connections of "
    "SQLAlchemy), the median or throughput is better. Sessions with unwritten changes are left as they are. Tasks that "
    "follow each other through a lock of asyncio are made to hold it longer: the median is worse than where each waits "
    "as long without it. Where they wait for each other at something else of the app's own only the place is named.",
    screen,
    steps=True,
)

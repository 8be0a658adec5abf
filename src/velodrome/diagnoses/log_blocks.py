"""A record of `logging` is handed over while the loop waits: to a pipe that nobody empties, a socket, a slow disk."""

from velodrome.diagnoses.blocking_call import LEAST, in_logging, stacks_of
from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown, filling
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms


def screen(seen: Symptoms) -> Screened:
    """Look for a loop that is blocked inside `logging`."""
    watched = seen.watched
    if watched is None or not watched.seconds:
        return Unknown("no heartbeat came out of its processes")
    if not watched.loop:
        return Absent("no event loop runs in its processes")
    writing = sorted(filter(in_logging, watched.held_up), key=lambda one: -one.blocked_s)
    share = sum(one.blocked_s for one in writing) / watched.seconds
    said = f"the loop is blocked in logging for {share:.0%} of the time"
    if share < LEAST:
        return Absent(said)
    named = writing[0].named
    cure = Cure(
        "have the handlers called by a thread of their own, which waits in place of the loop, behind a queue with an "
        "end: what the handlers are too slow for is dropped, or it fills the memory",
        named.place,
        named.text.strip(),
        "queue = Queue(1000); handler = QueueHandler(queue); QueueListener(queue, *the handlers).start()",
    )
    queued = Treatment("handlers of logging called by a thread", {"logging": "queued"})
    return Suspect(
        min(0.95, 0.5 + share),
        said,
        (Experiment(queued, filling(seen), cure, ("rps", "p99_ms"), takes="logging"),),
        stacks_of(watched, writing[:1]),
        loss=min(share, 0.9),
    )


fault = Fault(
    "log-blocks",
    "all stops while a record is written to who does not read: a pipe, a socket; a queue before the handlers",
    ("agentfield#985",),
    "The event loop is late because a handler of `logging` waits on its thread.",
    "With the handlers called by a thread of their own, throughput or p99 is better.",
    screen,
)

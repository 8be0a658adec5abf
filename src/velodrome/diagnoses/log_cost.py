"""Records of `logging` that cost as much as the request: formatting, and a write to the kernel each."""

from velodrome.diagnoses.blocking_call import LEAST, in_logging
from velodrome.diagnoses.fault import Absent, Doing, Experiment, Fault, Screened, doing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms, Watched


def screen(seen: Symptoms) -> Screened:
    """Look for `logging` in the stacks of threads that are not idle."""
    found = doing(seen, "logging", "logging")
    if not isinstance(found, Doing):
        return found
    if seen.watched is not None and (why := _waits(seen.watched)):
        return Absent(f"{found.said}, and {why}: it is not what records cost, but log-blocks", found.evidence)
    cure = Cure(
        "write fewer records for each request, or hand them to a thread (logging.handlers.QueueHandler)",
        "the app's logging configuration",
        "a record is written while the request waits",
        "the level of the logger raised, or a QueueHandler before its handlers",
    )
    off = Treatment("logging off", {"logging": "off"})
    return found.suspect(Experiment(off, found.connections, cure, takes="logging", needless=True))


def _waits(watched: Watched) -> str:
    """Return that the loop waits in `logging` more than it computes there; empty: it does not."""
    writing = [held for held in watched.held_up if in_logging(held)]
    blocked_s, ran_s = sum(held.blocked_s for held in writing), sum(held.ran_s for held in writing)
    if blocked_s < LEAST * watched.seconds or blocked_s < ran_s:
        return ""
    return f"the loop is blocked there for {blocked_s / watched.seconds:.0%} of the time"


fault = Fault(
    "log-cost",
    "a record for each request costs as much as the request: fewer records, or a queue before the handlers",
    ("SkyRL#2160",),
    "Requests wait while records are formatted and written.",
    "With the records of `logging` off, throughput is better.",
    screen,
)

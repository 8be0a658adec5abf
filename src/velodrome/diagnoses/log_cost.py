"""Records of `logging` that cost as much as the request: formatting, and a write to the kernel each."""

from velodrome.diagnoses.fault import Absent, Doing, Experiment, Fault, Screened, doing
from velodrome.diagnoses.log_blocks import waits
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms


def screen(seen: Symptoms) -> Screened:
    """Look for `logging` in the stacks of threads that are not idle."""
    found = doing(seen, "logging", "logging", computes=True)
    if not isinstance(found, Doing):
        return found
    if why := waits(seen):
        return Absent(f"{found.said}, and {why}: it is not what records cost, but log-blocks", found.evidence)
    cure = Cure(
        "write fewer records for each request, or hand them to a thread (logging.handlers.QueueHandler)",
        "the app's logging configuration",
        "a record is written while the request waits",
        "the level of the logger raised, or a QueueHandler before its handlers",
    )
    off = Treatment("logging off", {"logging": "off"})
    return found.suspect(Experiment(off, found.connections, cure, needless=True))


fault = Fault(
    "log-cost",
    "a record for each request costs as much as the request: fewer records, or a queue before the handlers",
    ("SkyRL#2160",),
    "Requests wait while records are formatted and written.",
    "With the records of `logging` off, throughput is better.",
    screen,
)

"""Records of `logging` that cost as much as the request: formatting, and a write to the kernel each."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.symptoms import Symptoms

SHARE = 0.05
"""Of the stacks of busy threads, those with `logging` in them, from which on it is looked into."""
LEAST_CONNECTIONS, MOST_CONNECTIONS = 8, 64


def screen(seen: Symptoms) -> Screened:
    """Look for `logging` in the stacks of threads that are not idle."""
    watched = seen.watched
    if watched is None or not watched.seconds:
        return Unknown("no heartbeat came out of its processes")
    said = f"{watched.logging_share:.0%} of the stacks of busy threads are in logging"
    evidence = Evidence("stack", said, {"share": watched.logging_share})
    if watched.logging_share < SHARE:
        return Absent(said, (evidence,))
    cure = Cure(
        "write fewer records for each request, or hand them to a thread (logging.handlers.QueueHandler)",
        "the app's logging configuration",
        "a record is written while the request waits",
        "the level of the logger raised, or a QueueHandler before its handlers",
    )
    knee = seen.slope.knee if seen.slope else LEAST_CONNECTIONS
    connections = min(max(2 * knee, LEAST_CONNECTIONS), MOST_CONNECTIONS)
    return Suspect(
        min(0.9, 0.4 + watched.logging_share),
        said,
        (
            Experiment(
                Treatment("logging off", {"logging": "off"}),
                connections,
                cure,
                takes="logging",
                needless=True,
            ),
        ),
        (evidence,),
        loss=min(watched.logging_share, 0.9),
    )


fault = Fault(
    "log-cost",
    "a record for each request costs as much as the request: fewer records, or a queue before the handlers",
    ("SkyRL#2160",),
    "Requests wait while records are formatted and written.",
    "With the records of `logging` off, throughput is better.",
    screen,
)

"""Records that cost as much as the request: formatting by `logging`, and a write to the kernel each."""

import re

from velodrome.diagnoses.fault import (
    SHARE,
    Absent,
    Doing,
    Experiment,
    Fault,
    Screened,
    Suspect,
    doing,
    filling,
)
from velodrome.diagnoses.log_blocks import waits
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.symptoms import Symptoms

FLUSHES = re.compile(r"\.flush\(|\bos\.fsync\(|\bprint\(")
"""What a line calls that has a file written at once."""


def _flushed(seen: Symptoms) -> Suspect | None:
    """Return a line of the app's own that busy threads are in and that writes records to a file of its own."""
    lines = seen.watched.lines if seen.watched else ()
    line = next((line for line in lines if line.share >= SHARE and FLUSHES.search(line.text)), None)
    if line is None:
        return None
    file, _, number = line.place.rpartition(":")
    said = f"{line.share:.0%} of the stacks of busy threads are at {line.place}: {line.text}"
    cure = Cure(
        "write fewer records for each request, let the file's buffer fill, or hand them to a thread",
        line.place,
        line.text,
        "no flush for each record",
    )
    site = {"file": file, "line": int(number), "end_line": int(number)}
    unflushed = Treatment(f"{line.place} left out", {"unflushed": [site]})
    found = Doing(line.share, said, (Evidence("stack", said, vars(line)),), filling(seen), line)
    return found.suspect(Experiment(unflushed, found.connections, cure, needless=True))


def screen(seen: Symptoms) -> Screened:
    """Look for `logging`, or for files that the app writes itself, in the stacks of threads that are not idle."""
    found = doing(seen, "logging", "logging", computes=True)
    if not isinstance(found, Doing):
        return _flushed(seen) or found
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
    "With the records of `logging` off, or without the line that has a file written, throughput is better.",
    screen,
)

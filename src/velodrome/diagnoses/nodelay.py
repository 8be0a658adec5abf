"""Nagle's algorithm and the delayed acknowledgement: 40 ms on every request of a connection but the first."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms

LATER_MS = 20.0
"""By which a request on a reused connection takes longer, from which on it is looked into; Linux acknowledges after 40.
"""
LATEST_MS = 60.0
"""By which it takes longer at most, for figures to say so that were measured for another purpose."""


def screen(seen: Symptoms) -> Screened:
    """Look whether requests on a reused connection take longer than those on a fresh one."""
    reused = seen.reused
    if reused is None:
        return Unknown("latency by connection could not be measured")
    sentence = (
        f"p50 {significant(reused.later_ms)} ms on a reused connection, {significant(reused.first_ms)} ms on a "
        "fresh one"
    )
    evidence = Evidence("latency", sentence, {"first_ms": reused.first_ms, "later_ms": reused.later_ms})
    if reused.later_ms - reused.first_ms < LATER_MS:
        return Absent(sentence, (evidence,))
    cure = Cure(
        "set TCP_NODELAY on accepted connections: another event loop (`--loop uvloop`), gunicorn in front of the "
        "workers, or one worker where the server's master passes its listener on",
        "the server's command line",
        "the standard event loop",
        "--loop uvloop",
    )
    return Suspect(
        0.95,
        sentence,
        (Experiment(Treatment("TCP_NODELAY", {"nodelay": True}), 1, cure),),
        (evidence,),
        loss=1 - reused.first_ms / reused.later_ms,
    )


def glance(seen: Symptoms) -> str:
    """Look for the same in figures of other commands; an answer that takes long anyway is no longer on a fresh one."""
    reused = seen.reused
    if reused is None or not LATER_MS <= reused.later_ms - reused.first_ms <= LATEST_MS:
        return ""
    return (
        f"p50 {significant(reused.later_ms)} ms on reused connections, {significant(reused.first_ms)} ms on "
        "the first request of one"
    )


fault = Fault(
    "nodelay",
    "40 ms more on every request of a connection but the first: Nagle's algorithm meets the delayed acknowledgement",
    ("uvicorn#3149",),
    "The second small write of a response waits until the client acknowledges the first, which it does after 40 ms.",
    "With TCP_NODELAY on accepted connections requests one after the other take as long as on fresh ones.",
    screen,
    glance=glance,
)

"""A record of `logging` is handed over while its request waits: to a pipe that nobody empties, or to a slow disk."""

from dataclasses import replace

from velodrome.diagnoses.blocking_call import LEAST, in_logging, stacks_of
from velodrome.diagnoses.fault import (
    IDLE,
    Absent,
    Doing,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    doing,
    filling,
)
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms, Watched


def screen(seen: Symptoms) -> Screened:
    """Look for a loop that is blocked inside `logging`, or for threads that are while the CPUs are idle."""
    watched = seen.watched
    if watched is None or not watched.seconds:
        return Unknown("no heartbeat came out of its processes")
    if not watched.loop:
        return _of_threads(seen)
    writing = sorted(filter(in_logging, watched.held_up), key=lambda held_up: -held_up.blocked_s)
    share = sum(held_up.blocked_s for held_up in writing) / watched.seconds
    sentence = f"the loop is blocked in logging for {share:.0%} of the time"
    if share < LEAST:
        return Absent(sentence)
    named = writing[0].named
    found = Doing(share, sentence, stacks_of(watched, writing[:1]), filling(seen))
    return _suspect(found, named.place, named.text.strip())


def _of_threads(seen: Symptoms) -> Screened:
    found = doing(seen, "logging", "logging")
    if not isinstance(found, Doing):
        return found
    why = _threads_wait(seen)
    if not why:
        return Absent(f"{found.said}, where they compute", found.evidence)
    found = replace(found, said=f"{found.said}: {why}")
    return _suspect(found, "the app's logging configuration", "a record is written while the request waits")


def _suspect(found: Doing, where: str, before: str) -> Suspect:
    cure = Cure(
        "have the handlers called by a thread of their own, which waits in place of the request, behind a queue with "
        "an end: what the handlers are too slow for is dropped, or it fills the memory",
        where,
        before,
        "queue = Queue(1000); handler = QueueHandler(queue); QueueListener(queue, *the handlers).start()",
    )
    queued = Treatment("handlers of logging called by a thread", {"logging": "queued"})
    experiment = Experiment(queued, found.connections, cure, ("rps", "p99_ms"))
    return Suspect(
        min(0.95, 0.5 + found.share), found.said, (experiment,), found.evidence, loss=min(found.share, 0.9)
    )


def waits(seen: Symptoms) -> str:
    """Return that requests wait in `logging` more than they compute there; empty: they do not, or nobody knows."""
    watched = seen.watched
    if watched is None or not watched.seconds:
        return ""
    return _loop_waits(watched) if watched.loop else _threads_wait(seen)


def _loop_waits(watched: Watched) -> str:
    writing = [held for held in watched.held_up if in_logging(held)]
    blocked_s, ran_s = sum(held.blocked_s for held in writing), sum(held.ran_s for held in writing)
    if blocked_s < LEAST * watched.seconds or blocked_s < ran_s:
        return ""
    return f"the loop is blocked there for {blocked_s / watched.seconds:.0%} of the time"


def _threads_wait(seen: Symptoms) -> str:
    if seen.slope is None:
        return ""
    top = seen.slope.plateau
    if top.cpus > IDLE * min(seen.workers, seen.server_cpus):
        return ""
    return f"{significant(top.cpus, 2)} CPUs are busy at {significant(top.rps, 4)}/s, so these threads wait there"


fault = Fault(
    "log-blocks",
    "all stops while a record is written to who does not read: a pipe, a socket; a queue before the handlers",
    ("agentfield#985",),
    "The event loop is late, or threads are busy without computing, because a handler of `logging` waits.",
    "With the handlers called by a thread of their own, throughput or p99 is better.",
    screen,
)

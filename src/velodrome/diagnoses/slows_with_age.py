"""A server that does less the more requests it has answered: what is never given back, or gone through again and again.

Slots of a pool that an error or a cancelled request keeps, a list that each request appends to and searches, loggers
that are made for each request: a fresh server does well, and after some thousand requests it does not.
"""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown
from velodrome.model.diagnosis import AS_IT_IS, Cure, Evidence, Probe
from velodrome.model.symptoms import Symptoms

LASTS = 0.75
"""Of the throughput that it had, below which a server does so much less once the slope was measured."""
WORTH = 0.2
FEWEST = 2_000
"""Requests that the server answers between the two loads, at least, and for how long at most."""
LONGEST_S = 10.0
LOAD_S, ANSWERS, WAVES = 1.0, 30, 3.0
"""Of each load, or as many answers, or as many of each connection, whichever takes longest."""
MOST = 0.3
"""Of the time of busy threads, in one line, from which on it is named."""
IDLE = 0.7
"""CPUs that are busy, of those there are, up to which requests wait for something and do not compute."""


def screen(seen: Symptoms) -> Screened:
    """Look whether the same closed loops did less at the end of the slope than at its beginning."""
    slope = seen.slope
    if slope is None or slope.lasts is None:
        return Unknown("whether throughput lasts could not be measured")
    requests = max((requests for requests, _ in seen.in_use.memory), default=0)
    sentence = (
        f"after {requests} requests throughput is {slope.lasts:.0%} of what it was with as many connections"
    )
    evidence = Evidence("slope", sentence, {"lasts": slope.lasts, "requests": requests})
    if slope.lasts >= LASTS:
        return Absent(sentence, (evidence,))
    if not seen.setting.plain:
        return Unknown(f"{sentence}: its requests cannot be sent by hand")
    count, top = max(requests, FEWEST), slope.plateau
    load_s = min(max(LOAD_S, ANSWERS / top.rps, WAVES * top.connections / top.rps), LONGEST_S / 2)
    probe = Probe(
        "age",
        f"{top.connections} connections, once more after {count} requests (or {LONGEST_S:.0f} s)",
        "hundredths of the throughput lost",
        {"connections": top.connections, "requests": count, "load_s": load_s},
        unprovoked={"requests": 0},
        seconds=min(count / top.rps, LONGEST_S) + 2 * load_s + 1,
        in_turn=0,
        worth=WORTH,
        hides=True,
    )
    return Suspect(
        0.8,
        sentence,
        (Experiment(AS_IT_IS, 0, _cure(seen, top.cpus), proof="dose", probe=probe),),
        (evidence,),
        loss=1 - slope.lasts,
    )


def _cure(seen: Symptoms, cpus: float) -> Cure:
    """Return where it is, by what the last loads of the screens show: those that wait, or compute."""
    watched = seen.watched
    queue = watched.longest_queue if watched is not None else None
    waits = cpus <= IDLE * min(seen.workers, seen.server_cpus)
    lines = watched.lines[:1] if watched is not None else ()
    line = next((line for line in lines if line.share >= MOST), None)
    place = queue if waits and queue is not None else line
    return Cure(
        "give back what a request takes on every way out of it, also where it is cancelled or fails (try … finally, "
        "`except BaseException`), and bound what is kept from request to request and gone through in each: lists, "
        "caches, loggers, listeners",
        place.place if place is not None else "what outlives its request",
        place.text if place is not None else "",
    )


fault = Fault(
    "slows-with-age",
    "fast when fresh, slow after some thousand requests: what is kept and gone through, or never given back",
    ("field practice",),
    "Each request leaves something behind that later ones go through, or miss.",
    "On a fresh server a closed loop is measured, and again after many requests: throughput falls; without these "
    "requests in between it does not.",
    screen,
)

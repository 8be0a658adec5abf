"""Connections or files that are opened for a request and never closed, or taken from a pool and never given back."""

import math

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown, growing, growth
from velodrome.model.diagnosis import AS_IT_IS, Cure, Evidence, Probe
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms, Worn

LEAST_EACH = 0.01
"""Descriptors that a request leaves open, from which on it is looked into."""
KEPT = (0.8, 1.05)
"""Times as many as connections were opened, between which the server keeps what was a connection for a while: hypercorn
until its keep-alive would have ended. With fewer it may keep some, or the app leaves others open: that is tried."""
FEWEST_EACH = 2
"""Requests on a connection, at least, for what they leave and what it leaves not to look the same."""
USED_UP = 0.9
"""Of the requests on a server that answered many, those that wait or fail while nothing is in work."""
MORE = 1.25
"""Times as many requests as the screens sent have a pool used up for sure."""
WEARING_S, FEW, MANY = 10.0, 4, 16
"""For these to be answered, about, and connections for that: at few no request waits for another."""
BY_HAND = 250
"""Up to so many are sent one after the other."""
QUEUED = 0.5
"""Of the time that tasks wait, from which on the place of it is named."""


def screen(seen: Symptoms) -> Screened:
    """Look whether a pool is used up, or open descriptors rose with each of the last loads of the screens."""
    if seen.worn is not None and seen.worn.met.share >= USED_UP:
        return _used_up(seen, seen.worn)
    grown = growth(seen.in_use.descriptors)
    if grown is None:
        return Unknown("its open descriptors over the screens could not be seen")
    sentence = f"{grown.risen:.0f} more descriptors open after {grown.requests} requests"
    evidence = Evidence(
        "counter", sentence, {"descriptors": [list(descriptor) for descriptor in seen.in_use.descriptors]}
    )
    if not grown.always or grown.each < LEAST_EACH:
        return Absent(sentence, (evidence,))
    opened = growth(seen.in_use.connections)
    few = opened is not None and opened.risen <= grown.requests / FEWEST_EACH
    if opened is not None and few and KEPT[0] * opened.risen <= grown.risen <= KEPT[1] * opened.risen:
        sentence += f" on {opened.risen:.0f} connections, which the server keeps for a while"
        return Absent(sentence, (evidence,))
    if not seen.setting.plain:
        return Unknown(f"{sentence}: its requests cannot be sent by hand")
    cure = Cure(
        "close what a request opens when it ends (a `with` block, or a client or pool that all requests share); under "
        "ASGI a Django database connection that is kept (CONN_MAX_AGE) is one for each request",
        "where the connection or file is opened",
    )
    probe = growing("that leave more descriptors open", descriptors=1, least=LEAST_EACH)
    dose = Experiment(AS_IT_IS, 0, cure, proof="dose", probe=probe)
    return Suspect(0.9, sentence, (dose,), (evidence,), loss=0.5)


def _used_up(seen: Symptoms, worn: Worn) -> Suspect:
    """Return that what requests take from a pool is not given back: those that come later wait for it."""
    met = worn.met
    stuck = f"{met.hits} of {met.of} wait or fail while nothing is in work"
    sentence = f"after {worn.requests} requests {stuck} ({met.said})"
    alone_s = met.figures.get("usual_ms", 0.0) / 1000
    count = math.ceil(MORE * worn.requests)
    connections = min(max(math.ceil(count * alone_s / WEARING_S), FEW), MANY)
    if count <= BY_HAND and count * alone_s <= WEARING_S:
        connections = 0
    probe = Probe(
        "worn",
        f"requests one after the other, after {count} others",
        "late, or failed",
        {"requests": count, "connections": connections},
        unprovoked={"requests": 0},
        seconds=count * alone_s / max(connections, 1) + 2,
        warm=False,  # that may take some, too
        hides=True,
    )
    longest = seen.watched.longest_queue if seen.watched else None
    every = sum(wait.seconds for wait in seen.watched.waits if wait.inner) if seen.watched else 0.0
    named = longest is not None and longest.seconds >= QUEUED * every
    cure = Cure(
        "give back what a request takes from a pool on every way out of it (`async with client.stream(…) as response`, "
        "`await response.aclose()`, `with pool.connection()`): a response that is not read to its end, an exception or "
        "an early return keeps it",
        longest.place if longest is not None and named else "where a connection is taken from a pool",
        longest.text if longest is not None and named else "",
    )
    evidence = Evidence("counts", sentence, {"requests": worn.requests, **met.document()})
    return Suspect(
        0.9, sentence, (Experiment(AS_IT_IS, 0, cure, proof="dose", probe=probe),), (evidence,), loss=0.9
    )


def glance(seen: Symptoms) -> str:
    """Look for descriptors that rise in every half second of every closed loop, whose connections stay the same."""
    counted = seen.counted
    if counted is None or counted.left_open < LEAST_EACH:
        return ""
    return (
        f"each request leaves {significant(counted.left_open, 2)} descriptors open while the connections stay "
        "the same"
    )


fault = Fault(
    "connections-leak",
    "each request leaves a connection or file open, until there are no descriptors left, or its pool is used up: close "
    "it, or share it",
    ("gyrinx#2083",),
    "What a request opens is never closed, or what it takes from a pool is never given back.",
    "Of loads that are alike each leaves more descriptors open, without load none is opened; or requests wait "
    "or fail while nothing is in work on a server that answered many, and on a fresh one they do not.",
    screen,
    glance=glance,
    wears=True,
)

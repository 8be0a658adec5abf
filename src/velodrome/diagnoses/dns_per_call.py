"""A name is looked up for each call of a third party: a round trip to a resolver, in a thread or on the loop."""

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, Suspect, doing, filling, opens_again
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.symptoms import Symptoms

MARK = "resolver"
"""What tasks wait in (`guest/injected/marks.py`)."""
LEAST = 2
"""Of these at once: one look-up holds up no other."""
CURE = Cure(
    "keep the connections to a third party, so that a name is looked up once for many calls; or a cache of names, "
    "on the machine or in the client",
    "where the client is made",
    "a new connection for each call",
    "one client for all requests, with keep-alive",
)


def screen(seen: Symptoms) -> Screened:
    """Look for names that are looked up while requests are served."""
    found = doing(seen, "resolving", "socket.getaddrinfo")
    if not isinstance(found, Doing):
        return _waiting(seen) or found
    return found.suspect(_once(found.connections))


def _waiting(seen: Symptoms) -> Suspect | None:
    """Look for tasks that wait for a resolver, whatever that does: one of the app's own reads a file, or calls."""
    opened, most = opens_again(seen), seen.watched.waiting.get(MARK, 0) if seen.watched else 0
    if opened is None or most < LEAST:
        return None
    sentence = f"up to {most} tasks wait for a name to be looked up, and {opened.said}"
    evidence = Evidence("stack", sentence, {"waiting": most, "opened": opened.count, "each": opened.each})
    return Suspect(0.6, sentence, (_once(filling(seen)),), (evidence,))


def _once(connections: int) -> Experiment:
    once = Treatment("names looked up once", {"resolved": "once"})
    return Experiment(once, connections, CURE, needless=True)


fault = Fault(
    "dns-per-call",
    "a name is looked up for each call of a third party, in steps of seconds when the resolver is slow: reuse",
    ("gevent#1904", "kubernetes#56903"),
    "Requests wait for the resolver.",
    "With names that are looked up once (socket.getaddrinfo, aiohttp), throughput is better. Look-ups of uvloop's own "
    "cannot be treated.",
    screen,
)

"""A name is looked up for each call of a third party: a round trip to a resolver, in a thread or on the loop."""

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, doing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms


def screen(seen: Symptoms) -> Screened:
    """Look for names that are looked up while requests are served."""
    found = doing(seen, "resolving", "socket.getaddrinfo")
    if not isinstance(found, Doing):
        return found
    cure = Cure(
        "keep the connections to a third party, so that a name is looked up once for many calls; or a cache of names "
        "on the machine",
        "where the client is made",
        "a new connection for each call",
        "one client for all requests, with keep-alive",
    )
    once = Treatment("names looked up once", {"resolved": "once"})
    return found.suspect(Experiment(once, found.connections, cure, takes="resolved", needless=True))


fault = Fault(
    "dns-per-call",
    "a name is looked up for each call of a third party, in steps of seconds when the resolver is slow: reuse",
    ("gevent#1904", "kubernetes#56903"),
    "Requests wait for the resolver.",
    "With names that are looked up once (socket.getaddrinfo cached), throughput is better. uvloop's own look-ups "
    "cannot be treated.",
    screen,
)

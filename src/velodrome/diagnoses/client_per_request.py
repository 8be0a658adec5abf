"""A client made for each request: each reads the bundle of certificates again, and opens connections of its own."""

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, Suspect, doing, filling
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms

EACH = 0.5
"""Connections for each request, from which on it is looked into."""
CURES = {
    "aiohttp": "session = aiohttp.ClientSession()  # in the app's lifespan",
    "httpx": "client = httpx.AsyncClient()  # in the app's lifespan",
    "requests": "session = requests.Session()  # one for each thread, in place of requests.get(…)",
}
"""By the package that is imported, of those whose connections a treatment shares."""


def screen(seen: Symptoms) -> Screened:
    """Look for TLS contexts that are made while requests are served."""
    found = doing(seen, "tls-context", "the making of a TLS context", computes=True)
    if not isinstance(found, Doing):
        return _connecting(seen) or found
    cure = Cure(
        "make one client when the app starts, and use it for all requests: it also keeps its connections",
        found.where("where the client is made"),
        (found.called and found.called.text) or "async with httpx.AsyncClient() as client:  # in the handler",
        "client = httpx.AsyncClient()  # in the app's lifespan",
    )
    shared = Treatment("one TLS context for all clients that are made alike", {"tls-context": "shared"})
    metrics = ("rps", "cpu_us")
    return found.suspect(Experiment(shared, found.connections, cure, metrics, takes="tls-context"))


def _connecting(seen: Symptoms) -> Suspect | None:
    """Look for connections that requests open, in an app with clients that could be shared."""
    watched = seen.watched
    opened = watched.most_opened if watched is not None else None
    if watched is None or opened is None or opened.each < EACH:
        return None
    client = next((package for package in CURES if package in watched.libraries), "")
    if not client:
        return None
    often = f"{significant(opened.each, 2)} connections to {opened.peer} are opened for each request"
    sentence = f"{often}, and {client} is imported"
    cure = Cure(
        "make one client when the app starts, and use it for all requests: it keeps its connections",
        "where the client is made",
        f"a client of {client} for each request",
        CURES[client],
    )
    shared = Treatment("clients that are made alike share their connections", {"clients-shared": True})
    experiment = Experiment(
        shared, filling(seen), cure, ("rps", "cpu_us"), takes="clients-shared", needless=True
    )
    evidence = Evidence("counter", sentence, {"opened": opened.count, "each": opened.each})
    return Suspect(0.5, sentence, (experiment,), (evidence,), loss=0.3)


fault = Fault(
    "client-per-request",
    "a client made for each request reads the bundle of certificates each time: make one, and share it",
    ("httpx#838",),
    "Requests wait while a new client makes its TLS context, or opens its connections.",
    "With one context for all clients (ssl.create_default_context cached), or where they make none with connections "
    "that clients of aiohttp, httpx and requests share, throughput or CPU time per request is better.",
    screen,
)

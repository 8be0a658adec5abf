"""A client made for each request: each reads the bundle of certificates again, some 10 ms of computing on the loop."""

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, doing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms


def screen(seen: Symptoms) -> Screened:
    """Look for TLS contexts that are made while requests are served."""
    found = doing(seen, "tls-context", "the making of a TLS context", computes=True)
    if not isinstance(found, Doing):
        return found
    cure = Cure(
        "make one client when the app starts, and use it for all requests: it also keeps its connections",
        found.where("where the client is made"),
        (found.called and found.called.text) or "async with httpx.AsyncClient() as client:  # in the handler",
        "client = httpx.AsyncClient()  # in the app's lifespan",
    )
    shared = Treatment("one TLS context for all clients that are made alike", {"tls-context": "shared"})
    metrics = ("rps", "cpu_us")
    return found.suspect(Experiment(shared, found.connections, cure, metrics, takes="tls-context"))


fault = Fault(
    "client-per-request",
    "a client made for each request reads the bundle of certificates each time: make one, and share it",
    ("httpx#838",),
    "Requests wait while a new client makes its TLS context.",
    "With one context for all clients (ssl.create_default_context cached), throughput or CPU time per request is "
    "better.",
    screen,
)

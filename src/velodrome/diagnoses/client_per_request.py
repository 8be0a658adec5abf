"""A client made for each request, which reads the bundle of certificates and opens connections, or that keeps none."""

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, Suspect, doing, filling, opens_again
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.symptoms import Symptoms

CURES = {
    "aiohttp": "session = aiohttp.ClientSession()  # in the app's lifespan",
    "httpx": "client = httpx.AsyncClient()  # in the app's lifespan; its Limits keep as many as are called at once",
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
    return found.suspect(Experiment(shared, found.connections, cure, metrics))


def _connecting(seen: Symptoms) -> Suspect | None:
    """Look for connections that requests open, in an app with clients that could be shared."""
    watched, opened = seen.watched, opens_again(seen)
    if watched is None or opened is None:
        return None
    client = next((package for package in CURES if package in watched.libraries), "")
    if not client:
        return None
    sentence = f"{opened.said}, and {client} is imported"
    cure = Cure(
        "make one client when the app starts, use it for all requests, and let it keep its connections",
        "where the client is made",
        f"a client of {client} for each request, or one that does not keep its connections",
        CURES[client],
    )
    shared = Treatment(
        "clients that are made alike share their connections, and keep them", {"clients-shared": True}
    )
    experiment = Experiment(shared, filling(seen), cure, ("rps", "cpu_us"), needless=True)
    evidence = Evidence("counter", sentence, {"opened": opened.count, "each": opened.each})
    return Suspect(0.5, sentence, (experiment,), (evidence,), loss=0.3)


fault = Fault(
    "client-per-request",
    "a client made for each request reads the bundle of certificates each time: make one, and share it",
    ("httpx#838",),
    "Requests wait while a new client makes its TLS context, or opens its connections.",
    "With one context for all clients (ssl.create_default_context cached), or where they make none with connections "
    "that clients of aiohttp, httpx and requests share and keep, throughput or CPU time per request is better.",
    screen,
)

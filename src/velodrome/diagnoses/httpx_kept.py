"""Connections that a client of httpx keeps: each request goes through all of them, by the square of their number."""

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, doing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms

KEPT = 10


def screen(seen: Symptoms) -> Screened:
    """Look for httpcore's search through its connections in the stacks of threads that are not idle."""
    found = doing(seen, "httpcore-search", "the search of httpx through its connections", computes=True)
    if not isinstance(found, Doing):
        return found
    cure = Cure(
        "several clients in turn, each with few connections, or one that does not go through all of them (aiohttp); "
        "to keep few has new ones made, each of which takes a local port for a minute",
        "where the client is made",
        "client = httpx.AsyncClient(limits=httpx.Limits(max_keepalive_connections=…))  # None, or hundreds",
        "clients = itertools.cycle([httpx.AsyncClient() for _ in range(16)])  # next(clients) for each call",
    )
    few = Treatment(f"clients of httpx that keep {KEPT} idle connections", {"httpx-kept": KEPT})
    metrics = ("rps", "cpu_us")
    return found.suspect(Experiment(few, found.connections, cure, metrics))


fault = Fault(
    "httpx-kept",
    "CPU time grows with the requests in flight: httpx goes through every connection it keeps; several clients",
    ("httpcore#1035",),
    "Each request pays for the connections that the client keeps, by the square of their number.",
    f"With {KEPT} idle connections kept at most, throughput or CPU time per request is better.",
    screen,
)

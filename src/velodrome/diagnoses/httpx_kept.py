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
        "keep few connections, or use a client that does not go through all of them (aiohttp)",
        "where the client is made",
        "httpx.Limits(max_keepalive_connections=…): None, or hundreds",
        f"httpx.AsyncClient(limits=httpx.Limits(max_connections=…, max_keepalive_connections={KEPT}))",
    )
    few = Treatment(f"clients of httpx that keep {KEPT} idle connections", {"httpx-kept": KEPT})
    metrics = ("rps", "cpu_us")
    return found.suspect(Experiment(few, found.connections, cure, metrics, takes="httpx-kept"))


fault = Fault(
    "httpx-kept",
    "CPU time grows with the requests in flight: httpx goes through every connection it keeps; keep few",
    ("httpcore#1035",),
    "Each request pays for the connections that the client keeps, by the square of their number.",
    f"With {KEPT} idle connections kept at most, throughput or CPU time per request is better.",
    screen,
)

"""A client of aiohttp opens 100 connections at most: requests in work stop there."""

from velodrome.diagnoses.fault import (
    Absent,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    lacks,
    no_plateau,
    plateau,
    stops_at,
    third_party_evidence,
)
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms

LIMIT = 100
SIZE = 2000
MOST_CONNECTIONS = 512


def screen(seen: Symptoms) -> Screened:
    """Look for a plateau while nothing computes, in an app with a client of aiohttp."""
    if (bound := no_plateau(seen)) is not None:
        return bound
    assert seen.slope is not None
    if seen.watched is None:
        return Unknown("what it imports could not be seen")
    if "aiohttp" not in seen.watched.libraries:
        return Absent("aiohttp is not imported")
    k = seen.slope.in_work
    queued = seen.watched.waiting.get("connector", 0)
    cure = Cure(
        "let the client open as many connections as the third party bears",
        "where the client session is made",
        f"TCPConnector(limit={LIMIT}), the default",
        f"ClientSession(connector=TCPConnector(limit={4 * LIMIT}))",
    )
    treatment = Treatment(f"clients of {SIZE} connections", {"aiohttp-connections": SIZE})
    connections = min(max(2 * seen.slope.plateau.connections, 2 * LIMIT), MOST_CONNECTIONS)
    default = k.low <= LIMIT * 1.1 and k.high >= LIMIT * 0.9
    return Suspect(
        0.9 if queued > 1 else 0.7 if default else 0.3,
        f"{significant(k.mid)} requests in work, and a client of aiohttp"
        + (f" for whose connections up to {queued} tasks wait" if queued > 1 else ""),
        (Experiment(treatment, connections, cure, takes="aiohttp-connections"),),
        (*plateau(seen), *third_party_evidence(seen)),
        loss=0.4,
    )


def glance(seen: Symptoms) -> str:
    """Look for as many requests in work as a client of aiohttp opens connections."""
    sentence = "" if lacks(seen, "aiohttp") else stops_at(seen, LIMIT)
    return sentence and f"{sentence}: a client of aiohttp opens {LIMIT} connections"


fault = Fault(
    "connector-limit",
    "throughput stops past 100 requests in flight: aiohttp's client opens 100 connections; raise its limit",
    ("gpustack#2324",),
    "Requests wait for a connection to the third party.",
    "With a higher limit throughput goes on rising.",
    screen,
    glance=glance,
    steps=True,
)

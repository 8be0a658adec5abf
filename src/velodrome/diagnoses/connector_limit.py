"""A client of aiohttp or httpx opens 100 connections at most, one of Tornado 10: requests in work stop there."""

from dataclasses import dataclass

from velodrome.diagnoses.fault import (
    Absent,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    is_about,
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
"""Of clients of aiohttp and httpx."""
SIZE = 2000
MOST_CONNECTIONS = 512


@dataclass(frozen=True)
class Client:
    """Of third parties."""

    package: str
    mark: str
    """What tasks are in that wait for one of its connections (`guest/injected/marks.py`); empty: that is not seen."""
    as_it_is: str
    larger: str
    limit: int = LIMIT


CLIENTS = (
    Client(
        "aiohttp",
        "connector",
        f"TCPConnector(limit={LIMIT}), the default",
        f"ClientSession(connector=TCPConnector(limit={4 * LIMIT}))",
    ),
    Client(
        "httpx",
        "httpcore-pool",
        f"httpx.Limits(max_connections={LIMIT}), the default",
        f"AsyncClient(limits=httpx.Limits(max_connections={4 * LIMIT}))",
    ),
    Client(
        "tornado.simple_httpclient",
        "",
        "AsyncHTTPClient(): max_clients=10, the default",
        f"AsyncHTTPClient.configure(None, max_clients={LIMIT})",
        10,
    ),
)


def screen(seen: Symptoms) -> Screened:
    """Look for a plateau while nothing computes, in an app with a client of aiohttp, httpx or Tornado."""
    if seen.watched is None:
        return no_plateau(seen) or Unknown("what it imports could not be seen")
    imported = [client for client in CLIENTS if client.package in seen.watched.libraries]
    if not imported:
        return Absent("no client of aiohttp, httpx or Tornado is imported")
    if (bound := no_plateau(seen)) is not None:
        return bound
    assert seen.slope is not None
    k = seen.slope.in_work
    # aiohttp may be the server, and httpx the client that waits.
    waiting = seen.watched.waiting
    client = max(imported, key=lambda client: waiting.get(client.mark, 0))
    queued = waiting.get(client.mark, 0)
    cure = Cure(
        "let the client open as many connections as the third party bears",
        "where the client is made",
        client.as_it_is,
        client.larger,
    )
    treatment = Treatment(f"clients of {SIZE} connections", {"client-connections": SIZE})
    connections = min(max(2 * seen.slope.plateau.connections, 2 * client.limit), MOST_CONNECTIONS)
    default = is_about(k, client.limit)
    return Suspect(
        0.9 if queued > 1 else 0.7 if default else 0.3,
        f"{significant(k.mid)} requests in work, and a client of {client.package.partition('.')[0]}"
        + (f" for whose connections up to {queued} tasks wait" if queued > 1 else ""),
        (Experiment(treatment, connections, cure, raises=True),),
        (*plateau(seen), *third_party_evidence(seen)),
        loss=0.4,
    )


def glance(seen: Symptoms) -> str:
    """Look for as many requests in work as a client of aiohttp or httpx opens connections."""
    there = [
        client.package for client in CLIENTS if client.limit == LIMIT and not lacks(seen, client.package)
    ]
    sentence = stops_at(seen, LIMIT) if there else ""
    return sentence and f"{sentence}: a client of {' or '.join(there)} opens {LIMIT} connections"


fault = Fault(
    "connector-limit",
    "throughput stops past 100 requests in flight, or 10: clients of aiohttp and httpx open 100 connections, Tornado's "
    "10; raise the limit",
    ("gpustack#2324",),
    "Requests wait for a connection to the third party.",
    "With a higher limit throughput goes on rising.",
    screen,
    glance=glance,
    steps=True,
)

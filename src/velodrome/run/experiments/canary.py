"""Whether a marker that is kept for a request is still that request's after a wait, at many requests at once.

Each request uploads a marker of its own; the handler puts it into a place, waits, and answers status 500 if what it
finds there then is another's (step `keep`). So every stack is tried in its own idiom. A marker in a place that
requests share is lost when they overlap: `global` is tried too, and tells whether they did. What 0 lost mean is only
seen beside it.
"""

import http.client
import itertools
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from velodrome.guest import catalog
from velodrome.guest.recipe import PLACES, Body, Keep, ReadBody, Recipe
from velodrome.model.claim import Fact, Setting
from velodrome.model.errors import ServerNotReadyError
from velodrome.run.experiments.experiment import Kind, Outcome, stacks_of
from velodrome.run.experiments.programs import (
    ANSWER_S,
    VERSIONS,
    Served,
    environment_of,
    run_program,
    serve,
)
from velodrome.run.lab import Lab
from velodrome.run.servers import Server

DIGITS = 12
"""Length of a marker: every request is as long as the others."""
IN_TURN = 50
"""Requests for each that a stack serves at once: more would wait in line and show nothing further."""
UNDER_GEVENT = PLACES[3:]
LOST, KEPT = 500, 200
CALLER, CALLS = "grpc-aio", "velodrome.guest.experiments.canary_calls"
"""Who calls gRPC servers: the stack in whose environment it runs, and the program."""

Lost = dict[str, dict[str, int | None]]
"""Place, then stack, to how many requests found another's marker; None: that stack has no such place."""


def run(settings: Mapping[str, Setting], lab: Lab) -> Outcome:
    """Try every place on every stack, and count the requests whose marker was lost."""
    requests, connections = int(settings["requests"]), int(settings["connections"])  # type: ignore[arg-type]
    places = settings["places"]
    lost: Lost = {}
    facts: dict[str, Fact] = {}
    for name in stacks_of(settings):
        stack = lab.stacks[name]
        slots = stack.slots(stack.knobs)
        many = requests if slots is None else min(requests, IN_TURN * slots)
        facts[f"requests.{name}"] = float(many)
        made = environment_of(name, settings, lab)
        for place in places if isinstance(places, tuple) else ():
            if place in UNDER_GEVENT and stack.concurrency != "greenlets":
                continue
            served = Served(name, _recipe(place, float(settings["wait_ms"])), made)  # type: ignore[arg-type]
            try:
                with serve(served, lab) as server:
                    lose = (
                        _count_lost_calls
                        if catalog.interface(stack.interface).protocol == "grpc"
                        else _count_lost
                    )
                    count = lose(server, many, connections, lab)
            except ServerNotReadyError:
                if place not in UNDER_GEVENT:
                    raise
                count = None  # greenlets without a patched standard library
            lost.setdefault(place, {})[name] = count
            facts[f"lost.{place}.{name}"] = None if count is None else float(count)
    return Outcome(facts, _sentence(lost, facts, connections))


def _recipe(place: str, wait_ms: float) -> Recipe:
    about = f"keeps a marker in a {place} place"
    return Recipe("canary", about, (ReadBody(), Keep(place, wait_ms), Body(2)), "POST", DIGITS)


def _count_lost_calls(server: Server, calls: int, at_once: int, lab: Lab) -> int:
    """Do the same by gRPC: a program of the guest's calls, because grpcio is in an environment of the guest's."""
    made = lab.environment(lab.stacks[CALLER], None, {}, None)
    address = f"{server.serving.host}:{server.serving.port}"
    options = (f"--calls={calls}", f"--at-once={at_once}", f"--digits={DIGITS}")
    counted: dict[str, int] = run_program(made, lab, CALLS, f"--address={address}", *options)["statuses"]
    for status in counted.keys() - {"OK", "INTERNAL"}:
        name, reason = server.serving.stack.name, f"its calls end with {status}"
        raise ServerNotReadyError(name, reason, server.last_lines())
    return counted.get("INTERNAL", 0)


def _count_lost(server: Server, requests: int, connections: int, lab: Lab) -> int:
    """Ask so many times, over so many connections at once; return how many found another marker than their own."""
    numbers = itertools.count(1)
    markers = [f"{next(numbers):0{DIGITS}}".encode() for _ in range(requests)]
    shares = [markers[number::connections] for number in range(connections)]
    with ThreadPoolExecutor(connections) as pool:
        return sum(pool.map(lambda share: _ask(server, share), shares))


def _ask(server: Server, markers: list[bytes]) -> int:
    """Ask once for each marker, one after the other, on one connection where it is kept; return how many were lost."""
    connection = http.client.HTTPConnection(server.serving.host, server.serving.port, timeout=ANSWER_S)
    lost = 0
    try:
        for marker in markers:
            connection.request("POST", "/", marker)
            answer = connection.getresponse()
            answer.read()
            if answer.status not in (KEPT, LOST):
                reason = f"it answers status {answer.status}"
                raise ServerNotReadyError(server.serving.stack.name, reason, server.last_lines())
            lost += answer.status == LOST
    finally:
        connection.close()
    return lost


def _sentence(lost: Lost, facts: Mapping[str, Fact], connections: int) -> str:
    parts = [f"Requests over {connections} connections at once, each with a marker of its own"]
    for place, by_stack in lost.items():
        leaks = [
            f"{name} ({count} of {facts[f'requests.{name}']:g})" for name, count in by_stack.items() if count
        ]
        stays = [name for name, count in by_stack.items() if count == 0]
        what = [f"lost in {', '.join(leaks)}"] if leaks else []
        what += [f"kept in {', '.join(stays)}"] if stays else []
        parts.append(f"{place}: {'; '.join(what) or 'there is no such place'}")
    return ". ".join(parts) + "."


experiment = Kind(
    "canary",
    "does a marker that is kept for a request stay with it?",
    run,
    {
        **VERSIONS,
        "stacks": (
            "gunicorn-sync",
            "gunicorn-gthread",
            "gunicorn-gevent",
            "uvicorn",
            "aiohttp",
            "tornado",
            "tornado-gen",
        ),
        "places": PLACES,
        "requests": 700,
        "connections": 40,
        "wait_ms": 10,
    },
    deadline_s=240.0,
)

"""R5: a web app calls a gRPC server over one `grpc.aio` channel, made before the loop of uvicorn runs or at start-up.

The app is Starlette on uvicorn, the server the real `grpc-aio`; each request to the app is one call. Facts by
moment, `before-loop`, `on-import` and `start-up`: how many requests are answered, and what the first failure says.
"""

import http.client
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from velodrome.guest.grpc.greeter import NAME, PEER, greeting
from velodrome.guest.recipe import GRPC_VARIABLE
from velodrome.guest.stack import Process
from velodrome.model.claim import Fact, Setting
from velodrome.run.experiments.experiment import Kind, Outcome, stacks_of
from velodrome.run.experiments.programs import VERSIONS, Served, address, environment_of, listening
from velodrome.run.lab import Lab
from velodrome.run.servers import Server

PROGRAM = "velodrome.guest.experiments.grpc_channel"
MADE = ("before-loop", "on-import", "start-up")
PATIENCE_S = 10.0
"""For one request; the app gives its call up long before."""
TOLD_CHARACTERS = 600
_INSTALLED = re.compile(r"/[^ ]*/site-packages/")
"""Where an environment lies says nothing to anybody else."""


def channel_made(moment: str) -> Callable[[Process], Process]:
    """Return what starts uvicorn with the app whose channel is made at that moment."""

    def under(process: Process) -> Process:
        return replace(process, argv=("-m", PROGRAM, f"--made={moment}", *process.argv[2:]))

    return under


def request(server: Server) -> str:
    """Ask the app once; return what went wrong, or an empty text."""
    connection = http.client.HTTPConnection(server.serving.host, server.serving.port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        status = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        connection.close()
    return "" if (answer.status, status) == (200, greeting(NAME)) else status[:TOLD_CHARACTERS]


def run(settings: Mapping[str, Setting], lab: Lab) -> Outcome:
    """Try every moment."""
    web, peer = stacks_of(settings)
    requests = int(settings["requests"])  # type: ignore[arg-type]
    facts: dict[str, Fact] = {}
    parts = []
    with listening(Served(peer, PEER, environment_of(peer, {}, lab)), lab) as third:
        peer_address = {GRPC_VARIABLE: address(third)}
        made = environment_of(web, settings, lab)
        for moment in MADE:
            knobs = {"loop": str(settings["loop"])}
            served = Served(web, PEER, made, knobs=knobs, under=channel_made(moment))
            with listening(served, lab, peer_address) as server:
                wrong = [why for why in (request(server) for _ in range(requests)) if why]
            facts[f"answered.{moment}"] = float(requests - len(wrong))
            facts[f"error.{moment}"] = _INSTALLED.sub("", wrong[0]) if wrong else ""
            parts.append(f"{moment}: {requests - len(wrong)} of {requests} answered")
    return Outcome(facts, f"Channel made {'; '.join(parts)}.")


experiment = Kind(
    "grpc-channel-loop",
    "does a grpc.aio channel work that was made before the event loop ran?",
    run,
    {**VERSIONS, "stacks": ("starlette-uvicorn-grpc", "grpc-aio"), "loop": "uvloop", "requests": 3},
    deadline_s=120.0,
)

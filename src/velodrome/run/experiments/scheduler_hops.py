"""How often a request passes the event loop's scheduler, by stack: T2's «every hop makes a future».

The stack's own program runs on a loop that counts; two runs that differ by `requests` requests tell the cost of one.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from velodrome.guest import catalog
from velodrome.guest.stack import Process
from velodrome.model.claim import Fact, Setting
from velodrome.model.errors import ProgramError
from velodrome.run.experiments.experiment import Kind, Outcome, stacks_of
from velodrome.run.experiments.programs import VERSIONS, Served, ask, environment_of, serve
from velodrome.run.lab import Lab

PROGRAM = "velodrome.guest.experiments.counted"
FIRST = 20
"""Requests of the shorter run: what is done once per process or connection is in both."""
STOP_S = 10.0


def with_counting(process: Process) -> Process:
    """Return the same server under the counting program."""
    return replace(process, argv=("-m", PROGRAM, *process.argv[1:]))


def counts(served: Served, lab: Lab, requests: int) -> dict[str, int]:
    """Serve so many requests and return what passed the loop meanwhile. Raises ProgramError."""
    with serve(served, lab) as server:
        ask(server, requests)
        server.stop(STOP_S)
        lines = server.last_lines()
    for line in reversed(lines):
        if line.startswith("{"):
            found: dict[str, int] = json.loads(line)
            return found
    raise ProgramError(PROGRAM, f"{served.stack} ended without its counts", lines)


def run(settings: Mapping[str, Setting], lab: Lab) -> Outcome:
    """Count for every stack."""
    recipe = catalog.recipe(str(settings["recipe"]))
    requests = int(settings["requests"])  # type: ignore[arg-type]
    facts: dict[str, Fact] = {}
    parts = []
    for name in stacks_of(settings):
        served = Served(name, recipe, environment_of(name, settings, lab), under=with_counting)
        few, many = counts(served, lab, FIRST), counts(served, lab, FIRST + requests)
        for what in ("callbacks", "timers", "futures"):
            facts[f"{what}_per_request.{name}"] = (many[what] - few[what]) / requests
        parts.append(f"{name} {facts[f'callbacks_per_request.{name}']:.1f}")
    sentence = f"Callbacks through the scheduler per request of {recipe.name}: {', '.join(parts)}."
    return Outcome(facts, sentence)


experiment = Kind(
    "scheduler-hops",
    "how often does a request pass the event loop's scheduler?",
    run,
    {**VERSIONS, "stacks": ("tornado", "tornado-gen", "aiohttp"), "recipe": "chain-125ms", "requests": 40},
    deadline_s=240.0,
)

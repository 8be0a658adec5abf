"""Whether looking a name up stops everything else on the event loop, by client and, for Tornado, by resolver."""

from collections.abc import Mapping

from velodrome.model.claim import Fact, Setting
from velodrome.run.experiments.experiment import Kind, Outcome
from velodrome.run.experiments.programs import VERSIONS, environment_of, run_program
from velodrome.run.lab import Lab

PROGRAM = "velodrome.guest.experiments.blocked_loop"
TRIED = {
    "tornado": ("tornado", "tornado", ""),
    "tornado-blocking": ("tornado", "tornado", "tornado.netutil.BlockingResolver"),
    "aiohttp": ("aiohttp", "aiohttp", ""),
}
"""What it is called in the facts: stack whose environment it runs in, client, resolver."""


def run(settings: Mapping[str, Setting], lab: Lab) -> Outcome:
    """Look a slow name up with each client, with a heartbeat on the same loop."""
    name_s = float(settings["name_ms"]) / 1000  # type: ignore[arg-type]
    facts: dict[str, Fact] = {}
    for called, (stack, client, resolver) in TRIED.items():
        made = environment_of(stack, settings, lab)
        arguments = ("resolver", f"--client={client}", f"--resolver={resolver}", f"--seconds={name_s}")
        facts[f"blocked_ms.{called}"] = run_program(made, lab, PROGRAM, *arguments)["blocked_s"] * 1000
    blocked = ", ".join(f"{called} {facts[f'blocked_ms.{called}']:.0f} ms" for called in TRIED)
    return Outcome(facts, f"While a name took {name_s:g} s the loop stood still for: {blocked}.")


experiment = Kind(
    "blocked-resolver",
    "does looking a name up stop the event loop?",
    run,
    {**VERSIONS, "name_ms": 1000},
)

"""What a client's time-out does not cover: the name, the connection, or the answer.

Facts are seconds until a call that was given `timeout_ms` failed, by slowness and client: `dns_s.urllib3`.
"""

from collections.abc import Mapping

from velodrome.model.claim import Fact, Setting
from velodrome.run.experiments.experiment import Kind, Outcome, stacks_of
from velodrome.run.experiments.programs import VERSIONS, environment_of, run_program
from velodrome.run.lab import Lab

PROGRAM = "velodrome.guest.experiments.client_timeouts"
LATE = 1.5
"""A call that takes this many times its time-out was not bounded by it."""
NAMES = {"dns": "looking the name up", "connect": "connecting", "silence": "waiting for the answer"}


def run(settings: Mapping[str, Setting], lab: Lab) -> Outcome:
    """Try all clients that the stacks' environments have."""
    timeout_s = float(settings["timeout_ms"]) / 1000  # type: ignore[arg-type]
    name_s = float(settings["name_ms"]) / 1000  # type: ignore[arg-type]
    limit_s = name_s + 4 * timeout_s
    facts: dict[str, Fact] = {}
    missed: list[str] = []
    for name in stacks_of(settings):
        arguments = (f"--timeout={timeout_s}", f"--limit={limit_s}", f"--slow-name={name_s}")
        found = run_program(environment_of(name, settings, lab), lab, PROGRAM, *arguments)
        for client, row in found.items():
            for slowness, words in NAMES.items():
                seconds = row[slowness]
                facts[f"{slowness}_s.{client}"] = seconds
                facts[f"{slowness}_covered.{client}"] = seconds is not None and seconds <= LATE * timeout_s
                if not facts[f"{slowness}_covered.{client}"]:
                    missed.append(f"{client} {words}")
    several = "; ".join(dict.fromkeys(missed)) or "nothing"
    return Outcome(facts, f"A time-out of {timeout_s:g} s does not cover: {several}.")


experiment = Kind(
    "client-timeouts",
    "what does a client's time-out not cover?",
    run,
    {**VERSIONS, "stacks": ("tornado", "aiohttp", "waitress"), "timeout_ms": 500, "name_ms": 2000},
    deadline_s=120.0,
)

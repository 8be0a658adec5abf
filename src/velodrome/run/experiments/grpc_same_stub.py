"""R7: one stub on a blocking and on an awaiting channel of grpcio, and what the channel's options do on each.

Facts by kind of channel, `blocking` and `aio`; what each means stands in `guest/experiments/grpc_same_stub.py`.
"""

from collections.abc import Mapping

from velodrome.model.claim import Fact, Setting
from velodrome.run.experiments.experiment import Kind, Outcome
from velodrome.run.experiments.programs import VERSIONS, environment_of, run_program
from velodrome.run.lab import Lab

PROGRAM = "velodrome.guest.experiments.grpc_same_stub"
CHANNELS = {"blocking": "a grpc.Channel", "aio": "a grpc.aio.Channel"}
OPTIONS = {
    "lb_policy_name": ("servers_pick_first", "servers_round_robin"),
    "enable_retries": ("ended_with_retries", "ended_without_retries"),
    "keepalive_timeout_ms": ("stalled_keepalive_timeout",),
}
"""By option (`grpc.…`), the facts that show what it does."""


def run(settings: Mapping[str, Setting], lab: Lab) -> Outcome:
    """Run the program, and say in what the two kinds of channel differ."""
    found = run_program(environment_of(str(settings["stack"]), settings, lab), lab, PROGRAM)
    blocking, aio = found["blocking"], found["aio"]
    facts: dict[str, Fact] = {f"{fact}.{kind}": row[fact] for kind, row in found.items() for fact in row}
    for option, effects in OPTIONS.items():
        facts[f"same.{option}"] = all(blocking[effect] == aio[effect] for effect in effects)
    heeded = {kind: row["stalled_keepalive_timeout"] == "UNAVAILABLE" for kind, row in found.items()}
    facts |= {f"keepalive_timeout_heeded.{kind}": yes for kind, yes in heeded.items()}
    parts = [f"a call on {CHANNELS[kind]} is {_awaitable(row['awaitable'])}" for kind, row in found.items()]
    differ = [option for option in OPTIONS if not facts[f"same.{option}"]]
    parts.append(f"they differ in {', '.join(differ)}" if differ else "their options do the same")
    if not any(heeded.values()):
        parts.append("keepalive_timeout_ms does nothing on either")
    return Outcome(facts, f"One stub: {'; '.join(parts)}.")


def _awaitable(yes: bool) -> str:
    return "awaitable" if yes else "not awaitable"


experiment = Kind(
    "grpc-same-stub",
    "is one stub blocking or awaitable as its channel is, and do the channel's options do the same?",
    run,
    {**VERSIONS, "stack": "grpc-threads"},
    deadline_s=90.0,
)

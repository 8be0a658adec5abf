"""What a switch costs in CPU time: of generators, greenlets, tasks of asyncio, threads and processes.

Facts by kind of switch (`guest/experiments/switch_kinds.py` tells how each is done): `ns.KIND` is the median of some
repeats, `low_ns.KIND` and `high_ns.KIND` the quartiles, `times.KIND` the median over that of a generator. Then, by
kind of flow, `interrupted.KIND`: whether a flow that works without a pause is made to let others work.
"""

from collections.abc import Mapping

from velodrome.model.claim import Fact, Setting
from velodrome.run.experiments.experiment import Kind, Outcome
from velodrome.run.experiments.programs import VERSIONS, environment_of, run_program
from velodrome.run.lab import Lab

PROGRAM = "velodrome.guest.experiments.switch_cost"
LIMIT_S = 100.0
CHEAPEST = "generator"


def run(settings: Mapping[str, Setting], lab: Lab) -> Outcome:
    """Measure them all on one CPU."""
    made = environment_of(str(settings["stack"]), settings, lab)
    repeats = f"--repeats={int(settings['repeats'])}"  # type: ignore[arg-type]
    found = run_program(made, lab, PROGRAM, repeats, f"--cpu={lab.cpus[0]}", limit_s=LIMIT_S)
    facts: dict[str, Fact] = {}
    for kind, row in found["switches"].items():
        for name in ("ns", "low_ns", "high_ns"):
            facts[f"{name}.{kind}"] = row[name] if row else None
        facts[f"times.{kind}"] = row["ns"] / found["switches"][CHEAPEST]["ns"] if row else None
    facts |= {f"interrupted.{kind}": seen for kind, seen in found["interrupted"].items()}
    told_kinds = {kind: row["ns"] for kind, row in found["switches"].items() if row}
    parts = [f"{kind} {_time(ns)}" for kind, ns in sorted(told_kinds.items(), key=lambda item: item[1])]
    return Outcome(facts, f"CPU time of a switch: {', '.join(parts)}.")


def _time(ns: float) -> str:
    return f"{ns / 1000:.2f} us" if ns >= 1000 else f"{ns:.0f} ns"


experiment = Kind(
    "switch-cost",
    "what does it cost to switch between threads, tasks, greenlets, generators and processes?",
    run,
    {**VERSIONS, "stack": "io-greenlets", "repeats": 9},
    deadline_s=120.0,
)

"""How late an event loop gets with many tasks on it although the CPU is not busy.

Each task sleeps `period_ms` and wakes; their number grows tenfold from `fewest` to `most`.
"""

from collections.abc import Mapping

from velodrome.model.claim import Fact, Setting
from velodrome.model.errors import BadOptionError
from velodrome.run.experiments.experiment import Kind, Outcome
from velodrome.run.experiments.programs import VERSIONS, environment_of, run_program
from velodrome.run.lab import Lab

PROGRAM = "velodrome.guest.experiments.blocked_loop"


def run(settings: Mapping[str, Setting], lab: Lab) -> Outcome:
    """Measure each crowd."""
    made = environment_of(str(settings["stack"]), settings, lab)
    period_s = float(settings["period_ms"]) / 1000  # type: ignore[arg-type]
    tasks, most = int(settings["fewest"]), int(settings["most"])  # type: ignore[arg-type]
    if tasks < 1:
        raise BadOptionError("fewest", str(tasks), "at least 1 is needed")
    facts: dict[str, Fact] = {}
    parts = []
    while tasks <= most:
        found = run_program(made, lab, PROGRAM, "crowd", f"--tasks={tasks}", f"--period={period_s}")
        for fact in ("late_p50_ms", "late_p99_ms", "cpu_share"):
            facts[f"{fact}.{tasks}"] = found[fact]
        parts.append(f"{tasks} tasks {found['late_p99_ms']:.1f} ms at {found['cpu_share']:.0%} of a CPU")
        tasks *= 10
    return Outcome(
        facts, f"A timer beside tasks that wake every {period_s:g} s was late at p99 by: {', '.join(parts)}."
    )


experiment = Kind(
    "crowded-loop",
    "how late is an event loop with many tasks on it?",
    run,
    {**VERSIONS, "stack": "aiohttp", "period_ms": 1000, "fewest": 100, "most": 10_000},
)

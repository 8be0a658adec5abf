"""What a generated handler costs beside a hand-written one: `hello`, per interface, in process.

.venv/bin/python benchmarks/handlers.py [interface ...]

interface          hand-written    ours / hand-written  middle half
wsgi                    0.31 us    1.00                 0.99 - 1.01
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from hand_written import UNWRITTEN

from velodrome.guest import catalog
from velodrome.run.environments import environment, guest_tree

INSIDE = Path(__file__).with_name("hand_written.py")


def measured(interface: str) -> tuple[float, list[float]] | str:
    """Return microseconds of the hand-written handler and the ratios; or why there are none."""
    serving = [stack for stack in catalog.stacks().values() if stack.interface == interface]
    runnable = [stack for stack in serving if environment.available(stack) is None]
    if not runnable:
        return "no stack that serves it can run here"
    python = environment.environment_for(runnable[0]).python
    env = {"PYTHONPATH": str(guest_tree.export()), "PATH": os.environ["PATH"], "PYTHONNOUSERSITE": "1"}
    done = subprocess.run(
        [str(python), "-P", str(INSIDE), interface], env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    found = json.loads(done.stdout)
    return found["hand_us"], found["ratios"]


def main() -> None:
    names = sys.argv[1:] or sorted(catalog.interfaces())
    print(f"{'interface':<18} {'hand-written':>12}    {'ours / hand-written':<20} middle half")
    failed = False
    for name in names:
        found = measured(name)
        if isinstance(found, str):
            print(f"{name:<18} {found}")
            failed |= found != UNWRITTEN
            continue
        hand_us, ratios = found
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(f"{name:<18} {hand_us:>9.2f} us    {middle:<20.2f} {low:.2f} - {high:.2f}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()

"""An experiment that does what it is set to: answer, hang, crash, print, or leave processes behind."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping

from velodrome.model.claim import Fact, Setting
from velodrome.model.errors import UsageError
from velodrome.run.experiments.experiment import Kind, Outcome
from velodrome.run.lab import Lab


def run(settings: Mapping[str, Setting], lab: Lab) -> Outcome:
    does = settings["does"]
    print(f"about to {does}")
    if does == "hang":
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
        )
        print(f"child {child.pid}", flush=True)
        time.sleep(600)
    if does == "crash":
        raise ZeroDivisionError("by naught")
    if does == "refuse":
        raise UsageError("it cannot be tried here. Try it elsewhere")
    if does == "vanish":
        os._exit(7)
    facts: dict[str, Fact] = {
        "stacks": float(len(lab.stacks)),
        "cpus": ",".join(map(str, lab.cpus)),
        "times": settings["times"] if isinstance(settings["times"], int) else None,
        "not_a_number": float("nan"),
        "names": "+".join(settings["stacks"]) if isinstance(settings["stacks"], tuple) else None,
        "fine": True,
    }
    return Outcome(facts, "It answered.", ("the last line",))


experiment = Kind("made", "does it do as told?", run, {"does": "answer", "times": 1, "stacks": ()}, 20.0)

"""Runs one experiment to its finding, whatever it does: a hang, a crash and a refusal are findings too."""

import json
import os
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import IO, Any

from velodrome.guest.client import variable
from velodrome.model.claim import Experiment, Finding, Setting
from velodrome.model.errors import VelodromeError
from velodrome.model.quantity import short
from velodrome.run import faults
from velodrome.run.experiments import process
from velodrome.run.experiments.choosing import choose
from velodrome.run.experiments.experiment import Kind
from velodrome.run.lab import Lab
from velodrome.run.supervision.python import own
from velodrome.run.supervision.ward import Exit, Order, Ward

MODULE = "velodrome.run.experiments.process"
STOP_S = 2.0
"""From SIGTERM to SIGKILL for an experiment that did not end: it has nothing left to say."""


def run_experiment(experiment: Experiment, lab: Lab, kind: Kind | None = None) -> Finding:
    """Return what an experiment came to; raises nothing but KeyboardInterrupt. `kind`: where it is known."""
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    try:
        kind = kind or choose(experiment.kind)
        deadline_s = experiment.deadline_s or kind.deadline_s
        settings = {**kind.defaults, **experiment.settings}
        with tempfile.TemporaryFile() as output:
            ended, lines = _bounded(kind, settings, lab, deadline_s, output)
            said = _said(output)
    except Exception as error:  # this machine refuses something, or it is a bug: of this experiment alone
        lines = error.last_lines if isinstance(error, VelodromeError) else ()
        return Finding(experiment, started_at, failed=faults.sentence(error), last_lines=lines)
    if said and "outcome" in said:
        outcome = said["outcome"]
        told = (outcome["facts"], outcome["sentence"])
        return Finding(experiment, started_at, *told, last_lines=tuple(outcome["last_lines"]))
    if said:
        last = tuple(said.get("last_lines", ())) or lines
        return Finding(experiment, started_at, failed=said["failed"], last_lines=last)
    if ended is None:
        sentence = f"It was still running after {short(deadline_s)} s, its deadline, and was ended."
        return Finding(experiment, started_at, {"timed_out": True}, sentence, last_lines=lines)
    reason = (
        f"its process ended without a word ({ended.sentence}); run it again, and tell us if it does it again"
    )
    return Finding(experiment, started_at, failed=reason, last_lines=lines)


def _bounded(
    kind: Kind, settings: Mapping[str, Setting], lab: Lab, deadline_s: float, output: IO[bytes]
) -> tuple[Exit | None, tuple[str, ...]]:
    """Run it until it ends or its deadline has passed; return how it ended, if it did, and its last lines."""
    begun = own(MODULE)
    environment = {**begun.env, process.TASK_VARIABLE: process.task(kind, settings, lab)}
    # In the environment, not in the arguments: every user can read those, and a URL may hold a password.
    environment |= {variable(name): url for name, url in lab.databases.items()}
    with Ward(Order(begun.argv, environment, cwd=os.getcwd()), stdout=output.fileno()) as ward:
        ended = ward.wait(deadline_s)
        ward.stop(STOP_S)
        return ended, ward.tail.lines()


def _said(output: IO[bytes]) -> dict[str, Any] | None:
    output.seek(0)
    try:
        found = json.loads(output.read())
    except ValueError:
        return None
    return found if isinstance(found, dict) else None

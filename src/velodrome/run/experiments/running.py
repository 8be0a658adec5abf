"""Runs one experiment to its finding, whatever it does: a hang, a crash and a refusal are findings too.

`run_experiment` starts this file as a process, `python -m velodrome.run.experiments.running`, with its task in the
environment, under a warden, so that nothing the experiment starts outlives it. That process (`main`) writes one line of
JSON, `{"outcome": …}` or `{"failed": "why"}`; what the experiment itself prints goes to standard error.
"""

import json
import math
import os
import sys
import tempfile
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from velodrome.guest import catalog
from velodrome.guest.client import variable
from velodrome.model.claim import Experiment, Fact, Finding, Setting
from velodrome.model.errors import VelodromeError
from velodrome.model.quantity import short
from velodrome.run import faults
from velodrome.run.account import account_for, acting, acting_as
from velodrome.run.experiments.experiment import Kind, Outcome, kind_of
from velodrome.run.lab import Lab
from velodrome.run.machine.limits import Hierarchy
from velodrome.run.supervision.python import own
from velodrome.run.supervision.ward import Exit, Order, Ward

MODULE = "velodrome.run.experiments.running"
TASK_VARIABLE = "VELODROME_EXPERIMENT"
"""Not an argument: addresses of databases hold passwords, and everybody may read arguments."""
STOP_S = 2.0
"""From SIGTERM to SIGKILL for an experiment that did not end: it has nothing left to say."""


def run_experiment(experiment: Experiment, lab: Lab, kind: Kind | None = None) -> Finding:
    """Return what an experiment came to; raises nothing but KeyboardInterrupt. `kind`: where it is known."""
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    try:
        kind = kind or kind_of(experiment.kind)
        deadline_s = experiment.deadline_s or kind.deadline_s
        settings = {**kind.defaults, **experiment.settings}
        with tempfile.TemporaryFile() as output:
            ended, lines = _run_bounded(kind, settings, lab, deadline_s, output)
            report = _report(output)
    except Exception as error:  # this machine refuses something, or it is a bug: of this experiment alone
        lines = error.last_lines if isinstance(error, VelodromeError) else ()
        return Finding(experiment, started_at, failed=faults.sentence(error), last_lines=lines)
    if report and "outcome" in report:
        outcome = report["outcome"]
        found = (outcome["facts"], outcome["sentence"])
        return Finding(experiment, started_at, *found, last_lines=tuple(outcome["last_lines"]))
    if report:
        last = tuple(report.get("last_lines", ())) or lines
        return Finding(experiment, started_at, failed=report["failed"], last_lines=last)
    if ended is None:
        sentence = f"It was still running after {short(deadline_s)} s, its deadline, and was ended."
        return Finding(experiment, started_at, {"timed_out": True}, sentence, last_lines=lines)
    reason = (
        f"its process ended without a word ({ended.sentence}); run it again, and tell us if it does it again"
    )
    return Finding(experiment, started_at, failed=reason, last_lines=lines)


def _run_bounded(
    kind: Kind, settings: Mapping[str, Setting], lab: Lab, deadline_s: float, output: IO[bytes]
) -> tuple[Exit | None, tuple[str, ...]]:
    """Run it until it ends or its deadline has passed; return how it ended, if it did, and its last lines."""
    begun = own(MODULE)
    environment = {**begun.env, TASK_VARIABLE: task(kind, settings, lab)}
    # In the environment, not in the arguments: every user can read those, and a URL may hold a password.
    environment |= {variable(name): url for name, url in lab.databases.items()}
    with Ward(Order(begun.argv, environment, cwd=os.getcwd()), stdout=output.fileno()) as ward:
        ended = ward.wait(deadline_s)
        ward.stop(STOP_S)
        return ended, ward.tail.lines()


def _report(output: IO[bytes]) -> dict[str, Any] | None:
    output.seek(0)
    try:
        found = json.loads(output.read())
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def task(kind: Kind, settings: Mapping[str, Setting], lab: Lab) -> str:
    """Return what the process is to do, as JSON: the lab as far as it is plain data."""
    return json.dumps(
        {
            "module": kind.run.__module__,
            "settings": dict(settings),
            "extra": list(lab.extra),
            "guest_tree": str(lab.guest_tree),
            "cpus": list(lab.cpus),
            "where": {
                name: [hierarchy.version, str(hierarchy.parent)] for name, hierarchy in lab.where.items()
            },
            "databases": dict(lab.databases),
            "turn_ns": dict(lab.turn_ns),
            "start_seconds": lab.start_seconds,
            "stop_seconds": lab.stop_seconds,
            "user": account.name if (account := acting()) else "",
        }
    )


def main() -> int:
    """Carry the experiment out; exit status 0 if there is an outcome, else 3."""
    out = os.dup(1)
    os.dup2(2, 1)
    plain = json.loads(os.environ.pop(TASK_VARIABLE))
    try:
        kind: Kind = import_module(plain["module"]).experiment
        with acting_as(account_for(plain["user"]) if plain["user"] else None):
            found = kind.run(_settings(plain["settings"]), _lab(plain))
        answer: dict[str, Any] = {"outcome": _document(found)}
    except VelodromeError as error:
        answer = {"failed": error.sentence, "last_lines": error.last_lines}
    except Exception as error:
        traceback.print_exc()
        answer = {"failed": f"{type(error).__name__}: {error}"}
    os.write(out, json.dumps(answer).encode())
    return 0 if "outcome" in answer else 3


def _settings(plain: Mapping[str, Any]) -> dict[str, Setting]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}


def _lab(plain: Mapping[str, Any]) -> Lab:
    return Lab(
        catalog.stacks(plain["extra"]),
        Path(plain["guest_tree"]),
        cpus=tuple(plain["cpus"]),
        where={name: Hierarchy(version, Path(parent)) for name, (version, parent) in plain["where"].items()},
        databases=plain["databases"],
        turn_ns=plain["turn_ns"],
        start_seconds=plain["start_seconds"],
        stop_seconds=plain["stop_seconds"],
        extra=tuple(plain["extra"]),
    )


def _document(found: Outcome) -> dict[str, Any]:
    return asdict(found) | {"facts": {name: _plain(fact) for name, fact in found.facts.items()}}


def _plain(fact: Fact) -> Fact:
    """JSON knows neither NaN nor infinity: what is no number is not known. A count is a number like any other."""
    if isinstance(fact, bool) or not isinstance(fact, int | float):
        return fact
    return float(fact) if math.isfinite(fact) else None


if __name__ == "__main__":
    sys.exit(main())

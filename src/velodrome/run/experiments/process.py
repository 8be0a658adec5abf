"""The process one experiment runs in: `python -m velodrome.run.experiments.process`, its task in the environment.

Its standard output is one line of JSON, `{"outcome": …}` or `{"failed": "why"}`; what the experiment itself prints
goes to standard error. It runs under a warden, so that nothing it starts outlives it.
"""

import json
import math
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from velodrome.guest import catalog
from velodrome.model.claim import Fact, Setting
from velodrome.model.errors import VelodromeError
from velodrome.run.account import account_for, acting, acting_as
from velodrome.run.experiments.experiment import Kind, Outcome
from velodrome.run.lab import Lab
from velodrome.run.machine.limits import Hierarchy

TASK_VARIABLE = "VELODROME_EXPERIMENT"
"""Not an argument: addresses of databases hold passwords, and everybody may read arguments."""


def task(kind: Kind, settings: Mapping[str, Setting], lab: Lab) -> str:
    """Return what the process is to do, as JSON: the lab as far as it is plain data."""
    return json.dumps(
        {
            "module": kind.run.__module__,
            "settings": dict(settings),
            "extra": list(lab.extra),
            "guest_tree": str(lab.guest_tree),
            "cpus": list(lab.cpus),
            "where": {name: [one.version, str(one.parent)] for name, one in lab.where.items()},
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
        answer: dict[str, Any] = {"outcome": _told(found)}
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


def _told(found: Outcome) -> dict[str, Any]:
    return asdict(found) | {"facts": {name: _plain(fact) for name, fact in found.facts.items()}}


def _plain(fact: Fact) -> Fact:
    """JSON knows neither NaN nor infinity: what is no number could not be told. A count is a number like any other."""
    if isinstance(fact, bool) or not isinstance(fact, int | float):
        return fact
    return float(fact) if math.isfinite(fact) else None


if __name__ == "__main__":
    sys.exit(main())

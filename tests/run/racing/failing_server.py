"""Sessions of a server that fails as it is set to, and what they come to."""

import os
from dataclasses import replace
from pathlib import Path

import psutil
from tests.run import made
from tests.run.racing import short_race

from velodrome.guest.recipe import Recipe
from velodrome.model.load import Closed, Limits, Load
from velodrome.model.measurement import Failed, FlagKind, Measurement
from velodrome.model.results import Result
from velodrome.model.trial import Contestant, Session, Trial
from velodrome.run.lab import Lab
from velodrome.run.machine.limits import hierarchies
from velodrome.run.supervision import scratch

SHORT = Load(Closed(1), duration_s=0.3)
LONGER = Load(Closed(2), duration_s=0.3)


def hostile_lab() -> Lab:
    """A lab with that server, and with control groups where they can be had."""
    return replace(short_race.lab(), where=hierarchies(), start_seconds=10.0, stop_seconds=0.5)


def trials(does: str, *loads: Load, recipe: Recipe = made.HELLO, limits: Limits | None = None) -> Session:
    contestant = Contestant("hostile", {"does": does})
    return Session(
        tuple(
            Trial("study", recipe.name, recipe, contestant, load, limits or Limits(), 0)
            for load in loads or (SHORT,)
        )
    )


def only(results: list[Result]) -> Result:
    assert len(results) == 1
    return results[0]


def failure(results: list[Result]) -> Failed:
    result = only(results)
    assert isinstance(result, Failed), result
    return result


def kinds(result: Result) -> list[FlagKind]:
    assert isinstance(result, Measurement), result
    return [flag.kind for flag in result.flags]


def servers_of(velodrome: int) -> list[int]:
    """Return the processes whose home is a scratch folder of that velodrome."""
    found = []
    for process in psutil.process_iter():
        try:
            if f"velodrome-{velodrome}-" in process.environ().get("HOME", ""):
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def scratch_folders() -> list[Path]:
    return list(scratch.home().folder.glob("server-*"))


def nothing_left() -> None:
    """Refuse what a session has left behind."""
    assert servers_of(os.getpid()) == []
    assert scratch_folders() == []

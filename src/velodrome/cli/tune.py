"""`velodrome tune`: which stack with which settings to deploy for one service, within limits."""

import json
import sys
from fnmatch import fnmatchcase
from typing import Annotated

import typer

from velodrome.cli import _serving_options as serving
from velodrome.cli._condition_options import CANNOT_TELL, FAILED
from velodrome.guest import catalog
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack
from velodrome.judge.search.holding import Demands
from velodrome.model.errors import BadOptionError, UnknownNameError, UsageError
from velodrome.model.load import Closed, Load
from velodrome.model.trial import Contestant, Trial
from velodrome.model.tuning import Candidate, Goal, Told, TuneEnding
from velodrome.report import tune_text
from velodrome.run.environments import guest_tree
from velodrome.run.lab import Lab
from velodrome.track import tuning
from velodrome.track.tuning import Asked

NAME = "tune"
DEPLOYED = ("wsgi", "asgi")
"""Interfaces by which a recipe is tuned, unless stacks are named: apps are written to these."""


class Follower:
    """Tells each load on a line of standard error."""

    def __init__(self) -> None:
        self._number = 0

    def preparing(self, text: str) -> None:
        """Tell what is done before the first load."""
        print(f"      {text}", file=sys.stderr, flush=True)

    def told(self, candidate: Candidate, told: Told) -> None:
        """Tell a load."""
        self._number += 1
        print(tune_text.asked(candidate, told, self._number), file=sys.stderr, flush=True)


def command(
    recipe: serving.RecipeName,
    slo: serving.Slo = None,
    rate: Annotated[
        float | None, typer.Option("-R", "--rate", help="Requests per second to carry, with the least CPU.")
    ] = None,
    wanted: Annotated[
        Goal | None, typer.Option("--for", help="What is wanted: capacity; with --rate cpu or memory.")
    ] = None,
    stack: Annotated[
        list[str] | None, typer.Option(help="Only these stacks; * and ? allowed; repeatable.")
    ] = None,
    cpus: serving.Cpus = None,
    memory: serving.Memory = "",
    python: serving.Python = "",
    budget: Annotated[str, typer.Option(help="Time to measure in.")] = "10m",
    wait: serving.Wait = False,
    as_json: serving.AsJson = False,
) -> None:
    """Search stack, workers, threads and loop for the most capacity at the SLO, or the least that carries a rate."""
    goal = _goal(wanted, rate)
    served = serving.recipe(recipe)
    stacks = catalog.stacks()
    trial = Trial(
        NAME,
        served.name,
        served,
        Contestant(""),
        Load(Closed(1), 1.0),
        serving.limits(cpus, memory),
        0,
        python,
    )
    asked = Asked(
        trial,
        _chosen(served, list(stacks.values()), stack or []),
        goal,
        Demands(must=serving.conditions(slo)),
        rate or 0.0,
        serving.seconds("--budget", budget),
    )
    found = tuning.tune(asked, Lab(stacks, guest_tree.export(())), Follower(), None if wait else 0.0)
    print(json.dumps(tune_text.document(found)) if as_json else "\n".join(tune_text.lines(found)))
    ending = found.tuned.ending
    sys.exit({TuneEnding.SETTLED: 0, TuneEnding.NEVER: FAILED}.get(ending, CANNOT_TELL))


def _goal(wanted: Goal | None, rate: float | None) -> Goal:
    if rate is not None and rate <= 0:
        raise BadOptionError("--rate", f"{rate:g}", "give requests per second above 0")
    goal = wanted or (Goal.CPU if rate else Goal.CAPACITY)
    if goal is Goal.CAPACITY and rate:
        raise UsageError(
            "--for capacity searches the rate: leave --rate out, or say --for cpu or --for memory"
        )
    if goal is not Goal.CAPACITY and not rate:
        raise UsageError(f"--for {goal.value} needs the rate that is to be carried: --rate 300")
    return goal


def _chosen(served: Recipe, stacks: list[Stack], names: list[str]) -> tuple[Stack, ...]:
    """Return the stacks that are tried. Raises UnknownNameError, UsageError."""
    if names:
        for name in names:
            if not any(fnmatchcase(one.name, name) for one in stacks):
                raise UnknownNameError("stack", name, [one.name for one in stacks])
        stacks = [one for one in stacks if any(fnmatchcase(one.name, name) for name in names)]
    else:
        stacks = [*tuning.servers_of(stacks, DEPLOYED)]
    able = tuple(one for one in stacks if catalog.serves(one, served) is None)
    if not able:
        why = catalog.serves(stacks[0], served)
        raise UsageError(f"none of these stacks can serve {served.name}: {why}")
    return able


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(NAME)(command)

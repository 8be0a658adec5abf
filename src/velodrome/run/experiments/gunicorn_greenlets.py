"""Whether gunicorn's worker patches the standard library, and how many requests one worker serves at once."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from velodrome.guest.recipe import Body, Recipe
from velodrome.model.claim import Fact, Setting
from velodrome.run.experiments.experiment import Kind, Outcome, stacks_of
from velodrome.run.experiments.programs import VERSIONS, Served, ask, environment_of, serve
from velodrome.run.lab import Lab

APP = "velodrome.guest.experiments.greenlet_pool:app"
NOTHING = Recipe("who-serves", "tells who serves it", (Body(0),))


def run(settings: Mapping[str, Setting], lab: Lab) -> Outcome:
    """Ask many times at once and read what the workers tell."""
    workers, requests = int(settings["workers"]), int(settings["requests"])  # type: ignore[arg-type]
    facts: dict[str, Fact] = {}
    parts = []
    for name in stacks_of(settings):
        served = Served(name, NOTHING, environment_of(name, settings, lab), APP, {"workers": workers})
        with serve(served, lab) as server, ThreadPoolExecutor(requests) as pool:
            answering = [pool.submit(ask, server) for _ in range(requests)]
            answers = [json.loads(future.result()[0]) for future in answering]
        facts[f"patched.{name}"] = all(all(answer["patched"].values()) for answer in answers)
        facts[f"at_once.{name}"] = float(max(answer["at_once"] for answer in answers))
        facts[f"workers.{name}"] = float(len({answer["pid"] for answer in answers}))
        facts[f"in_greenlets.{name}"] = all(
            answer["greenlet"] not in ("NoneType", "greenlet") for answer in answers
        )
        patched = "patched" if facts[f"patched.{name}"] else "not patched"
        parts.append(f"{name} {patched}, at most {facts[f'at_once.{name}']:g} at once in a worker")
    return Outcome(facts, f"Of {requests} requests at once: {'; '.join(parts)}.")


experiment = Kind(
    "gunicorn-greenlets",
    "does gunicorn patch the standard library, and does a worker serve many requests at once?",
    run,
    {**VERSIONS, "stacks": ("gunicorn-gevent", "gunicorn-sync"), "workers": 2, "requests": 20},
)

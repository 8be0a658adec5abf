"""The canary: a marker of a request is lost where requests share its place, and nowhere else."""

import pytest

from velodrome.guest import catalog
from velodrome.guest.recipe import Body, Keep, ReadBody, Recipe
from velodrome.model.claim import Experiment, Finding, Setting
from velodrome.run.environments import guest_tree
from velodrome.run.experiments.running import run_experiment
from velodrome.run.lab import Lab

KEEPING = Recipe("x", "x", (ReadBody(), Keep(), Body(2)), "POST", 12)
SHARES_NOTHING = {"processes", "sync", "threads"}
"""What serves one request at a time in each thread: a place of the thread's is a place of the request's."""


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab(catalog.stacks(), guest_tree.export([]))


def found(lab: Lab, **settings: Setting) -> Finding:
    few: dict[str, Setting] = {"requests": 60, "connections": 12, **settings}
    finding = run_experiment(Experiment("one", "canary", few, deadline_s=100.0), lab)
    assert finding.failed == "", (finding.failed, finding.last_lines)
    return finding


def lost(finding: Finding, place: str, stack: str) -> float:
    value = finding.facts[f"lost.{place}.{stack}"]
    assert isinstance(value, float), finding.facts
    return value


@pytest.mark.parametrize("stack", ["gunicorn-gthread", "gunicorn-gevent", "uvicorn", "grpc-aio"])
def test_a_marker_is_lost_where_requests_share_its_place(lab: Lab, stack: str) -> None:
    finding = found(lab, stacks=(stack,))
    assert lost(finding, "global", stack) > 0, "no two requests overlapped"
    assert lost(finding, "context-local", stack) == 0
    on_a_loop = lab.stacks[stack].concurrency == "tasks"
    assert (lost(finding, "thread-local", stack) > 0) == on_a_loop
    if stack == "gunicorn-gevent":
        assert lost(finding, "greenlet-local", stack) == 0
        assert lost(finding, "thread-local-unpatched", stack) > 0
    assert f"global: lost in {stack}" in finding.sentence
    assert f"context-local: kept in {stack}" in finding.sentence


def test_one_request_at_a_time_loses_nothing_wherever_it_keeps_it(lab: Lab) -> None:
    finding = found(lab, stacks=("gunicorn-sync",), places=("global",))
    assert finding.facts == {"requests.gunicorn-sync": 50.0, "lost.global.gunicorn-sync": 0.0}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "stack", [name for name, stack in catalog.stacks().items() if catalog.serves(stack, KEEPING) is None]
)
def test_every_stack_keeps_a_marker_where_its_requests_do_not_share(lab: Lab, stack: str) -> None:
    finding = found(lab, stacks=(stack,), places=("global", "thread-local", "context-local"))
    if lab.stacks[stack].concurrency in SHARES_NOTHING:
        assert lost(finding, "thread-local", stack) == 0
    if lab.stacks[stack].concurrency == "tasks":
        assert lost(finding, "thread-local", stack) > 0
        assert lost(finding, "context-local", stack) == 0

"""Trials whose recipe queries a database: it runs beside the server and is reported; without it its trials fail."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.run.link.possible import NEEDS_LINK

from velodrome.guest import catalog
from velodrome.guest.recipe import Body, Query, Recipe, Write
from velodrome.model.load import Closed, Limits, Link, Load
from velodrome.model.measurement import Failed, FailureKind, FlagKind, Measurement
from velodrome.model.trial import Contestant, Session, Trial
from velodrome.run.environments import guest_tree
from velodrome.run.lab import Lab
from velodrome.run.racing.session import run_alone

QUERYING = Recipe("asking", "asks Redis", (Query(3, "redis"), Write(1, "redis"), Body(84)))
SHORT = Load(Closed(4), 0.3)


def session(recipe: Recipe, stack: str = "uvicorn-h11") -> Session:
    return Session((Trial("study", "q", recipe, Contestant(stack), SHORT, Limits(), 0),))


@pytest.fixture
def lab() -> Lab:
    return Lab(catalog.stacks(), guest_tree.export())


def test_the_database_runs_beside_the_server_and_what_it_used_is_reported(lab: Lab) -> None:
    (result,) = run_alone(session(QUERYING), lab)
    if isinstance(result, Failed) and "is not available" in result.reason:
        pytest.skip(result.reason)
    assert isinstance(result, Measurement), result
    assert result.load.ok > 0
    (redis,) = result.companions
    assert redis.name == "redis"
    assert redis.version[0].isdigit()
    assert redis.cpu_s is not None
    assert 0 <= redis.cpu_s < 0.5
    assert {"redis", "uvicorn"} <= set(result.packages)


def test_a_third_party_over_grpc_is_started_as_well(lab: Lab) -> None:
    (result,) = run_alone(session(catalog.recipe("greeting-200ms"), "starlette-uvicorn-grpc"), lab)
    assert isinstance(result, Measurement), result
    assert result.load.ok > 0
    (peer,) = result.companions
    assert (peer.name, peer.version.split()[0]) == ("grpc", "grpcio")


def test_a_missing_database_is_a_row_that_says_so(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VELODROME_MONGODB", raising=False)
    recipe = Recipe("asking", "asks MongoDB", (Query(3, "mongodb"), Body(84)))
    (result,) = run_alone(session(recipe), lab)
    assert isinstance(result, Failed)
    assert result.failure is FailureKind.UNAVAILABLE
    assert "MongoDB is not available" in result.reason
    assert "--database mongodb=" in result.reason


def test_a_server_for_another_recipe_has_no_client_of_a_database(lab: Lab) -> None:
    stack = lab.stacks["uvicorn-h11"]
    hello = lab.environment(stack, None, {}, catalog.recipe("hello"))
    querying = lab.environment(stack, None, {}, QUERYING)
    assert set(querying.packages) > set(hello.packages)
    assert "redis" not in hello.packages
    assert Path(hello.python) != Path(querying.python)


@NEEDS_LINK
def test_behind_a_link_a_database_of_ours_is_queried_and_one_outside_is_not(lab: Lab) -> None:
    (trial,) = session(QUERYING).trials
    far = Session((replace(trial, link=Link(2.0)),))
    (result,) = run_alone(far, lab)
    if isinstance(result, Failed) and "is not available" in result.reason:
        pytest.skip(result.reason)
    assert isinstance(result, Measurement), result
    assert result.load.ok > 0
    (result,) = run_alone(far, replace(lab, databases={"redis": "redis://127.0.0.1:6379/0"}))
    assert isinstance(result, Failed)
    assert result.failure is FailureKind.UNAVAILABLE
    assert "reaches only what velodrome starts itself; leave out the link, or the URL" in result.reason


@pytest.mark.measured
def test_a_database_that_uses_up_its_cpus_sets_the_figures_aside(lab: Lab) -> None:
    recipe = Recipe("heavy", "changes every row", (Write(4096, "postgresql"), Body(84)))
    load = Load(Closed(8), 2.0, warmup_s=0.5)
    trial = Trial("study", "q", recipe, Contestant("uvicorn-h11"), load, Limits(), 0)
    (result,) = run_alone(Session((trial,)), lab)
    if isinstance(result, Failed) and "is not available" in result.reason:
        pytest.skip(result.reason)
    assert isinstance(result, Measurement), result
    raised = {flag.kind: flag for flag in result.flags}
    if FlagKind.OTHER_LOAD in raised and FlagKind.COMPANION_SATURATED not in raised:
        pytest.skip(f"the database did not get its CPU: {raised[FlagKind.OTHER_LOAD].sentence}")
    flag = raised[FlagKind.COMPANION_SATURATED]
    assert flag.facts["most"] == "postgresql"
    assert not result.valid

"""The plan of a race says before anything is started what will be, where, within which limits and in which order."""

import json
import os
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.run.racing import short_race
from tests.run.racing.short_race import CALLS, lab, sessions, study

from velodrome.model.errors import LimitError
from velodrome.model.load import Limits, Link
from velodrome.model.trial import Session
from velodrome.run.lab import Lab
from velodrome.run.machine.limits import Hierarchy
from velodrome.run.racing.plan import RunPlan, plan_of, plan_session, seat
from velodrome.run.racing.race import Race, plan_of_race


@pytest.fixture(autouse=True)
def _lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VELODROME_LOCK", str(tmp_path / "lock"))


def two_cpus(where: dict[str, Hierarchy] | None = None) -> Lab:
    return replace(lab(), cpus=(0, 1), where=where or {})


def with_link(session: Session) -> Session:
    return Session(tuple(replace(trial, link=Link(40.0)) for trial in session.trials))


def whole() -> RunPlan:
    planned = study(CALLS, blocks=2, budget_s=60.0)
    first, *rest = sessions(planned, Limits(1, 512_000_000))
    race = Race(planned, (with_link(first), *rest), Path("out"))
    return plan_of_race(race, two_cpus(), lambda session: 2.0 * len(session.trials))


def test_a_plan_is_made_without_starting_anything(tmp_path: Path) -> None:
    before = {child.pid for child in psutil.Process(os.getpid()).children(recursive=True)}
    plan = whole()
    assert {child.pid for child in psutil.Process(os.getpid()).children(recursive=True)} == before
    assert not (tmp_path / "lock").exists()
    assert plan.lock == str(tmp_path / "lock")


def test_it_has_every_session_in_order_with_its_cpus_limits_link_services_and_time() -> None:
    plan = whole()
    assert [session.cell for session in plan.sessions] == [
        session.trials[0].cell for session in sessions(study(CALLS, blocks=2))
    ]
    assert [session.block for session in plan.sessions] == [0, 0, 1, 1]
    assert plan.seconds == 16.0
    document = json.loads(json.dumps(plan.document()))
    first, second, *_ = document["sessions"]
    assert (first["cpus"]["server"], first["cpus"]["load"]) == ([0], [1])
    assert first["limits"]["memory_bytes"] == 512_000_000
    assert (first["link"], second["link"]) == ("rtt40ms", None)
    assert first["services"]
    assert [load["load"] for load in first["loads"]] == ["closed-1", "closed-2"]
    assert document["seconds"] == 16.0
    assert document["budget_s"] == 60.0


def test_servers_that_run_in_the_same_environment_share_one() -> None:
    (environment,) = whole().environments
    assert environment.stack == "hostile"


def test_its_lines_name_each_session_its_place_and_how_long_all_takes() -> None:
    lines = whole().lines()
    text = "\n".join(lines)
    assert "4 server sessions" in lines[0]
    assert "16 s" in lines[0]
    assert sum("hostile[does=ignore-stop]: " in line for line in lines) == 2
    assert "rtt40ms" in text
    assert "server on CPU 0" in text
    assert "load on CPU 1" in text
    assert "512 MB" in text


def test_what_all_sessions_share_is_shown_once() -> None:
    planned = study()
    lines = plan_of("study short", sessions(planned), two_cpus()).lines()
    assert sum("server on CPU" in line for line in lines) == 1


def test_limits_that_cannot_be_held_are_refused_before_anything_is_started() -> None:
    with pytest.raises(LimitError):
        plan_of("too many", sessions(study(), Limits(cpus=0)), two_cpus())


def test_a_stack_that_is_not_there_needs_no_environment_and_keeps_its_place() -> None:
    plan = plan_of("none", sessions(study(blocks=1)), replace(two_cpus(), stacks={}))
    assert plan.environments == ()
    assert len(plan.sessions) == 2


def test_each_server_gets_control_groups_of_its_own_of_the_same_plan(tmp_path: Path) -> None:
    where = {"memory": Hierarchy(2, tmp_path), "cpuacct": Hierarchy(2, tmp_path)}
    bounds = seat(Limits(memory_bytes=512_000_000), two_cpus(where)).bounds
    first, second = bounds.fresh(), bounds.fresh()
    assert {group.path for group in first.groups}.isdisjoint(group.path for group in second.groups)
    assert [group.settings for group in first.groups] == [group.settings for group in bounds.groups]
    assert first.account is not None
    assert str(first.account) in {group.path for group in first.groups}


def test_a_session_by_itself_has_the_same_place_as_in_a_race() -> None:
    (session, *_) = sessions(short_race.study())
    race = plan_of("study short", [session], two_cpus())
    assert plan_session(session, two_cpus()).seat.placement == race.sessions[0].seat.placement

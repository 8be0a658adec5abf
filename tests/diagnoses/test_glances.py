"""Suspects by figures of other commands: each by its own, and nobody else; of a healthy app none."""

from dataclasses import replace

import pytest
from tests.ward.made import SEEN, rising

from velodrome.diagnoses.fault import catalogue, glances
from velodrome.model.symptoms import Counted, Reused, Slope, Symptoms

pytestmark = pytest.mark.unit
COUNTED = Counted(machine_cpus=2)


def figures(k: float, cpus: float = 0.2, **more: object) -> Symptoms:
    """Return what is known where so many requests are in work at once, and a request takes 50 ms."""
    found = replace(SEEN, slope=rising(k, cpus), watched=None, reused=None, counted=COUNTED)
    return replace(found, **more)  # type: ignore[arg-type]


def ends(alone_cpus: float, full_cpus: float) -> Slope:
    """Return a slope with one request in flight and with full load."""
    slope = rising(600, most=512)
    alone, full = slope.points[0], slope.points[-1]
    return replace(slope, points=(replace(alone, cpus=alone_cpus), replace(full, cpus=full_cpus)))


SUSPICIOUS = {
    "blocking-call": figures(1),
    "thread-tokens": figures(40),
    "default-executor": figures(6),
    "pool-exhausted": figures(15),
    "connector-limit": figures(100),
    "nodelay": figures(500, slope=rising(600, most=512), reused=Reused(0.4, 42.5)),
    "gil-convoy": figures(1, slope=ends(0.97, 0.98)),
    "throttled": figures(500, slope=None, counted=replace(COUNTED, throttled=0.3)),
    "nofile": figures(500, slope=None, counted=replace(COUNTED, fails_from=1000)),
}


@pytest.mark.parametrize("name", sorted(SUSPICIOUS))
def test_a_fault_is_suspected_by_its_own_figures_alone(name: str) -> None:
    assert list(glances(SUSPICIOUS[name])) == [name]


def test_every_fault_that_can_be_glanced_at_is_tried_here() -> None:
    assert {name for name, one in catalogue().items() if one.glance is not None} == set(SUSPICIOUS)


@pytest.mark.parametrize(
    "seen",
    [
        figures(500, slope=rising(600, most=512)),
        figures(40, cpus=1.0),
        figures(40, cpus=0.7),
        figures(25),
        figures(40, interface="wsgi"),
        figures(1, interface="wsgi"),
        figures(6, counted=Counted()),
        figures(500, slope=None, reused=Reused(0.4, 0.5)),
        figures(500, slope=None, reused=Reused(1.0, 200.0)),
        figures(500, slope=None),
        figures(500, slope=None, counted=replace(COUNTED, throttled=0.01, fails_from=256)),
    ],
    ids=[
        *("rises", "computes", "computes mostly", "a number of its own", "threads of a WSGI server"),
        *(
            "a sync worker",
            "unknown machine",
            "no delay",
            "slow answers",
            "nothing known",
            "hardly throttled",
        ),
    ],
)
def test_a_healthy_app_names_nobody(seen: Symptoms) -> None:
    assert glances(seen) == {}


def test_of_several_workers_each_counts() -> None:
    assert list(glances(figures(80, workers=2, server_cpus=2))) == ["thread-tokens"]
    assert glances(figures(40, workers=2, server_cpus=2)) == {}


def test_what_is_said_has_the_figures_that_speak_for_it() -> None:
    assert glances(SUSPICIOUS["nodelay"])["nodelay"] == (
        "p50 42.5 ms on reused connections, 0.4 ms on the first request of one"
    )
    assert "40 requests" in glances(SUSPICIOUS["thread-tokens"])["thread-tokens"]

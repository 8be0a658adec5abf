"""Suspects by figures of other commands: each by its own, and nobody else; of a healthy app none."""

from dataclasses import replace

import pytest
from tests.ward.made import IN_THREADS, SEEN, SETTING, rising

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


def counting(**more: object) -> Symptoms:
    """Return what is known where no slope was measured, and counters show this."""
    return figures(500, slope=None, workers=2, server_cpus=2, counted=replace(COUNTED, **more))  # type: ignore[arg-type]


LIMITED = replace(SETTING, knobs={**SETTING.knobs, "limit_concurrency": 64}, workers=1)
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
    "hot-workers": counting(busiest=1.9),
    "backlog-overflow": counting(overflows=40),
    "limit-concurrency": replace(counting(fails_from=64), setting=LIMITED),
    "unread-body": counting(unread=0.9),
    "sync-keepalive": counting(never_in=0.9),
    "shared-epoll": counting(burning=1),
    "lost-at-replacement": counting(replaced=1, lost=0.01),
    "recycle-together": counting(replaced=2),
    "dependency-deadlock": counting(hangs_from=128),
    "pool-raises": counting(fails_from=64, packages=frozenset({"redis"})),
    "connections-leak": counting(left_open=0.05),
    "growth": counting(left_bytes=2000.0),
}
AMONG_OTHERS = {
    "sync-under-asgi": (figures(1, setting=replace(SETTING, interface="django_asgi")), {"blocking-call"}),
    "one-grpc-connection": (
        figures(100, counted=replace(COUNTED, packages=frozenset({"grpcio", "aiohttp"}))),
        {"connector-limit"},
    ),
}
"""Faults with the figures of another one: either may be it."""


@pytest.mark.parametrize("name", sorted(SUSPICIOUS))
def test_a_fault_is_suspected_by_its_own_figures_alone(name: str) -> None:
    assert list(glances(SUSPICIOUS[name])) == [name]


@pytest.mark.parametrize("name", sorted(AMONG_OTHERS))
def test_a_fault_whose_figures_another_one_has_as_well_is_named_beside_it(name: str) -> None:
    seen, others = AMONG_OTHERS[name]
    assert set(glances(seen)) == {name, *others}


def test_every_fault_that_can_be_glanced_at_is_tried_here() -> None:
    glanced = {name for name, fault in catalogue().items() if fault.glance is not None}
    assert glanced == {*SUSPICIOUS, *AMONG_OTHERS}


@pytest.mark.parametrize(
    ("k", "named", "package"),
    [
        (15, "pool-exhausted", "sqlalchemy"),
        (40, "thread-tokens", "anyio"),
        (100, "connector-limit", "aiohttp"),
    ],
)
def test_what_is_not_installed_is_not_named(k: float, named: str, package: str) -> None:
    assert set(glances(figures(k, counted=replace(COUNTED, packages=frozenset({package}))))) == {named}
    assert glances(figures(k, counted=replace(COUNTED, packages=frozenset({"flask"})))) == {}


@pytest.mark.parametrize(
    "seen",
    [
        figures(500, slope=rising(600, most=512)),
        figures(40, cpus=1.0),
        figures(40, cpus=0.7),
        figures(25),
        figures(40, setting=IN_THREADS),
        figures(1, setting=IN_THREADS),
        figures(6, counted=Counted()),
        figures(500, slope=None, reused=Reused(0.4, 0.5)),
        figures(500, slope=None, reused=Reused(1.0, 200.0)),
        figures(500, slope=None),
        figures(500, slope=None, counted=replace(COUNTED, throttled=0.01, fails_from=256)),
        counting(busiest=1.3, overflows=1, unread=0.001, never_in=0.05, left_open=0.001, left_bytes=90.0),
        replace(counting(busiest=1.9), server_cpus=1),
        replace(counting(unread=0.9), setting=replace(SETTING, has_body=False)),
        replace(counting(never_in=0.9), setting=replace(SETTING, slots=None)),
        replace(counting(burning=1), workers=1),
        replace(counting(fails_from=256), setting=LIMITED),
        replace(counting(fails_from=30), setting=LIMITED),
        counting(lost=0.5),
        counting(replaced=1),
        counting(hangs_from=128, packages=frozenset({"flask"})),
        counting(fails_from=64),
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
        *("a little of each", "one CPU", "nothing to read", "no slots", "one process", "above the limit"),
        *("below the limit", "lost otherwise", "replaced in order", "no threads of AnyIO", "no pool known"),
    ],
)
def test_a_healthy_app_names_nobody(seen: Symptoms) -> None:
    assert glances(seen) == {}


def test_of_several_workers_each_counts() -> None:
    assert list(glances(figures(80, workers=2, server_cpus=2))) == ["thread-tokens"]
    assert glances(figures(40, workers=2, server_cpus=2)) == {}


def test_the_sentence_has_the_figures_that_speak_for_it() -> None:
    assert glances(SUSPICIOUS["nodelay"])["nodelay"] == (
        "p50 42.5 ms on reused connections, 0.4 ms on the first request of one"
    )
    assert "40 requests" in glances(SUSPICIOUS["thread-tokens"])["thread-tokens"]

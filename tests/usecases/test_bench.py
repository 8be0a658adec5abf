"""Loads one after the other on one server: given up early when it is too much, served anew when it died."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.run.racing.short_race import bare

from velodrome.guest import catalog
from velodrome.guest.recipe import Body, Recipe, Sleep
from velodrome.guest.stack import KnobValue
from velodrome.judge.search.holding import Demands
from velodrome.judge.search.rate import RateSearch
from velodrome.model.condition import read
from velodrome.model.errors import NoServerError
from velodrome.model.load import Closed, Limits, Load
from velodrome.model.measurement import Measurement
from velodrome.model.search import Ending, Probe, Sample
from velodrome.model.trial import Contestant, Trial
from velodrome.run.drivers.driver import choose_driver
from velodrome.run.environments import guest_tree
from velodrome.run.lab import Lab
from velodrome.run.machine import measuring_lock
from velodrome.usecases import capacity
from velodrome.usecases.bench import Bench
from velodrome.usecases.events import Events

HOSTILE = str(Path(__file__).parents[1] / "truth" / "targets" / "hostile.py")
WAITS = Recipe("waits-20ms", "waits 20 ms", (Sleep(20), Body(84)))
QUICK = Recipe("waits-5ms", "waits 5 ms", (Sleep(5), Body(84)))
HELLO = Recipe("hello", "answers at once", (Body(84, on_wire=True),))
pytestmark = [
    pytest.mark.measured,
    pytest.mark.skipif(
        sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
        reason="needs Linux and two CPUs, one for each side",
    ),
]


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab(
        catalog.stacks([HOSTILE]),
        guest_tree.export([HOSTILE]),
        choose_driver,
        environment=bare,
        start_seconds=5.0,
        stop_seconds=0.5,
    )


@pytest.fixture
def alone() -> Iterator[None]:
    with measuring_lock.alone("tests of the bench", wait_s=60):
        yield


def trial(recipe: Recipe, stack: str, **knobs: KnobValue) -> Trial:
    return Trial(
        "bench", recipe.name, recipe, Contestant(stack, knobs), Load(Closed(1), 1.0), Limits(cpus=1), 0
    )


class Heard(Events):
    """Writes down what it receives."""

    def __init__(self) -> None:
        self.probes: list[Probe] = []
        self.samples: list[Sample] = []

    def tried(self, probe: Probe, measured: Measurement | None) -> None:
        self.probes.append(probe)

    def sampled(self, sample: Sample, measured: Measurement | None) -> None:
        self.samples.append(sample)


@pytest.mark.usefixtures("alone")
def test_one_slot_of_5_ms_holds_80_a_second_and_is_given_up_early_at_800(lab: Lab) -> None:
    demands = Demands(must=(read("p90 < 500ms"),))
    with Bench(trial(QUICK, "socketserver-single"), lab, seconds=1.0, arrivals="constant") as bench:
        alone = bench.alone()
        assert alone.load.sent.p50 is not None
        assert 5 <= alone.load.sent.p50 < 20
        held, measured = bench.rate(80, demands)
        assert held.held is True, held
        assert measured is not None
        assert measured.load.throughput_rps == pytest.approx(80, rel=0.15)
        broke, measured = bench.rate(800, demands, seconds=8.0)
        assert broke.held is False
        assert measured is not None
        assert measured.load.duration_s < 4.0
        assert measured.load.throughput_rps < 220
        again, _ = bench.rate(80, demands)
        assert again.held is True, again
        assert bench.trials >= 4


@pytest.mark.usefixtures("alone")
def test_a_server_that_dies_under_a_rate_breaks_it_and_is_served_anew(lab: Lab) -> None:
    with Bench(trial(HELLO, "hostile", does="die-under-load"), lab, seconds=0.5) as bench:
        broke, _ = bench.rate(500, Demands())
        assert broke.held is False
        assert bench.boots == 1
        bench.rate(5, Demands())  # fewer than 50 answers, with its warm-up
        assert bench.boots == 2


@pytest.mark.usefixtures("alone")
def test_what_cannot_be_served_is_reported_with_its_last_lines(lab: Lab) -> None:
    with (
        Bench(trial(HELLO, "hostile", does="die-at-start"), lab) as bench,
        pytest.raises(NoServerError) as raised,
    ):
        bench.alone()
    assert "its process ended before it answered" in raised.value.reason
    assert "Its last lines:\n" in str(raised.value)


@pytest.mark.exhaustive
def test_the_capacity_of_one_slot_of_20_ms_is_what_littles_law_allows(lab: Lab) -> None:
    heard = Heard()
    demands = Demands(must=(read("p90 < 300ms and errors < 1%"),))
    search = RateSearch(first=20.0, tolerance=0.1, most=20)
    found = capacity.highest(
        trial(WAITS, "socketserver-single"), lab, demands, heard, seconds=1.0, rates=search, wait_s=60
    )
    assert found.ending in {Ending.CONVERGED, Ending.SPENT}, found
    assert found.found.interval is not None
    # 20 ms each are 50 a second; a trial of one second of which 95 % come to an end holds, so that 52.6 may.
    assert 38 < found.found.interval.mid < 54
    assert found.best is not None
    assert found.bottom is not None
    assert len(heard.probes) == len(found.found.probes)

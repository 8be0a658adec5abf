from dataclasses import replace

import pytest
from tests.judge import made

from velodrome.judge.field import spoilt, spoilt_itself
from velodrome.judge.search.holding import bounding, of_the_lab, of_the_moment
from velodrome.model.load import Link
from velodrome.model.measurement import CpuLosses, Flag, FlagKind, Measurement, Placement, Severity
from velodrome.model.search import Bound


def measured(rps: float, cpu_us: float, mean_ms: float, cpus: tuple[int, ...] = (0, 1)) -> Measurement:
    found = made.measured(made.trial("one"), rps, cpu_us=cpu_us, mean_ms=mean_ms)
    return replace(found, placement=Placement(cpus, (2,), (2,), False, "affinity"))


def test_a_cpu_that_others_had_is_no_wait_of_the_app() -> None:
    found = measured(480, 500, 20, cpus=(0,))
    lost = CpuLosses((0,), 0.0, 0.74 * found.load.duration_s)
    crowded = bounding(replace(found, host=replace(found.host, server_cpus=lost)), slots=None, workers=1)
    assert crowded.bound is Bound.OTHER
    assert "74 %" in crowded.sentence
    assert crowded.sentence != bounding(found, slots=None, workers=1).sentence


def test_a_full_cpu_bounds() -> None:
    found = bounding(measured(950, 2_000, 20), slots=512, workers=2)
    assert (found.bound, found.sentence) == (Bound.CPU, "its 2 CPUs are in use to 95 %")


def test_one_process_is_bounded_by_one_cpu() -> None:
    found = bounding(measured(480, 2_000, 20), slots=None, workers=1)
    assert found.bound is Bound.CPU
    assert found.sentence == "its CPU is in use to 96 % (one process computes on one CPU at a time)"


def test_slots_that_are_all_held_bound() -> None:
    found = bounding(measured(39, 500, 200), slots=8, workers=2)
    assert (found.bound, found.sentence) == (Bound.SLOTS, "its 8 slots are in use: 39.0/s × 200 ms")


def test_on_its_way_over_a_link_a_request_holds_no_slot() -> None:
    held, away = measured(39, 500, 360), measured(39, 500, 200)
    over = [
        replace(measurement, trial=replace(measurement.trial, link=Link(160.0)))
        for measurement in (held, away)
    ]
    assert bounding(over[0], slots=8, workers=2).sentence == "its 8 slots are in use: 39.0/s × 200 ms"
    assert bounding(over[1], slots=8, workers=2).bound is Bound.OTHER


def test_what_waits_elsewhere_is_bounded_by_neither() -> None:
    found = bounding(measured(100, 500, 30), slots=64, workers=2)
    assert found.bound is Bound.OTHER
    assert "its CPU is in use to 2.5 % only" in found.sentence


def flagged(kind: FlagKind, severity: Severity = Severity.INVALID) -> Measurement:
    return made.measured(made.trial("one"), 100, flags=[Flag(kind, severity, "said", "do")])


def test_only_flags_of_lab_and_moment_spoil_a_trial_that_asked_for_too_much() -> None:
    assert of_the_lab(flagged(FlagKind.GENERATOR_SATURATED))
    assert of_the_moment(flagged(FlagKind.CPU_STEAL))
    assert of_the_moment(flagged(FlagKind.CPU_STEAL, Severity.NOTE)) is None
    for kind in (FlagKind.NOT_STATIONARY, FlagKind.ERRORS, FlagKind.LISTEN_QUEUE_OVERFLOWED):
        assert of_the_lab(flagged(kind)) is None
        assert of_the_moment(flagged(kind)) is None


@pytest.mark.parametrize("kind", list(FlagKind))
def test_what_spoils_a_load_of_a_search_spoils_one_of_a_race(kind: FlagKind) -> None:
    measurement = flagged(kind)
    assert spoilt(measurement) is bool(of_the_lab(measurement) or of_the_moment(measurement))
    assert not (spoilt(measurement) and spoilt_itself(measurement))

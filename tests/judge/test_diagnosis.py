"""What the doctor's experiments come to: arms that differ, arms that do not, and how much is left unexplained."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from tests.ward.made import PROBE, arms, counts, rising

from velodrome.judge.diagnosis import (
    LEVEL,
    LOOKS,
    Judged,
    disturbances,
    judge_arms,
    judge_counts,
    slope,
    unexplained,
)
from velodrome.judge.statistics import more_by_chance
from velodrome.model.diagnosis import Arms, Counts, Disturbance, Ruling
from velodrome.model.measurement import Flag, FlagKind, Severity
from velodrome.model.quantity import Interval
from velodrome.model.symptoms import Point


def ruled(found: Judged | None) -> Ruling | None:
    return found.ruling if found else None


def test_an_arm_that_is_clearly_better_is_a_cause_and_says_what_it_costs() -> None:
    found = judge_arms(arms([100, 102, 98, 101], [198, 203, 200, 201]), ("rps",), "cure")
    assert found is not None
    assert found.ruling is Ruling.CAUSE
    lost = found.effect["rps"]
    assert 0 < lost.low < 100 < lost.high
    assert found.effect["mean_ms"].mid == pytest.approx(40, rel=0.1)
    assert found.gain == pytest.approx(2, rel=0.05)


def test_a_dose_costs_no_more_than_the_server_could_have_without_the_fault() -> None:
    def effect(most_rps: Interval | None) -> Mapping[str, Interval]:
        found = judge_arms(arms([100] * 4, [50] * 4), ("rps",), "dose", most_rps)
        assert found is not None
        return found.effect

    assert effect(None)["rps"].mid > 500, "by the dose alone"
    lost = effect(Interval(120.0, 130.0, 140.0))["rps"]
    assert (lost.low, lost.mid, lost.high) == pytest.approx((20, 30, 40))
    assert effect(Interval(80.0, 90.0, 95.0))["rps"].high == 0
    assert effect(Interval(1e6, 1e6, 1e6)) == effect(None)


def test_a_slope_lasts_as_far_as_its_ends_do_as_much_as_they_did_at_first() -> None:
    points = [Point(1, 100.0, 0.2, 4), Point(8, 400.0, 0.9, 4)]
    assert slope(points, [(100.0, 400.0), (90.0, 200.0)]).lasts == pytest.approx(0.5)
    assert slope(points, [(100.0, 400.0), (60.0, 390.0)]).lasts == pytest.approx(0.6)
    assert slope(points, [(100.0, 400.0)]).lasts is None, "not measured again"
    assert slope(points, [(100.0, 400.0), (99.0, 400.0)], ended=True).lasts == 0


def test_arms_that_are_alike_are_no_cause() -> None:
    assert (
        ruled(judge_arms(arms([100, 102, 98, 101], [101, 100, 99, 102]), ("rps",), "cure"))
        is Ruling.NOT_A_CAUSE
    )


def test_a_worse_arm_is_no_cause_however_much_worse_it_is() -> None:
    assert (
        ruled(judge_arms(arms([100, 102, 98, 101], [40, 41, 40, 42]), ("rps",), "cure")) is Ruling.NOT_A_CAUSE
    )


def test_too_few_blocks_tell_nothing_yet() -> None:
    assert judge_arms(arms([100, 101], [200, 199]), ("rps",), "cure") is None


def test_blocks_that_contradict_each_other_ask_for_more_and_at_last_cannot_tell() -> None:
    before, after = [100, 60, 140, 90], [190, 100, 70, 100]
    assert judge_arms(arms(before, after), ("rps",), "cure") is None
    twice = arms(before * 2, after * 2)
    assert judge_arms(twice, ("rps",), "cure") is None, "a fifth better may be worth a diagnosis"
    assert ruled(judge_arms(twice, ("rps",), "cure", last=True)) is Ruling.CANNOT_TELL
    assert judge_arms(arms(before * 4, after * 4), ("rps",), "cure") is None
    assert ruled(judge_arms(arms(before * 8, after * 8), ("rps",), "cure")) is Ruling.CANNOT_TELL


def test_what_is_hardly_better_is_given_up_after_the_second_look() -> None:
    before, after = [100, 60, 140, 90, 100, 70, 130, 90], [130, 70, 120, 70, 60, 110, 90, 130]
    assert ruled(judge_arms(arms(before, after), ("rps",), "cure")) is Ruling.CANNOT_TELL


def test_one_metric_of_two_is_enough() -> None:
    alike = ([100, 102, 98, 101], [101, 100, 99, 102])
    assert ruled(judge_arms(arms(*alike, p99_ms=4.0), ("rps", "p99_ms"), "cure")) is Ruling.CAUSE


def test_a_cure_that_breaks_answers_proves_nothing() -> None:
    found = judge_arms(arms([100] * 4, [400] * 4, errors=0.2), ("rps",), "cure")
    assert ruled(found) is Ruling.CANNOT_TELL


def test_a_dose_that_costs_as_much_again_shows_what_the_fault_costs() -> None:
    """Of 10 ms a request 4 are the fault's: with twice the fault it takes 14, without it 6."""
    found = judge_arms(arms([100.0] * 4, [1000 / 14] * 4), ("rps",), "dose")
    assert found is not None
    assert found.ruling is Ruling.CAUSE
    assert found.effect["rps"].mid == pytest.approx(1000 / 6 - 100, rel=0.01)


@pytest.mark.parametrize("ratio", [1.3, 1.7, 1.88, 1.95, 2.0, 2.3])
def test_what_a_dose_shows_has_an_interval_however_much_of_the_time_the_fault_takes(ratio: float) -> None:
    found = judge_arms(arms([100.0] * 4, [100.0 / ratio] * 4), ("rps",), "dose")
    assert found is not None
    lost = found.effect["rps"]
    assert 0 < lost.low < 0.95 * lost.mid
    assert lost.mid < 0.95 * lost.high
    if ratio < 1.9:
        assert lost.low < 100 / (2 - ratio) - 100 < lost.high
    else:
        assert lost.mid == pytest.approx(900)


def test_a_dose_that_changes_nothing_is_no_cause() -> None:
    assert (
        ruled(judge_arms(arms([100, 102, 98, 101], [99, 101, 100, 100]), ("rps",), "dose"))
        is Ruling.NOT_A_CAUSE
    )


def test_equal_arms_are_hardly_ever_accused() -> None:
    """2 000 experiments without an effect, with the noise that is presumed: the level holds, and most are settled."""
    draw = np.random.default_rng(16)
    accused = settled = 0
    worlds = 2000
    for _ in range(worlds):
        noise = np.exp(draw.normal(0, 0.05 / np.sqrt(2), (2, LOOKS[-1])))
        for blocks in LOOKS:
            found = judge_arms(
                arms(list(100 * noise[0, :blocks]), list(100 * noise[1, :blocks])), ("rps",), "cure"
            )
            if found is not None:
                accused += found.ruling is Ruling.CAUSE
                settled += found.ruling is not Ruling.CANNOT_TELL
                break
    assert accused <= 2 * LEVEL * worlds
    assert settled > 0.8 * worlds


def points(*rates: float) -> tuple[Point, ...]:
    return tuple(Point(2**number, rate, 0.1, 4) for number, rate in enumerate(rates))


def test_a_slope_says_how_many_requests_are_in_work() -> None:
    found = slope(points(20, 40, 80, 160, 320, 640, 800, 805, 798), [(20, 800), (20.1, 803), (19.9, 797)])
    assert found.in_work.low < 40 < found.in_work.high
    assert found.in_work.high / found.in_work.low < 1.3
    assert (found.knee, found.rises) == (64, False)


def test_a_slope_that_still_rises_says_so() -> None:
    assert slope(points(20, 40, 80, 160), [(20, 160)]).rises


def test_a_last_loop_that_recovers_from_a_dip_does_not_rise() -> None:
    assert not slope(points(20, 40, 80, 70, 79), [(20, 80)]).rises


def test_what_a_cure_takes_away_is_explained() -> None:
    assert unexplained(rising(4), rising(256), room=1.0) == pytest.approx(0.0)


def test_what_no_cause_accounts_for_is_unexplained() -> None:
    bounded = rising(40)
    assert 0 < unexplained(bounded, bounded, room=1.0) < 0.5
    tight = rising(2)
    assert unexplained(tight, tight, room=1.0) > unexplained(bounded, bounded, room=1.0) - 0.5


def test_what_the_cpu_accounts_for_is_explained() -> None:
    busy = rising(4, cpus=1.0)
    assert unexplained(busy, busy, room=1.0) == pytest.approx(0.0)


def test_the_document_of_arms_has_every_block_of_both() -> None:
    made: Arms = arms([100, 101], [200, 199])
    document = made.document()
    assert [block["after"]["rps"] for block in document["blocks"]] == [200, 199]
    assert document["before"] != document["after"]


def test_requests_that_only_the_arm_as_it_is_loses_are_a_cause_and_say_which_share_is_lost() -> None:
    found = judge_counts(counts([16, 15], [0, 0]), "cure")
    assert found is not None
    assert found.ruling is Ruling.CAUSE
    lost = found.effect["share"]
    assert 0.5 < lost.low < 31 / 32 == lost.mid
    assert "31 of 32" in found.reason


def test_one_block_tells_nothing_of_counts_yet() -> None:
    assert judge_counts(counts([16], [0]), "cure") is None


def test_a_block_without_a_hit_of_what_repeats_itself_shows_that_there_is_none() -> None:
    def block(before: int, after: int) -> Counts:
        found = counts([before], [after], of=8)
        return replace(found, probe=replace(found.probe, worth=0.5, repeats=True))

    assert ruled(judge_counts(block(0, 0), "dose")) is Ruling.NOT_A_CAUSE
    assert judge_counts(block(0, 8), "dose") is None
    assert judge_counts(block(0, 1), "dose") is None


def test_counts_that_are_alike_are_no_cause_whether_none_or_many() -> None:
    assert ruled(judge_counts(counts([0, 0], [0, 0]), "cure")) is Ruling.NOT_A_CAUSE
    assert ruled(judge_counts(counts([100] * 4, [100] * 4, of=200), "cure")) is Ruling.NOT_A_CAUSE


def test_a_treated_arm_that_loses_more_is_no_cause() -> None:
    assert ruled(judge_counts(counts([0, 0], [16, 16]), "cure")) is Ruling.NOT_A_CAUSE
    assert ruled(judge_counts(counts([0, 0], [16, 16]), "dose")) is Ruling.CAUSE


def test_a_block_that_disagrees_proves_nothing() -> None:
    """One server in four that lost everything is an accident of that server."""
    assert judge_counts(counts([0, 16], [0, 0]), "cure") is None
    assert ruled(judge_counts(counts([0, 16, 0, 0], [0, 0, 0, 0]), "cure")) is Ruling.CANNOT_TELL


def test_where_an_arm_counted_nothing_it_cannot_be_told() -> None:
    assert ruled(judge_counts(counts([0, 0], [0, 0], of=0), "cure")) is Ruling.CANNOT_TELL


def test_fishers_exact_test_is_that_of_the_lady_tasting_tea() -> None:
    """R. A. Fisher, «The Design of Experiments», 1935: three or more of four cups right, 17 of 70."""
    assert more_by_chance(3, 4, 1, 4) == pytest.approx(17 / 70)
    assert more_by_chance(4, 4, 0, 4) == pytest.approx(1 / 70)
    assert more_by_chance(0, 16, 0, 16) == 1.0


@pytest.mark.simulation
@pytest.mark.parametrize("share", [0.02, 0.2, 0.5, 0.9])
def test_equal_arms_of_a_probe_are_accused_in_one_percent_at_most(share: float) -> None:
    """Shares that also differ from server to server, as failures that come together do."""
    draw = np.random.default_rng(7)
    accused, runs = 0, 600
    for _ in range(runs):
        shares = draw.beta(share * 20, (1 - share) * 20, size=(2, 4))
        hits = draw.binomial(16, shares)
        for blocks in (2, 4):
            found = judge_counts(counts(hits[0][:blocks].tolist(), hits[1][:blocks].tolist()), "cure")
            if found is not None:
                accused += found.ruling is Ruling.CAUSE
                break
    assert accused <= runs * LEVEL + 3 * (runs * LEVEL) ** 0.5
    assert PROBE.worth == 0.2


def test_loads_in_which_the_machine_was_others_are_counted_with_the_worst_of_them() -> None:
    def flag(kind: FlagKind, severity: Severity, share: float) -> Flag:
        return Flag(kind, severity, f"{kind} {share}", "", {"share": share})

    few = flag(FlagKind.OTHER_LOAD, Severity.INVALID, 0.2)
    much = flag(FlagKind.OTHER_LOAD, Severity.INVALID, 0.7)
    noted = flag(FlagKind.CPU_STEAL, Severity.NOTE, 0.02)
    stolen = flag(FlagKind.CPU_STEAL, Severity.INVALID, 0.1)
    of_the_server = flag(FlagKind.ERRORS, Severity.INVALID, 0.9)
    assert disturbances([(few,), (), (noted, of_the_server), (much, stolen)]) == (
        Disturbance("other-load", 2, 4, "other-load 0.7"),
        Disturbance("cpu-steal", 1, 4, "cpu-steal 0.1"),
    )
    assert disturbances([]) == ()

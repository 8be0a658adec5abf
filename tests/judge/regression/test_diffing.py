from dataclasses import replace

import pytest
from tests.judge import made
from tests.judge.regression.made import (
    AFTER_OPEN,
    BEFORE_OPEN,
    CLOSED_Q,
    OPEN_Q,
    figure,
    interleaved,
    latencies,
    rates,
    stored,
    two_runs,
)

from velodrome.judge import before_after
from velodrome.judge.regression import DiffCriteria, diff
from velodrome.model.app import App, Request
from velodrome.model.condition import Threshold
from velodrome.model.difference import Change
from velodrome.model.errors import (
    DifferentMachinesError,
    NotTwoSidesError,
    OtherArrivalsError,
    OtherRequestsError,
)
from velodrome.model.load import Open
from velodrome.model.measurement import FailureKind, Measurement
from velodrome.model.study import Question

STEADY = [1000.0, 1010, 990, 1005, 995, 1002]
DRIFTING = [1000.0, 1200, 900, 1100, 950, 1050]
TENTH_LESS = [0.9 * rate for rate in DRIFTING]


def test_what_the_blocks_share_does_not_hide_a_tenth_less() -> None:
    found = interleaved(rates(DRIFTING), rates(TENTH_LESS))
    assert found.paired
    difference = figure(found, "throughput")
    assert difference.change is Change.REGRESSION
    assert difference.interval is not None
    assert difference.interval.low < 0.9 < difference.interval.high < 1
    assert found.change is Change.REGRESSION
    assert found.sentence.startswith("Regression: throughput of uvicorn · uvloop −10 % under closed-40.")


def test_two_runs_that_were_not_interleaved_cannot_tell_that_tenth_and_say_why() -> None:
    found = two_runs(rates(STEADY), rates([0.9 * rate for rate in STEADY]))
    difference = figure(found, "throughput")
    assert difference.change is not Change.REGRESSION
    assert found.notes[0].startswith("These runs were not interleaved")
    half = two_runs(rates(STEADY), rates([0.4 * rate for rate in STEADY]))
    assert figure(half, "throughput").change is Change.REGRESSION


def test_more_is_better_only_for_throughput() -> None:
    better = interleaved(rates(TENTH_LESS), rates(DRIFTING))
    assert figure(better, "throughput").change is Change.IMPROVEMENT
    assert better.change is Change.IMPROVEMENT
    dearer = interleaved(rates(DRIFTING, cpu_us=500), rates(DRIFTING, cpu_us=650))
    assert figure(dearer, "cpu").change is Change.REGRESSION
    assert figure(dearer, "throughput").change is Change.SAME


def test_equal_sides_are_the_same_beyond_the_margins_which_are_reported() -> None:
    found = interleaved(rates(DRIFTING * 3), rates(DRIFTING * 3))
    assert found.change is Change.SAME
    assert found.sentence == "No difference beyond 5.0 % (p50 10 %, p90 20 %, p99 36 %)."


def test_few_blocks_are_insufficient_and_as_many_more_as_it_says_are_enough() -> None:
    few = interleaved(rates(DRIFTING[:2]), rates(DRIFTING[:2]))
    more = figure(few, "throughput").more_blocks
    assert figure(few, "throughput").change is Change.INSUFFICIENT
    assert more is not None
    assert (
        f"{max(difference.more_blocks or 0 for difference in few.differences)} more blocks needed"
        in few.sentence
    )
    enough = [1000.0] * (2 + more)
    assert figure(interleaved(rates(enough), rates(enough)), "throughput").change is Change.SAME


def test_percentiles_are_of_merged_histograms_and_compared_block_by_block() -> None:
    slow = [10.0] * 380 + [100.0] * 20
    found = interleaved(
        latencies([[10.0] * 400] * 6, BEFORE_OPEN),
        latencies([slow] * 6, AFTER_OPEN),
        (BEFORE_OPEN, AFTER_OPEN),
    )
    p50, p99 = figure(found, "p50"), figure(found, "p99")
    assert p99.change is Change.REGRESSION
    assert p99.after == pytest.approx(100, rel=0.001)
    assert p99.interval is not None
    assert p99.interval.mid == pytest.approx(10, rel=0.01)
    assert p50.interval is not None
    assert p50.interval.mid == 1


def test_blocks_are_bundled_until_a_percentile_has_enough_requests() -> None:
    questions = (BEFORE_OPEN, AFTER_OPEN)
    short = [[10.0] * 100] * 7
    found = interleaved(latencies(short, BEFORE_OPEN), latencies(short, AFTER_OPEN), questions)
    # 300 requests are needed for p99: two bundles of three blocks, the seventh is of the second.
    assert figure(found, "p99").blocks == (6, 6)
    assert figure(found, "p50").blocks == (7, 7)


def test_a_percentile_with_too_few_requests_says_how_many_it_needs_if_somebody_asked_for_it() -> None:
    questions = (BEFORE_OPEN, AFTER_OPEN)
    trials = latencies([[10.0] * 200], BEFORE_OPEN), latencies([[10.0] * 200], AFTER_OPEN)
    silent = interleaved(*trials, questions)
    assert {difference.metric for difference in silent.differences} == {
        "throughput",
        "p50",
        "p90",
        "p99",
        "cpu",
        "memory",
    }
    assert "it needs 300 requests, and there were 200: load longer" in figure(silent, "p99").reason
    found = interleaved(*trials, questions, criteria=DiffCriteria(metrics=("p99.9",)))
    (difference,) = found.differences
    assert difference.change is Change.INSUFFICIENT
    assert difference.reason.startswith("it needs 10 000 requests")


def test_latency_is_compared_in_open_loops_where_there_is_one() -> None:
    both = replace(made.HELLO_Q)
    trials = rates(STEADY, both) + latencies([[5.0] * 400] * 6, both)
    found = two_runs(trials, trials, both)
    assert {difference.metric for difference in found.differences if difference.load == "closed-40"} == {
        "throughput",
        "cpu",
        "memory",
    }
    assert {difference.load for difference in found.differences if difference.metric == "p99"} == {"open-100"}


def test_a_revision_that_does_not_start_is_a_regression_with_its_reason() -> None:
    broken = [made.failed(rate.trial, "no module named shop") for rate in rates(STEADY)]
    found = interleaved(rates(STEADY), broken)
    (difference,) = found.differences
    assert difference.change is Change.REGRESSION
    assert difference.reason == "after, it could not be measured: no module named shop"
    assert "no module named shop" in found.sentence
    assert interleaved(broken, rates(STEADY)).change is Change.IMPROVEMENT
    assert interleaved(broken, broken).change is Change.INSUFFICIENT


def test_what_the_lab_could_not_run_is_no_regression() -> None:
    missing = [made.failed(rate.trial, "no such package", FailureKind.INSTALL) for rate in rates(STEADY)]
    found = interleaved(rates(STEADY), missing)
    assert found.change is Change.INSUFFICIENT


def test_a_flagged_block_is_left_out_and_reported() -> None:
    after = rates(STEADY)
    after[0] = rates([200], flags=[made.INVALID])[0]
    found = two_runs(rates(STEADY), after)
    assert figure(found, "cpu").blocks == (6, 5)
    assert any(note.startswith("after: uvicorn") and "(block 1)" in note for note in found.set_aside)


def test_throughput_that_ended_the_generator_is_not_compared() -> None:
    flagged = rates(STEADY, flags=[made.INVALID])
    found = two_runs(rates(STEADY), flagged)
    assert (
        figure(found, "throughput").reason == "it is at least what was measured; give the generator more CPUs"
    )


def test_failing_requests_are_a_regression_even_where_they_set_every_block_aside() -> None:
    def failing(of: list[Measurement], count: int) -> list[Measurement]:
        return [
            replace(
                measurement,
                load=replace(
                    measurement.load, ok=measurement.load.requests - count, outcomes={"timeout": count}
                ),
            )
            for measurement in of
        ]

    many = interleaved(rates(STEADY), failing(rates(STEADY), 60))
    difference = figure(many, "errors")
    assert difference.change is Change.REGRESSION
    assert difference.after == pytest.approx(0.03, rel=0.01)
    assert "errors" not in {
        difference.metric for difference in interleaved(rates(STEADY), rates(STEADY)).differences
    }
    few = interleaved(rates(STEADY), failing(rates(STEADY), 1))
    assert figure(few, "errors").change is Change.SAME


def test_different_machines_are_refused() -> None:
    there = stored(rates(STEADY), machine={**made.MACHINE, "kernel": "5.10"})
    with pytest.raises(DifferentMachinesError, match=r"kernel 6\.18 and 5\.10"):
        before_after.runs(stored(rates(STEADY)), there, made.STACKS)


def test_runs_without_a_cell_in_common_are_refused() -> None:
    other = made.steady("granian", STEADY, CLOSED_Q)
    with pytest.raises(
        NotTwoSidesError, match=r"a and b have no question/contestant in common \(hello/uvicorn; h"
    ):
        before_after.runs(stored(rates(STEADY)), stored(other), made.STACKS, ("a", "b"))
    with pytest.raises(NotTwoSidesError, match="the study made has no questions 'before' and 'after'"):
        before_after.revisions(stored(rates(STEADY)), made.STACKS)


def test_what_else_changed_between_the_runs_is_reported() -> None:
    before = [
        replace(rate, packages={"uvicorn": "0.34", "h11": "0.16"}, python="3.11.7") for rate in rates(STEADY)
    ]
    after = [replace(rate, packages={"uvicorn": "0.35"}, python="3.12.1") for rate in rates(STEADY)]
    notes = two_runs(before, [*after, *made.steady("granian", STEADY, CLOSED_Q)]).notes
    assert "uvicorn · uvloop: Python 3.11.7 before, 3.12.1 after." in notes
    assert "uvicorn · uvloop: h11 0.16 → gone and uvicorn 0.34 → 0.35." in notes
    assert "only after, so not compared: hello/granian." in notes


def test_one_of_many_figures_that_looks_different_by_chance_is_no_change_and_this_is_reported() -> None:
    names = [f"c{number}" for number in range(12)]
    before = [
        measurement
        for name in names
        for measurement in made.steady("uvicorn", DRIFTING, CLOSED_Q)
        for measurement in [_named(measurement, name)]
    ]
    after = [_named(rate, name) for name in names for rate in rates(DRIFTING)]
    worse = [
        replace(
            measurement,
            load=replace(measurement.load, throughput_rps=measurement.load.throughput_rps * 0.965),
        )
        if measurement.trial.contestant.name == "c0"
        else measurement
        for measurement in after
    ]
    found = interleaved(before, worse)
    difference = next(
        difference
        for difference in found.differences
        if difference.contestant == "c0" and difference.metric == "throughput"
    )
    assert difference.chance is not None
    assert difference.chance_in_all is not None
    assert difference.chance < 0.05 < difference.chance_in_all
    assert difference.change is Change.INSUFFICIENT
    assert any("figures look different" in note or "figures looks different" in note for note in found.notes)


def _named(measurement: Measurement, name: str) -> Measurement:
    contestant = replace(measurement.trial.contestant, name=name)
    return replace(measurement, trial=replace(measurement.trial, contestant=contestant))


@pytest.mark.parametrize(
    ("after", "held"),
    [([0.98], True), ([0.7], False), ([0.9], None)],
    ids=["kept", "broken", "cannot be told"],
)
def test_a_threshold_is_kept_or_broken_only_where_that_is_sure(after: list[float], held: bool | None) -> None:
    criteria = DiffCriteria(thresholds=(Threshold("throughput", 0.1, "throughput -10%"),))
    found = interleaved(rates(DRIFTING), rates([after[0] * rate for rate in DRIFTING]), criteria=criteria)
    (gate,) = found.gates
    assert gate.held is held
    if held is None:
        assert gate.reason == "it is so near to 10 % that even 60 blocks would not decide."


def test_a_margin_and_the_figures_looked_at_can_be_chosen() -> None:
    criteria = DiffCriteria(margins={"throughput": 0.2}, metrics=("throughput", "cpu"))
    found = interleaved(rates(DRIFTING), rates(TENTH_LESS), criteria=criteria)
    assert [difference.metric for difference in found.differences] == ["throughput", "cpu"]
    assert figure(found, "throughput").change is Change.SAME


def test_a_run_of_two_revisions_is_compared_by_what_the_questions_ask() -> None:
    found = diff(before_after.revisions(stored(_asides(), *_questions()), made.STACKS))
    assert {difference.question for difference in found.differences} == {"hello"}
    assert (found.before.name, found.after.name) == ("before", "after")


def _questions() -> tuple[Question, Question]:
    return replace(OPEN_Q, name="before"), replace(OPEN_Q, name="after")


def _asides() -> list[Measurement]:
    return [latency for question in _questions() for latency in latencies([[5.0] * 400] * 3, question)]


def test_two_or_three_blocks_tell_nothing_whatever_they_show() -> None:
    for blocks in (1, 2, 3):
        found = interleaved(rates(DRIFTING[:blocks]), rates([0.5 * rate for rate in DRIFTING[:blocks]]))
        difference = figure(found, "throughput")
        assert difference.change is Change.INSUFFICIENT
        assert difference.more_blocks is not None
        assert difference.more_blocks >= 4 - blocks
    few = two_runs(rates(STEADY[:2]), rates(STEADY[:2]))
    assert figure(few, "memory").reason.startswith("five blocks at least must be valid")


def test_evenly_spaced_arrivals_are_not_compared_with_those_of_independent_users() -> None:
    poisson = replace(made.OPEN, pace=Open(100, "poisson"))
    constant = replace(made.OPEN, pace=Open(100))
    questions = [Question("hello", made.HELLO, (load,)) for load in (constant, poisson)]
    before, after = (
        stored(latencies([[5.0] * 400] * 3, question, question.loads[0]), question) for question in questions
    )
    with pytest.raises(OtherArrivalsError, match="a had constant arrivals, b had poisson arrivals"):
        before_after.runs(before, after, made.STACKS, ("a", "b"))
    same = before_after.runs(after, after, made.STACKS)
    assert [pairing.load.label for pairing in same.pairings] == [poisson.label]


def test_runs_of_an_app_that_got_other_requests_are_not_compared() -> None:
    shop = App("shop:app", "wsgi", "/python", "/shop", (Request("cart", "/cart"),))
    apps = (shop, replace(shop, requests=(Request("order", "/", "POST"),)), replace(shop, revision="HEAD"))
    questions = [Question("hello", made.HELLO, (made.OPEN,), app=app) for app in apps]
    before, after, same = (
        stored(latencies([[5.0] * 400] * 3, question, made.OPEN), question) for question in questions
    )
    with pytest.raises(OtherRequestsError, match="a sent GET /cart, b sent POST /"):
        before_after.runs(before, after, made.STACKS, ("a", "b"))
    assert before_after.runs(before, same, made.STACKS).pairings

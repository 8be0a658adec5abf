"""What a setting shows with more workers, twice, is why it is not recommended; what it shows once is chance."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.judge import made

from velodrome.judge.answering import answer
from velodrome.judge.workers import judge_check, next_step, with_workers
from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import (
    FailureKind,
    Flag,
    FlagKind,
    Latency,
    Measurement,
    Placement,
    Severity,
    WorkerUse,
)
from velodrome.model.results import Result
from velodrome.model.trial import Contestant
from velodrome.model.verdict import Outcome
from velodrome.model.workers import PART

WHO = Contestant("uvicorn")
STACK = made.STACKS["uvicorn"]
BUSY, LOW = Load(Closed(64), 1.0), Load(Open(100), 1.5)
FRESH = replace(BUSY, keepalive=False), replace(LOW, keepalive=False)
LOADS = (BUSY, LOW, *FRESH)


def seen(workers: int, load: Load, again: int = 0, **facts: Any) -> Measurement:
    """A healthy load of a setting with so many workers, with some facts replaced."""
    rps, p50, p90 = facts.pop("rps", 4000.0), facts.pop("p50", 0.4), facts.pop("p90", 0.6)
    busiest = facts.pop("busiest", 1 / workers)
    failed = facts.pop("failed", 0)
    rate = load.pace.rate if isinstance(load.pace, Open) else rps
    trial = made.trial("uvicorn", block=again, load=load)
    trial = replace(trial, contestant=with_workers(WHO, workers), part=PART)
    measurement = made.measured(trial, rate, cpu_us=1e6 / rps)
    latency = Latency(p50, p50, p50, p90, p90, p90, p90, p90)
    rest = [WorkerUse(3 + n, (1 - busiest) / max(workers - 1, 1), 4) for n in range(workers - 1)]
    uses = (WorkerUse(1, 0.001, 0), WorkerUse(2, busiest, 60), *rest)
    return replace(
        measurement,
        load=replace(
            measurement.load,
            due=latency,
            sent=latency,
            ok=measurement.load.ok - failed,
            **facts.pop("load", {}),
        ),
        server=replace(measurement.server, workers=uses),
        **facts,
    )


def session(workers: int, again: int = 0, **facts: Any) -> list[Measurement]:
    return [seen(workers, load, again, **facts) for load in LOADS]


def differing(workers: int, again: int, *loads: Load, **facts: Any) -> list[Measurement]:
    return [seen(workers, load, again, **(dict(facts) if load in loads else {})) for load in LOADS]


def came_to(results: Sequence[Result], counts: tuple[int, ...] = (1, 2)) -> Any:
    found = judge_check(WHO, STACK, counts, results)
    assert found is not None
    return found


def test_each_number_of_workers_is_measured_under_each_load_the_fewest_first() -> None:
    first = next_step(WHO, (1, 2), LOADS, ())
    assert first is not None
    assert (first.workers, first.again, first.loads) == (1, 0, LOADS)
    second = next_step(WHO, (1, 2), LOADS, session(1))
    assert second is not None
    assert (second.workers, second.again, second.loads) == (2, 0, LOADS)
    assert next_step(WHO, (1, 2), LOADS, [*session(1), *session(2)]) is None
    third = next_step(WHO, (1, 2, 4), LOADS, [*session(1), *session(2)])
    assert third is not None
    assert third.workers == 4


def test_a_setting_that_loses_nothing_survives() -> None:
    found = came_to([*session(1), *session(2, rps=3300.0, p50=0.7, p90=4.0)])
    assert found.survived is True
    assert not found.problems
    assert "fresh and reused" in found.sentence
    assert len(found.seen) == 8


PROBLEMS: dict[str, tuple[tuple[Load, ...], dict[str, Any], str]] = {
    "throughput": ((BUSY,), {"rps": 450.0}, "450/s with 2 workers"),
    "latency": ((LOW,), {"p50": 42.5, "p90": 43.0}, "p50 is 42.5 ms with 2 workers"),
    "latency of every tenth": ((LOW,), {"p90": 43.0}, "p90 is 43"),
    "latency on fresh connections": ((FRESH[1],), {"p50": 42.5, "p90": 43.0}, "on fresh connections"),
    "errors": ((FRESH[0],), {"failed": 200}, "fail with 2 workers"),
    "an idle worker": ((BUSY, FRESH[0]), {"busiest": 0.99}, "one of 2 workers does 99 %"),
}


@pytest.mark.parametrize("which", PROBLEMS)
def test_what_is_seen_twice_disqualifies(which: str) -> None:
    loads, facts, sentence = PROBLEMS[which]
    once = [*session(1), *differing(2, 0, *loads, **facts)]
    again = next_step(WHO, (1, 2), LOADS, once)
    assert again is not None
    assert (again.workers, again.again) == (1, 1)
    assert set(again.loads) == set(loads)
    twice = [
        *once,
        *(seen(1, load, 1) for load in loads),
        *(seen(2, load, 1, **dict(facts)) for load in loads),
    ]
    assert next_step(WHO, (1, 2, 4), LOADS, twice) is None  # no need to try more
    found = came_to(twice)
    assert found.survived is False
    assert sentence in found.sentence


@pytest.mark.parametrize("which", PROBLEMS)
def test_what_is_seen_once_is_chance(which: str) -> None:
    loads, facts, _ = PROBLEMS[which]
    once = [*session(1), *differing(2, 0, *loads, **facts)]
    well = [*once, *(seen(count, load, 1) for load in loads for count in (1, 2))]
    assert next_step(WHO, (1, 2), LOADS, well) is None
    assert came_to(well).survived is True


def test_a_slow_app_is_compared_with_its_own_time() -> None:
    """5 ms more of 200 ms is noise; 40 ms more is not."""
    for p50, survives in ((205.0, True), (240.0, False)):
        results = [
            measurement
            for again in (0, 1)
            for count in (1, 2)
            for measurement in differing(count, again, LOW, p50=p50 if count == 2 else 200.0, p90=p50)
        ]
        assert came_to(results).survived is survives


def test_a_fault_that_shows_only_at_four_is_found_where_four_are_asked_for() -> None:
    results = [measurement for again in (0, 1) for count in (1, 2) for measurement in session(count, again)]
    results += [measurement for again in (0, 1) for measurement in session(4, again, rps=500.0)]
    assert came_to(results[:16]).survived is True
    found = came_to(results, (1, 2, 4))
    assert found.survived is False
    assert "4 workers" in found.sentence


def test_a_server_that_does_not_start_with_two_is_out_and_a_package_that_is_missing_tells_nothing() -> None:
    for kind, survived in ((FailureKind.START, False), (FailureKind.INSTALL, None)):
        results: list[Result] = []
        for again in (0, 1):
            results += session(1, again)
            results += [made.failed(measurement.trial, "it ended", kind) for measurement in session(2, again)]
        assert came_to(results).survived is survived


def test_a_rate_that_the_generator_ended_is_no_loss() -> None:
    ended = Flag(FlagKind.GENERATOR_SATURATED, Severity.INVALID, "The generator.", "More.")
    results = [
        measurement
        for again in (0, 1)
        for count in (1, 2)
        for measurement in differing(
            count, again, BUSY, **({"rps": 1000.0, "flags": (ended,)} if count == 2 else {})
        )
    ]
    assert came_to(results).survived is True


def test_one_that_computes_and_gains_nothing_from_a_second_cpu_does_not_scale() -> None:
    two = Placement((0, 1), (2,), (2,), False, "nothing")
    one_cpu = [
        measurement
        for again in (0, 1)
        for count in (1, 2)
        for measurement in session(count, again, rps=3500.0)
    ]
    assert came_to(one_cpu).scales_to is None  # there is no second CPU to gain from
    placed = [replace(measurement, placement=two) for measurement in one_cpu]
    assert came_to(placed).scales_to == 2  # as much as half of two
    less = [
        replace(measurement, placement=two)
        for again in (0, 1)
        for count in (1, 2)
        for measurement in session(count, again, rps=4000.0 if count == 1 else 3000.0)
    ]
    found = came_to(less)
    assert (found.survived, found.scales_to) == (True, 1)
    assert "does not scale" in found.sentence


def test_a_stack_without_workers_says_so_and_is_recommended() -> None:
    found = judge_check(
        Contestant("waitress"), replace(STACK, name="waitress", knobs={"threads": 4}), (1, 2), ()
    )
    assert found is not None
    assert found.survived is None


def test_who_does_not_survive_is_shown_and_the_next_best_recommended() -> None:
    raced = [*made.FAST, *made.SLOW]
    collapsed = [
        replace(
            measurement,
            trial=replace(measurement.trial, contestant=with_workers(Contestant("granian"), count)),
        )
        for again in (0, 1)
        for count in (1, 2)
        for measurement in session(count, again, rps=4000.0 if count == 1 else 450.0)
    ]
    found = answer(made.HELLO_Q, raced, made.STACKS, checks=collapsed, worker_counts=(1, 2))
    assert found is not None
    assert found.best == ("uvicorn",)
    assert found.outcome is Outcome.WINNER
    row = next(standing for standing in found.standings if standing.contestant == "granian")
    assert row.rank is None
    assert row.throughput_rps is not None
    assert "450/s with 2 workers" in row.notes[0]
    assert [check.contestant for check in found.checks] == ["granian"]
    assert any("not checked" in reason for reason in found.why)
    both = answer(
        made.HELLO_Q, raced, made.STACKS, checks=[*collapsed, *session(1), *session(2)], worker_counts=(1, 2)
    )
    assert both is not None
    assert [(check.contestant, check.survived) for check in both.checks] == [
        ("uvicorn", True),
        ("granian", False),
    ]


def test_a_run_without_a_check_is_judged_as_before() -> None:
    found = answer(made.HELLO_Q, [*made.FAST, *made.SLOW], made.STACKS)
    assert found is not None
    assert (found.best, found.checks) == (("granian",), ())

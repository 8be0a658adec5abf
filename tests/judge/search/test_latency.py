"""Latency over load: the right percentile of all boots together, and only of loads that show the server."""

import math
from dataclasses import replace

import pytest
from tests.judge import made, queued

from velodrome.judge.search.load_levels import BOOTS, SHARES, in_turn, latency_at, seconds_at, shown_metric
from velodrome.model.condition import load_metric, read
from velodrome.model.measurement import FlagKind, Measurement, Purpose, Step

SERVICE_S = 0.005
MD1 = ((0.46288, 20.0), (0.62953, 30.0), (0.77349, 50.0))
"""Load and p99 of M/D/1, in milliseconds, of 5 ms each (`benchmarks/queues.py` works it out)."""


def loads(rate: float, seconds: float, boots: int = BOOTS) -> list[Measurement]:
    return [
        replace(
            queued.measured(queued.open_trial(rate, seconds), SERVICE_S, seed=boot),
            step=Step(boot, boot, Purpose.LATENCY, 0.0),
        )
        for boot in range(1, boots + 1)
    ]


@pytest.mark.simulation
@pytest.mark.parametrize(("load", "p99_ms"), MD1)
def test_the_p99_of_a_queue_is_what_theory_says(load: float, p99_ms: float) -> None:
    found = latency_at(load, load / SERVICE_S, load_metric("p99"), loads(load / SERVICE_S, 400.0))
    assert found.ms == pytest.approx(p99_ms, rel=0.05)
    assert found.boots == BOOTS
    assert found.requests == pytest.approx(BOOTS * 400 * load / SERVICE_S, rel=0.02)


@pytest.mark.simulation
def test_a_percentile_with_few_requests_beyond_has_an_interval_that_holds_the_true_one_in_two_worlds_of_three() -> (
    None
):
    held, (load, p99_ms) = 0, MD1[0]
    for world in range(200):
        trial = queued.open_trial(load / SERVICE_S, 10.0)
        found = latency_at(
            load, load / SERVICE_S, load_metric("p99"), [queued.measured(trial, SERVICE_S, 1000 + world)]
        )
        assert found.low_ms is not None
        assert found.high_ms is not None
        held += found.low_ms <= p99_ms <= found.high_ms
    # Of independent requests it would be 95 %; those of a queue are slow together. `docs/capacity.md` says so.
    assert held >= 2 / 3 * 200


def test_what_the_machine_or_the_lab_spoilt_does_not_count_and_what_remains_does() -> None:
    flag = replace(made.INVALID, kind=FlagKind.OTHER_LOAD)
    good, bad = loads(100.0, 10.0, boots=2)
    spoilt = replace(bad, flags=(flag,))
    found = latency_at(0.5, 100.0, load_metric("p99"), [good, spoilt])
    assert found.boots == 1
    assert not found.why
    none = latency_at(0.5, 100.0, load_metric("p99"), [spoilt])
    assert none.ms is None
    assert none.why == flag.sentence


def test_too_few_requests_give_no_percentile() -> None:
    found = latency_at(0.2, 10.0, load_metric("p99"), loads(10.0, 2.0))
    assert found.ms is None
    assert found.requests > 0


def test_a_load_is_so_long_that_all_boots_together_have_enough_requests() -> None:
    p99 = load_metric("p99")
    assert BOOTS * 60.0 * seconds_at(60.0, p99, 0.5) >= 300
    assert seconds_at(10_000.0, p99, 3.0) == 3.0
    assert seconds_at(0.1, p99, 3.0) == 20.0


def test_the_percentile_is_the_slo_s_and_else_the_p99() -> None:
    assert shown_metric([read("errors < 1% and p95 < 200ms")]).percentile == 95
    assert shown_metric([read("sent.p50 < 2ms")]).span == "sent"
    assert shown_metric([read("mean < 5ms")]).percentile == 99
    assert shown_metric([]).span == "due"


def test_every_boot_has_every_share_and_begins_with_another() -> None:
    turns = [in_turn(boot) for boot in range(BOOTS)]
    assert all(sorted(turn) == sorted(SHARES) for turn in turns)
    assert len({turn[0] for turn in turns}) == BOOTS
    assert math.isclose(max(SHARES), 0.95)

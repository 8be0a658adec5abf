"""A check holds where its whole interval does, fails where none of it does, and else tells what would settle it."""

from dataclasses import replace
from typing import Any

import pytest
from tests.judge import made
from tests.judge.claims.made_claims import checked, figure, ratio, value

from velodrome.model.claim import Check, Judgement
from velodrome.model.load import Arrivals, Load, Open
from velodrome.model.measurement import (
    Flag,
    FlagKind,
    HostFacts,
    Latency,
    Measurement,
    Placement,
    QueueFacts,
    Severity,
)
from velodrome.model.study import Question

HOLDS, FAILS, CANNOT = Judgement.HOLDS, Judgement.FAILS, Judgement.CANNOT_TELL
FIELD = [*made.FAST, *made.SLOW]
BUSY = Flag(FlagKind.OTHER_LOAD, Severity.INVALID, "Other programs used 60 % of this machine.", "Stop them.")
SATURATED = [
    Flag(
        FlagKind.GENERATOR_SATURATED, Severity.INVALID, "The generator used 99 % of its CPU.", "Give it more."
    ),
    Flag(FlagKind.LITTLES_LAW, Severity.INVALID, "4,000/s × 2 ms makes 8, not 40.", "Read neither."),
]
TWICE = ("throughput_rps", "hello/granian", "hello/uvicorn")


def test_a_ratio_is_paired_by_block_and_judged_by_its_whole_interval() -> None:
    found = checked(ratio(*TWICE, at_least=1.5, published=1.9), FIELD)
    assert found.judgement is HOLDS
    assert found.measured is not None
    assert found.measured.low < 1.96 < found.measured.high
    assert found.measured.mid == pytest.approx((4000 / 2000 * 4100 / 2100 * 3950 / 2010) ** (1 / 3))


@pytest.mark.parametrize(
    ("bounds", "judgement"),
    [
        ({"at_least": 3.0}, FAILS),
        ({"at_most": 1.2}, FAILS),
        ({"at_most": 3.0}, HOLDS),
        ({"at_least": 1.5, "at_most": 3.0}, HOLDS),
        ({"at_least": 2.5, "at_most": 3.0}, FAILS),
        ({"at_least": 1.96}, CANNOT),
    ],
)
def test_bounds_decide(bounds: dict[str, Any], judgement: Judgement) -> None:
    assert checked(ratio(*TWICE, **bounds), FIELD).judgement is judgement


def test_a_failure_says_where_all_of_it_lies() -> None:
    reason = checked(ratio(*TWICE, at_least=3.0), FIELD).reason
    assert reason.startswith("all of 1.97× [1.")
    assert reason.endswith("lies below 3×")


def test_what_cannot_be_told_says_how_many_blocks_would_tell() -> None:
    near = checked(
        ratio(*TWICE, at_least=1.9), [*made.steady("granian", [4000]), *made.steady("uvicorn", [2000])]
    )
    assert near.judgement is CANNOT
    assert "reaches across 1.9×; " in near.reason
    assert "more blocks (" in near.reason
    assert "would decide" in near.reason
    nearest = checked(ratio(*TWICE, at_least=1.965), FIELD)
    assert "so near that even 60 blocks would not decide" in nearest.reason


def test_a_measurement_set_aside_supports_nothing() -> None:
    invalid = made.steady("granian", [4000, 4100, 3950], flags=[BUSY])
    found = checked(ratio(*TWICE, at_least=1.5), [*invalid, *made.SLOW])
    assert (found.judgement, found.measured) == (CANNOT, None)
    assert found.reason == (
        "granian · rsgi under closed-40 was set aside (blocks 1, 2 and 3): Other programs used 60 % of this machine."
    )


def test_one_that_ended_the_generator_does_at_least_as_much_as_was_seen() -> None:
    fast = made.steady("granian", [4000, 4100, 3950], flags=SATURATED)
    found = checked(ratio(*TWICE, at_least=1.5), [*fast, *made.SLOW])
    assert (found.judgement, found.limit) == (HOLDS, "at least")
    above = checked(ratio(*TWICE, at_least=3.0), [*fast, *made.SLOW])
    assert above.judgement is CANNOT
    assert above.reason.endswith("the number is at least this; give the generator more CPUs")
    assert checked(ratio(*TWICE, at_most=1.2), [*fast, *made.SLOW]).judgement is FAILS


def test_one_that_ended_the_generator_lets_another_gain_at_most_so_much() -> None:
    slow = made.steady("uvicorn", [2000, 2100, 2010], flags=SATURATED)
    assert checked(ratio(*TWICE, at_most=3.0), [*made.FAST, *slow]).judgement is HOLDS
    assert checked(ratio(*TWICE, at_least=1.5), [*made.FAST, *slow]).judgement is CANNOT
    both = checked(ratio(*TWICE, at_least=1.5), [*made.steady("granian", [4000], flags=SATURATED), *slow])
    assert both.reason == "both reach the end of what was tried; give the generator more CPUs for both"


def test_a_generator_at_its_end_excuses_no_other_doubt() -> None:
    fast = made.steady("granian", [4000, 4100, 3950], flags=[*SATURATED, BUSY])
    assert checked(ratio(*TWICE, at_least=1.5), [*fast, *made.SLOW]).judgement is CANNOT


def test_blocks_set_aside_leave_the_others_to_count() -> None:
    measurement = made.measured(made.trial("granian", block=0), 9000, flags=[BUSY])
    found = checked(ratio(*TWICE, at_least=1.5), [measurement, *made.FAST[1:], *made.SLOW])
    assert found.measured is not None
    assert found.measured.high < 3


def test_one_that_failed_or_was_never_run_says_so() -> None:
    failed = [made.failed(made.trial("granian", block=0), "No module named 'granian'")]
    found = checked(ratio(*TWICE, at_least=1.5), [*failed, *made.SLOW])
    assert found.reason == "granian · rsgi could not be measured: No module named 'granian'"
    lone = checked(ratio(*TWICE, at_least=1.5), made.SLOW)
    assert lone.reason == "hello/granian is not in this study"
    both = [made.trial("granian").contestant, made.trial("uvicorn").contestant]
    assert (
        checked(ratio(*TWICE, at_least=1.5), made.SLOW, contestants=both).reason
        == "hello/granian was not run"
    )
    skipped = checked(
        ratio(*TWICE, at_least=1.5), made.SLOW, contestants=both, form="quick", skipped=("hello/granian",)
    )
    assert skipped.reason == "the quick form leaves hello/granian out"


def test_too_few_cpus_of_its_own_are_reported_and_nothing_is_judged() -> None:
    found = checked(ratio(*TWICE, at_least=1.5), FIELD, needs_cpus=2)
    assert found.judgement is CANNOT
    assert found.reason == ("undecided on this machine: it needs 2 CPUs for the server; here it had 1 of 2")


def sharing(share: float) -> list[Measurement]:
    """The field on two CPUs, of which its generator used a share of one, with the flag that calls for."""
    placed = Placement((0, 1), (1,), (1,), True, "nothing")
    severity = Severity.INVALID if share >= 0.5 else Severity.NOTE
    flags = (Flag(FlagKind.CPU_SHARED, severity, "Shared.", "Share less."),) if share >= 0.1 else ()
    return [
        replace(
            measurement,
            placement=placed,
            load=replace(measurement.load, generator_cpu_s=share * measurement.load.duration_s),
            flags=flags,
        )
        for measurement in FIELD
    ]


@pytest.mark.parametrize(("share", "judgement"), [(0.05, HOLDS), (0.3, HOLDS), (0.6, CANNOT)])
def test_a_shared_cpu_spoils_a_ratio_of_rates_by_its_measured_share(
    share: float, judgement: Judgement
) -> None:
    assert checked(ratio(*TWICE, at_least=1.5), sharing(share), needs_cpus=2).judgement is judgement


def test_a_cpu_that_is_half_used_by_others_is_none_of_the_servers() -> None:
    found = checked(value("throughput_rps", "hello/granian", at_least=1000), sharing(0.6), needs_cpus=2)
    assert found.judgement is CANNOT
    assert "60 %" in found.reason


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6])
def test_cpu_per_request_is_judged_however_much_of_a_cpu_is_shared(share: float) -> None:
    costs = ratio("cpu_us", "hello/granian", "hello/uvicorn", at_most=0.9)
    assert checked(costs, sharing(share)).judgement is HOLDS


def test_a_rate_on_a_cpu_that_is_half_used_by_its_load_is_what_the_server_does_at_least() -> None:
    rate = value("throughput_rps", "hello/granian", at_least=1000)
    assert checked(rate, sharing(0.6)).judgement is HOLDS
    assert checked(value("throughput_rps", "hello/granian", at_most=1000), sharing(0.6)).judgement is FAILS
    assert checked(value("throughput_rps", "hello/granian", at_most=9000), sharing(0.6)).judgement is CANNOT


def test_how_much_more_one_gains_than_another_is_compared_too() -> None:
    trials = [*FIELD, *made.steady("gevent", [1100, 1150, 1080]), *made.steady("sync", [1000, 1030, 990])]
    check = Check(
        figure("throughput_rps", "hello/granian"),
        figure("throughput_rps", "hello/uvicorn"),
        1.2,
        None,
        than=(figure("throughput_rps", "hello/gevent"), figure("throughput_rps", "hello/sync")),
    )
    found = checked(check, trials)
    assert found.judgement is HOLDS
    assert found.measured is not None
    assert found.measured.mid == pytest.approx(1.96 / 1.1, rel=0.02)


def under(load: Load, block: int, rps: float, p99: float, **facts: object) -> Measurement:
    trial = made.trial("uvicorn", Question("hello", made.HELLO, (load,)), block, load)
    measurement = made.measured(trial, rps)
    latency = Latency(p99 / 2, p99 / 2, p99 / 2, p99, p99, p99, p99, p99)
    return replace(measurement, load=replace(measurement.load, due=latency, sent=latency), **facts)  # type: ignore[arg-type]


RATES = tuple(Load(Open(rate), 2.0) for rate in (1000, 1500, 2000))
OPEN_Q = Question("hello", made.HELLO, RATES)


def ladder(*holding: int) -> list[Measurement]:
    """Blocks in which so many of the three rates hold."""
    return [
        under(load, block, 1000 if place >= count else load.pace.rate, 900 if place >= count else 5)  # type: ignore[union-attr]
        for block, count in enumerate(holding)
        for place, load in enumerate(RATES)
    ]


@pytest.mark.parametrize(
    ("holding", "bounds", "judgement", "limit"),
    [
        ((2, 2, 2), {"at_least": 1000.0}, HOLDS, ""),
        ((2, 2, 2), {"at_least": 5000.0}, FAILS, ""),
        ((3, 3, 3), {"at_least": 1000.0}, HOLDS, "at least"),
        ((3, 3, 3), {"at_least": 5000.0}, CANNOT, "at least"),
        ((3, 3, 3), {"at_most": 5000.0}, CANNOT, "at least"),
        ((0, 0, 0), {"at_most": 5000.0}, HOLDS, "at most"),
        ((0, 0, 0), {"at_least": 500.0}, CANNOT, "at most"),
    ],
)
def test_the_highest_rate_that_holds_is_reported_with_where_the_rates_end(
    holding: tuple[int, ...], bounds: dict[str, Any], judgement: Judgement, limit: str
) -> None:
    found = checked(value("sustained_rps", "hello/uvicorn", **bounds), ladder(*holding), questions=[OPEN_Q])
    assert (found.judgement, found.limit) == (judgement, limit)
    if judgement is CANNOT:
        assert "use other rates" in found.reason


def test_a_rate_holds_within_the_bound_that_the_check_gives() -> None:
    strict = value("sustained_rps", "hello/uvicorn", at_most=1400.0, bound_ms=1.0)
    assert checked(strict, ladder(2, 2, 2), questions=[OPEN_Q]).limit == "at most"


@pytest.mark.parametrize(("arrivals", "limit"), [("constant", "at most"), ("poisson", "at least")])
def test_a_rate_holds_where_chance_alone_takes_what_is_missing(arrivals: Arrivals, limit: str) -> None:
    load = Load(Open(1000, arrivals), 2.0)
    found = [under(load, block, 950, 5) for block in range(3)]
    questions = [Question("hello", made.HELLO, (load,))]
    claim = value("sustained_rps", "hello/uvicorn", at_least=1000.0)
    assert checked(claim, found, questions=questions).limit == limit


def test_that_clients_are_turned_away_is_shown_by_what_is_set_aside_for_it() -> None:
    overflowed = replace(made.INVALID, kind=FlagKind.LISTEN_QUEUE_OVERFLOWED)
    trials = [
        replace(measurement, queue=QueueFacts(128, 128, 40 + block, 0), flags=(overflowed,))
        for block, measurement in enumerate(made.SLOW)
    ]
    check = value("listen_overflows", "hello/uvicorn", at_least=1.0)
    found = checked(check, trials)
    assert found.judgement is HOLDS
    assert found.measured is not None
    assert (found.measured.low, found.measured.mid, found.measured.high) == (40, 41, 42)
    ours = [replace(trial, flags=(made.INVALID,)) for trial in trials]
    assert checked(check, ours).judgement is CANNOT


def test_a_share_of_requests_has_an_interval_near_nothing_too() -> None:
    trials = [
        replace(measurement, load=replace(measurement.load, requests=1000, ok=1000, outcomes={"ok": 1000}))
        for measurement in made.SLOW
    ]
    found = checked(value("reset_share", "hello/uvicorn", at_most=0.01), trials)
    assert found.judgement is HOLDS
    assert found.measured is not None
    assert found.measured.mid == 0
    assert 0 < found.measured.high < 0.002


def test_a_server_that_dies_has_failed_in_a_share_of_blocks() -> None:
    trials = [made.failed(made.trial("uvicorn", block=block), "it died") for block in range(3)]
    assert checked(value("failed_share", "hello/uvicorn", at_least=1.0), trials).judgement is HOLDS
    assert checked(value("failed_share", "hello/uvicorn", at_least=1.0), made.SLOW).judgement is FAILS


def test_latency_that_a_driver_does_not_report_is_missing_and_what_it_reports_is_named() -> None:
    load = replace(made.CLOSED, driver="wrk")
    question = Question("hello", made.HELLO, (load,))
    none = Latency(None, None, None, None, None, None, None, None)
    trials = []
    for block in range(3):
        measurement = made.measured(made.trial("uvicorn", question, block, load), 2000)
        sent = replace(none, p50=10.0 + block)
        trials.append(replace(measurement, load=replace(measurement.load, due=none, sent=sent)))
    found = checked(value("p50_ms", "hello/uvicorn", at_most=20.0), trials, questions=[question])
    assert "wrk reported no p50 from due" in found.reason
    assert "its service time is another metric" in found.reason
    service = checked(value("p50_service_ms", "hello/uvicorn", at_most=20.0), trials, questions=[question])
    assert service.judgement is HOLDS


def test_the_ceiling_of_littles_law_is_a_figure_as_well() -> None:
    trials = made.steady("sync", [9.8, 9.9, 9.7], made.THIRD_Q)
    near = value("ceiling_share", "third-party/sync", at_least=0.8, at_most=1.1)
    assert checked(near, trials, questions=[made.THIRD_Q]).judgement is HOLDS
    exact = checked(value("ceiling_rps", "third-party/sync", at_most=10.0), trials, questions=[made.THIRD_Q])
    assert exact.measured is not None
    assert (exact.judgement, exact.measured.mid) == (HOLDS, 10)


def test_no_number_is_divided_by_nothing() -> None:
    trials = [
        replace(
            measurement,
            load=replace(measurement.load, requests=1000, ok=1000, outcomes={"ok": 1000}),
            host=HostFacts(None, None),
        )
        for measurement in FIELD
    ]
    check = ratio("reset_share", "hello/granian", "hello/uvicorn", at_least=1.0)
    assert checked(check, trials).reason == "it would be divided by nothing: the other number is 0"

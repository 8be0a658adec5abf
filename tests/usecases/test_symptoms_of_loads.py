"""Loads that were measured for another purpose are read as the symptoms that the doctor's screens read."""

from dataclasses import replace

import pytest
from tests.judge.loads_made import DOCUMENT, FULL, SLOW, loaded

from velodrome.guest import catalog
from velodrome.model.load import Arrivals, Closed, Load, Open
from velodrome.model.measurement import (
    Flag,
    FlagKind,
    Measurement,
    ServerSample,
    Severity,
    WorkerUse,
)
from velodrome.model.symptoms import Symptoms, symptoms_of_load
from velodrome.usecases.suspects import symptoms

pytestmark = pytest.mark.unit
STACK = catalog.stacks()["uvicorn"]
FRESH = replace(SLOW, keepalive=False)


def seen(*measured: Measurement, machine_cpus: int = 2) -> Symptoms:
    return symptoms(measured, STACK, machine_cpus)


def test_the_slope_has_two_ends_and_littles_law_between_them() -> None:
    found = seen(loaded(SLOW, 100, 50.0), loaded(FULL, 800, 80.0, cpus=0.3)).slope
    assert found is not None
    ends = found.in_work
    assert [ends.low, ends.mid, ends.high] == pytest.approx([36, 40, 44])
    assert (found.knee, found.rises) == (64, False)
    assert found.plateau.cpus == pytest.approx(0.3)


def test_where_all_that_are_in_flight_are_in_work_nothing_bounds_them() -> None:
    found = seen(loaded(SLOW, 100, 50.0), loaded(FULL, 1200, 53.0)).slope
    assert found is not None
    assert found.rises


def test_one_connection_is_better_than_a_low_rate_and_a_high_rate_tells_nothing() -> None:
    alone = loaded(Load(Closed(1), 2.0), 40, 25.0)
    found = seen(loaded(SLOW, 100, 50.0), alone, loaded(FULL, 800, 80.0)).slope
    assert found is not None
    assert found.in_work.mid == pytest.approx(20)
    assert seen(loaded(replace(SLOW, pace=Open(700)), 700, 50.0), loaded(FULL, 800, 80.0)).slope is None
    assert seen(loaded(FULL, 800, 80.0)).slope is None


def test_the_same_rate_on_fresh_and_on_reused_connections_is_compared() -> None:
    found = seen(loaded(SLOW, 100, 42.5), loaded(FRESH, 100, 0.4), loaded(FULL, 800, 80.0)).reused
    assert found is not None
    assert (found.first_ms, found.later_ms) == (0.4, 42.5)


def test_of_a_repeat_that_does_not_show_it_again_the_repeat_counts() -> None:
    again = (loaded(SLOW, 100, 0.5), loaded(FRESH, 100, 0.4))
    found = seen(loaded(SLOW, 100, 42.5), loaded(FRESH, 100, 0.4), *again).reused
    assert found is not None
    assert found.later_ms == 0.5


def test_the_fastest_of_a_run_stands_for_a_fresh_connection_where_all_others_take_as_long() -> None:
    both = loaded(SLOW, 100, 42.5, fastest=0.4), loaded(FULL, 1490, 43.0, fastest=0.6)
    found = seen(*both).reused
    assert found is not None
    assert (found.first_ms, found.later_ms) == (0.4, 42.5)


def test_a_load_that_fell_behind_tells_how_long_it_was_and_nothing_else() -> None:
    behind = loaded(replace(SLOW, pace=Open(9000)), 1800, 550.0, mean=300.0, fastest=0.5)
    found = seen(loaded(FULL, 1490, 43.0, fastest=0.6), behind).reused
    assert found is not None
    assert (found.first_ms, found.later_ms) == (0.6, 43.0)


@pytest.mark.parametrize(("arrivals", "counts"), [("constant", False), ("poisson", True)])
def test_fewer_requests_than_the_rate_by_chance_alone_are_no_load_that_fell_behind(
    arrivals: Arrivals, counts: bool
) -> None:
    fewer = loaded(replace(SLOW, pace=Open(20, arrivals)), 16, 42.5, fastest=0.4)
    found = seen(loaded(FULL, 1490, 43.0, fastest=0.6), fewer).reused
    assert (found is not None and found.first_ms == 0.4) is counts


@pytest.mark.parametrize(
    "more",
    [{"mean": 25.0, "fastest": 0.4}, {"fastest": 0.4, "cpus": 0.95}, {"fastest": None}],
    ids=["two kinds of requests", "waits for the CPU", "not known"],
)
def test_else_the_fastest_says_nothing_of_connections(more: dict[str, float]) -> None:
    assert seen(loaded(SLOW, 100, 42.5, **more)).reused is None  # type: ignore[arg-type]


def test_what_the_lab_spoilt_says_nothing() -> None:
    spoilt = loaded(SLOW, 100, 42.5, fastest=0.4)
    flag = Flag(FlagKind.GENERATOR_LAGGED, Severity.INVALID, "", "")
    assert seen(replace(spoilt, flags=(flag,))).reused is None


def test_counters_and_outcomes_are_of_all_loads() -> None:
    full = loaded(FULL, 800, 80.0, workers=2, outcomes={"reset": 400, "refused": 400})
    workers = (WorkerUse(1, 0.7, None), WorkerUse(2, 0.1, None), WorkerUse(3, 0.0, None))
    samples = (
        ServerSample(1.0, 0.1, 1, 1, 1, None, 0, 4, 0.1),
        ServerSample(2.0, 0.2, 1, 1, 1, None, 0, 9, 0.5),
    )
    full = replace(
        full,
        queue=replace(full.queue, overflows=9),
        server=replace(full.server, workers=workers, samples=samples),
    )
    found = seen(loaded(SLOW, 100, 50.0, workers=2), full, machine_cpus=8).counted
    assert found is not None
    assert (found.overflows, found.fails_from, found.machine_cpus) == (9, 64, 8)
    assert found.lost == pytest.approx(1 / 3)
    assert found.throttled == pytest.approx(0.25)
    assert found.busiest == pytest.approx(1.75)


def test_failures_that_are_there_with_half_as_many_do_not_begin_anywhere() -> None:
    half = Load(Closed(32), 2.0)
    found = seen(
        loaded(FULL, 800, 80.0, outcomes={"bad_status": 400}),
        loaded(half, 800, 80.0, outcomes={"bad_status": 9}),
    ).counted
    assert found is not None
    assert found.fails_from is None


def test_requests_that_a_rate_above_the_capacity_leaves_in_flight_have_not_failed() -> None:
    above = Load(Open(6000, connections=1000), 2.0)
    slow, over = loaded(SLOW, 100, 50.0), loaded(above, 1500, 900.0, outcomes={"unfinished": 9000})
    over = replace(over, load=replace(over.load, requests=12000, mean_in_flight=1000.0))
    found = seen(slow, over).counted
    assert found is not None
    assert found.fails_from is None


def flagged(kind: FlagKind, load: Load = FULL, rps: float = 800, **facts: float) -> Measurement:
    """Return a load in which this was seen."""
    return replace(loaded(load, rps, 80.0), flags=(Flag(kind, Severity.NOTE, "", "", facts),))


def test_what_flags_found_is_of_the_load_with_most_of_it() -> None:
    found = seen(
        loaded(SLOW, 100, 50.0),
        flagged(FlagKind.CONNECTIONS_NEVER_IN, outside=48, connections=64),
        flagged(FlagKind.CLOSED_UNREAD, closed_unread=400, reset=0),
        flagged(FlagKind.IDLE_WORKERS_BURN, processes=1, cpu_s=0.4),
    ).counted
    assert found is not None
    assert (found.never_in, found.unread, found.burning) == (0.75, 0.25, 1)


def test_a_server_that_polls_at_rest_has_no_worker_that_is_woken_for_others() -> None:
    found = seen(flagged(FlagKind.IDLE_WORKERS_BURN, processes=1, cpus=0.4)).counted
    assert found is not None
    assert found.burning == 0


def test_what_was_lost_counts_in_the_load_in_which_most_workers_were_replaced() -> None:
    replaced = replace(
        loaded(FULL, 800, 80.0, outcomes={"reset": 16}),
        flags=(Flag(FlagKind.SERVER_RESTARTED, Severity.INVALID, "", "", {"replaced": 2}),),
    )
    found = seen(loaded(FULL, 800, 80.0, outcomes={"refused": 800}), replaced).counted
    assert found is not None
    assert found.replaced == 2
    assert found.lost == pytest.approx(16 / 1616)


def test_a_full_queue_is_no_fault_of_an_open_loop_that_falls_behind() -> None:
    behind = loaded(replace(SLOW, pace=Open(9000)), 1800, 550.0)
    behind = replace(behind, queue=replace(behind.queue, overflows=300))
    full = loaded(FULL, 800, 80.0)
    found = seen(behind, replace(full, queue=replace(full.queue, overflows=3))).counted
    assert found is not None
    assert found.overflows == 3


def test_throughput_that_falls_to_nothing_while_no_cpu_is_used_hangs_from_there_on() -> None:
    few, many = loaded(Load(Closed(8), 2.0), 400, 20.0), Load(Closed(128), 2.0)
    for cpus, hangs_from in ((0.01, 128), (0.9, None)):
        found = seen(few, loaded(FULL, 800, 80.0), loaded(many, 2, 900.0, cpus=cpus)).counted
        assert found is not None
        assert found.hangs_from == hangs_from


def sampled(measurement: Measurement, *, fds: list[int], rss: list[int]) -> Measurement:
    """Return a load with samples half a second apart."""
    samples = tuple(
        ServerSample(0.5 * number, 0.1, memory, 1, 1, count, 0)
        for number, (count, memory) in enumerate(zip(fds, rss, strict=True))
    )
    return replace(measurement, server=replace(measurement.server, samples=samples))


def test_what_rises_in_every_half_second_of_every_load_is_left_behind_by_requests() -> None:
    full = loaded(FULL, 800, 80.0)
    leaks = sampled(full, fds=[100, 120, 140, 160, 180], rss=[0, 1_000_000, 1_800_000, 3_000_000, 3_200_000])
    worse = sampled(full, fds=[100, 200, 300, 400, 500], rss=[0, 10**7, 2 * 10**7, 3 * 10**7, 4 * 10**7])
    found = seen(leaks, worse).counted
    assert found is not None
    assert found.left_open == pytest.approx(80 / 1600)
    assert found.left_bytes == pytest.approx(3_200_000 / 1600)
    filled = sampled(full, fds=[100, 120, 140, 140, 140], rss=[10, 20, 30, 30, 30])
    steady = seen(leaks, filled).counted
    assert steady is not None
    assert (steady.left_open, steady.left_bytes) == (0.0, 0.0)
    once = seen(leaks).counted
    assert once is not None
    assert once.left_bytes == 0.0, "one load may fill a cache"


def test_how_the_server_is_set_and_what_is_installed_is_known() -> None:
    found = seen(replace(loaded(FULL, 800, 80.0, workers=2), packages={"redis": "6.4.0"}))
    assert (found.setting.stack, found.setting.workers, found.setting.interface) == ("uvicorn", 2, "asgi")
    assert found.setting.knobs["workers"] == 2
    assert found.counted is not None
    assert found.counted.packages == {"redis"}


def test_without_any_load_nothing_is_known() -> None:
    found = seen()
    assert (found.slope, found.reused) == (None, None)


def test_a_load_of_a_url_shows_what_reused_connections_do() -> None:
    found = symptoms_of_load(DOCUMENT).reused
    assert found is not None
    assert (found.first_ms, found.later_ms) == (0.5, 42.5)


@pytest.mark.parametrize(
    "other",
    [
        {"connections": {"opened": 4000}},
        {"load": {"protocol": "grpc"}},
        {"server": {"busiest_cpu_s": 2.9, "span_s": 3.0}},
        {"latency_ms": {"sent": {"p50": None, "mean": None}}},
        {"ok": 3},
    ],
    ids=["each on its own", "no HTTP/1.1", "computes", "no latency", "too few"],
)
def test_a_load_that_tells_nothing_of_that_shows_nothing(other: dict[str, object]) -> None:
    assert symptoms_of_load({**DOCUMENT, **other}).reused is None

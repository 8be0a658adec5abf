from collections.abc import Callable
from dataclasses import replace

import pytest

from velodrome.judge.search import backlog, holding
from velodrome.judge.search.holding import Backlog, Demands, Tried
from velodrome.model.condition import Figure, Figures
from velodrome.model.condition_text import read
from velodrome.model.load_metric import LoadMetric


def figures(**values: float | None) -> Figures:
    def look_up(metric: LoadMetric, counted: bool) -> Figure:
        value = values.get(metric.name)
        return Figure(value, "" if value is not None else "there were too few")

    return look_up


KEPT_UP = Tried(100.0, requests=300, ok=300, throughput_rps=99.0, figures=figures(p99=10.0, errors=0.0))
SLO = Demands(must=(read("p99 < 200ms and errors < 0.1%"),))
FAIL_IF = Demands(must_not=(read("p99 >= 200ms"),))


@pytest.mark.parametrize("demands", [Demands(), SLO, FAIL_IF])
def test_a_rate_that_is_kept_within_the_limits_holds(demands: Demands) -> None:
    assert holding.probe(KEPT_UP, demands).held is True


@pytest.mark.parametrize("demands", [SLO, FAIL_IF])
def test_a_broken_condition_is_told_with_figure_and_limit(demands: Demands) -> None:
    found = holding.probe(replace(KEPT_UP, figures=figures(p99=250.0, errors=0.0)), demands)
    assert (found.held, found.why) == (False, "p99 was 250 ms, and the limit is 200 ms")


@pytest.mark.parametrize("demands", [SLO, FAIL_IF])
def test_what_was_not_measured_cannot_be_told(demands: Demands) -> None:
    found = holding.probe(replace(KEPT_UP, figures=figures(errors=0.0)), demands)
    assert (found.held, found.why) == (None, "p99 was not measured: there were too few")


def test_half_a_condition_that_is_broken_needs_no_other_half() -> None:
    found = holding.probe(replace(KEPT_UP, figures=figures(errors=0.5)), SLO)
    assert (found.held, found.why) == (False, "errors was 50 %, and the limit is 0.1 %")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda one: replace(one, rising=backlog.Slope(42.0, 1.0)), "the backlog rose by 42.0/s"),
        (lambda one: replace(one, throughput_rps=80.0), "only 80.0/s were answered right"),
        (lambda one: replace(one, ok=290), "3.3 % of the requests failed"),
    ],
)
def test_a_server_that_does_not_keep_up_is_told_without_conditions(
    change: Callable[[Tried], Tried], why: str
) -> None:
    found = holding.probe(change(KEPT_UP), Demands())
    assert (found.held, found.why) == (False, why)


def test_a_trial_is_long_enough_for_the_percentile_that_is_named() -> None:
    assert SLO.seconds(1_000, 2.0) == 2.0
    assert SLO.seconds(50, 2.0) == pytest.approx(300 * 1.3 / 50)
    assert SLO.seconds(1, 2.0) == 60.0
    assert Demands().seconds(1, 2.0) == 2.0


def ticks(per_s: float, seconds: float) -> list[dict[str, float | int | str]]:
    return [
        {
            "phase": "measure",
            "at_s": at / 5,
            "in_flight": round(10 + per_s * at / 5),
            "waiting": 0,
            "requests": at * 20,
        }
        for at in range(round(seconds * 5))
    ]


def test_a_load_goes_on_while_its_backlog_stands_and_ends_when_it_rises() -> None:
    steady, rising = Backlog(100.0), Backlog(100.0)
    assert all(steady.goes_on(tick) for tick in ticks(0.0, 5))
    heard = [rising.goes_on(tick) for tick in ticks(50.0, 5)]
    assert heard[0]
    assert not heard[-1]
    assert rising.rising is not None
    assert rising.rising.per_s == pytest.approx(50, rel=0.1)
    assert heard.index(False) / 5 <= 2.5


def test_a_load_that_is_made_once_more_is_not_given_up_for_what_was_seen_before() -> None:
    watched = Backlog(100.0)
    assert not all(watched.goes_on(tick) for tick in ticks(50.0, 5))
    watched.begin()
    assert watched.rising is None
    assert all(watched.goes_on(tick) for tick in ticks(0.0, 5))


def test_the_warm_up_is_not_looked_at() -> None:
    watched = Backlog(100.0)
    assert all(watched.goes_on({**tick, "phase": "warmup"}) for tick in ticks(50.0, 5))

from collections.abc import Callable
from dataclasses import replace

import pytest

from velodrome.judge.search import holding
from velodrome.judge.search import holding as backlog
from velodrome.judge.search.holding import Backlog, Demands, OneByOne, Tried
from velodrome.model.condition import Figure, Figures, LoadMetric, read


def figures(**values: float | None) -> Figures:
    def look_up(metric: LoadMetric, counted: bool) -> Figure:
        value = values.get(metric.name)
        return Figure(value, "" if value is not None else "there were too few")

    return look_up


KEPT_UP = Tried(100.0, {"ok": 300}, ended_rps=99.0, figures=figures(p99=10.0, errors=0.0))
SLO = Demands(must=(read("p99 < 200ms and errors < 0.1%"),))
FAIL_IF = Demands(must_not=(read("p99 >= 200ms"),))


@pytest.mark.parametrize("demands", [Demands(), SLO, FAIL_IF])
def test_a_rate_that_is_kept_within_the_limits_holds(demands: Demands) -> None:
    assert holding.probe(KEPT_UP, demands).held is True


@pytest.mark.parametrize("demands", [SLO, FAIL_IF])
def test_a_broken_condition_is_reported_with_figure_and_limit(demands: Demands) -> None:
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
        (lambda tried: replace(tried, rising=backlog.Slope(42.0, 1.0)), "the backlog rose by 42.0/s"),
        (lambda tried: replace(tried, ended_rps=80.0), "only 80.0/s were answered"),
        (lambda tried: replace(tried, outcomes={"ok": 290, "timeout": 10}), "3.3 % of the requests failed"),
    ],
)
def test_a_server_that_does_not_keep_up_is_reported_without_conditions(
    change: Callable[[Tried], Tried], why: str
) -> None:
    found = holding.probe(change(KEPT_UP), Demands())
    assert (found.held, found.why) == (False, why)


WRONG = replace(KEPT_UP, outcomes={"ok": 285, "bad_status": 15}, figures=figures(p99=10.0, errors=0.05))
"""One answer in twenty is wrong, and the server keeps up."""


@pytest.mark.parametrize("text", ["errors < 10%", "p99 < 200ms and errors < 10%", "bad_status < 10%"])
def test_how_many_may_be_wrong_is_for_the_condition_on_it_to_say(text: str) -> None:
    tried = replace(WRONG, figures=figures(p99=10.0, errors=0.05, bad_status=0.05))
    assert holding.probe(tried, Demands(must=(read(text),))).held is True


@pytest.mark.parametrize("text", ["p99 < 200ms", "timeout < 10%"])
def test_what_no_condition_names_may_be_wrong_in_one_request_of_a_hundred(text: str) -> None:
    demands = Demands(must=(read(text),))
    tried = replace(WRONG, figures=figures(p99=10.0, timeout=0.0))
    found = holding.probe(tried, demands)
    assert (found.held, found.why, found.everywhere) == (False, "5.0 % of the requests failed", False)
    few = replace(tried, outcomes={"ok": 298, "bad_status": 2})
    assert holding.probe(few, demands).held is True


def test_what_is_wrong_with_nobody_before_it_is_wrong_at_any_rate() -> None:
    tried = replace(WRONG, alone=OneByOne({"ok": 188, "bad_status": 12}))
    found = holding.probe(tried, Demands(must=(read("p99 < 200ms"),)))
    assert found.held is False
    assert found.everywhere
    assert found.why == (
        "6.0 % of the answers are wrong at any rate: say errors < 10% or correct the requests"
    )
    assert holding.probe(tried, Demands(must=(read("errors < 10%"),))).held is True


def test_a_trial_is_long_enough_for_the_percentile_that_is_named() -> None:
    assert SLO.seconds(1_000, 2.0) == 2.0
    assert SLO.seconds(50, 2.0) == pytest.approx(300 * 1.3 / 50)
    assert SLO.seconds(1, 2.0) == 60.0
    assert Demands().seconds(100, 2.0) == 2.0


def test_a_trial_is_long_enough_for_independent_users_to_come_at_all() -> None:
    assert Demands().seconds(1, 2.0) >= 8


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

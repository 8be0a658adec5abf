from dataclasses import replace

from tests.judge.tuning.servers import APPS, CPUS, Servers, candidates, tune

from velodrome.judge.tuning.forecasting import changes
from velodrome.model.quantity import Interval
from velodrome.model.trial import Contestant
from velodrome.model.tuning import Candidate, Entry, Fate, Forecast, Goal, Looked, Tuned, TuneEnding, Wanted

THREADS = Candidate(Contestant("threads"), 2, 16)
TASKS = Candidate(Contestant("tasks"), 2, None)
LOOKS = {
    "threads": Looked(21.0, 1_000, 900, 40_000_000, 1, None),
    "tasks": Looked(21.3, 1_300, 740, 50_000_000, 1, None),
}


def entry(candidate: Candidate, fate: Fate, rps: float, allowed: float) -> Entry:
    value = Interval(rps * 0.98, rps, rps * 1.02)
    return Entry(candidate, fate, "", 4, value, 60_000_000, None, Forecast(allowed, f"{allowed}", 20, 60e6))


def tuned(goal: Goal = Goal.CAPACITY) -> Tuned:
    entries = (entry(THREADS, Fate.BEST, 700, 762), entry(TASKS, Fate.RUNNER_UP, 690, 1_538))
    return Tuned(goal, TuneEnding.SETTLED, "", entries, LOOKS, 20, 2)


def test_a_slower_third_party_changes_the_answer_where_slots_run_out() -> None:
    found = {change.what: change for change in changes(tuned(), CPUS)}
    assert found["wait"].instead == "tasks"
    assert 20 < found["wait"].at <= 40
    assert "tasks" in found["wait"].sentence
    assert "above 714/s none of these carries it" in found["rate"].sentence


def test_for_the_least_cpu_the_rate_changes_the_answer() -> None:
    (found,) = changes(tuned(Goal.CPU), CPUS, rate=300.0)
    assert (found.what, found.at, found.instead) == ("rate", 762, "tasks")
    assert "2.54 times the requested rate; then tasks" in found.sentence


def test_an_app_that_computes_has_no_third_party() -> None:
    found = changes(tune(Servers(APPS[0], 1), candidates(), Wanted(Goal.CAPACITY, CPUS)), CPUS)
    assert [reason.what for reason in found] == ["rate"]


def test_nothing_recommended_changes_nothing() -> None:
    nobody = Tuned(Goal.CAPACITY, TuneEnding.NEVER, "too slow", (), {}, 3, 2)
    assert changes(nobody, CPUS) == ()


def test_arithmetic_that_allows_less_than_was_measured_is_not_reported() -> None:
    best = replace(
        tuned(), entries=(entry(THREADS, Fate.BEST, 700, 762), entry(TASKS, Fate.RUNNER_UP, 690, 600))
    )
    assert any("arithmetic allows this one 762" in change.sentence for change in changes(best, CPUS))
    slow = replace(
        tuned(), entries=(entry(THREADS, Fate.BEST, 800, 762), entry(TASKS, Fate.RUNNER_UP, 690, 600))
    )
    assert not any("arithmetic" in change.sentence for change in changes(slow, CPUS))

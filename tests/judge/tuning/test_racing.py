"""Six kinds of app on simulated servers: close to the best there is, with a fifth of the grid's loads."""

from dataclasses import replace

import pytest
from tests.judge.tuning.servers import APPS, CPUS, App, Servers, candidates, regret

from velodrome.judge.tuning.racing import tune
from velodrome.model.tuning import Ask, Candidate, Fate, Goal, Told, TuneEnding, Wanted

GRID_LOADS = 15
GRID = candidates()
MOST = round(0.2 * GRID_LOADS * len(GRID))
CAPACITY = Wanted(Goal.CAPACITY, CPUS, most=MOST)


def raced(app: App, seeds: int, wrong: float = 0.02) -> None:
    regrets, inside, settled = [], 0, 0
    for seed in range(seeds):
        servers = Servers(app, seed, wrong=wrong)
        found = tune(servers, GRID, CAPACITY)
        best = found.best
        assert best is not None
        assert best.value is not None
        assert found.trials == len(servers.asked) <= MOST
        settled += found.ending is TuneEnding.SETTLED
        regrets.append(regret(servers, GRID, best.candidate))
        # Whoever wins was lucky too, which three per cent allow for.
        inside += best.value.low * 0.97 <= servers.capacity(best.candidate) <= best.value.high * 1.03
    # «Nearly all»: a dozen candidates that are alike differ by more than that by chance.
    assert sum(one > 0.05 for one in regrets) <= max(1, seeds // 33), regrets
    # Where one load in eight tells the contrary, it takes more loads than there are to be sure of the leader.
    assert settled >= (0.6 if wrong <= 0.1 else 1 / 3) * seeds
    assert sum(regrets) / seeds < 0.025
    assert inside >= 0.85 * seeds - 1, inside


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_the_best_is_found_within_five_per_cent_with_a_fifth_of_the_loads(app: App) -> None:
    raced(app, 6)


@pytest.mark.exhaustive
@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_the_best_is_found_in_nearly_all_of_a_hundred_races(app: App) -> None:
    raced(app, 100)


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_it_is_found_also_where_one_load_in_eight_tells_the_contrary(app: App) -> None:
    raced(app, 6, wrong=0.12)


@pytest.mark.parametrize("goal", [Goal.CPU, Goal.MEMORY])
@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_what_carries_a_rate_with_the_least_is_found(app: App, goal: Goal) -> None:
    bad = 0
    for seed in range(3):
        servers = Servers(app, seed)
        rate = 0.5 * max(servers.capacity(one) for one in GRID)
        found = tune(servers, GRID, Wanted(goal, CPUS, rate, most=MOST))
        assert found.best is not None
        assert found.trials <= MOST
        cost = servers.cost_us if goal is Goal.CPU else servers.memory
        able = [one for one in GRID if servers.capacity(one) > rate]
        chosen = found.best.candidate
        bad += servers.capacity(chosen) < 0.95 * rate or cost(chosen) > 1.08 * min(map(cost, able))
    assert bad <= 1


def test_an_app_that_is_too_slow_for_the_slo_never_holds_and_says_why() -> None:
    found = tune(Servers(APPS[1], 3, slo_ms=50.0), GRID, CAPACITY)
    assert found.ending is TuneEnding.NEVER
    assert found.best is None
    assert "p99 was 612 ms" in found.because


def test_a_rate_that_none_can_carry_is_refused_by_arithmetic_without_loading() -> None:
    servers = Servers(APPS[0], 3)
    found = tune(servers, GRID, Wanted(Goal.CPU, CPUS, rate=50_000.0, most=MOST))
    assert found.ending is TuneEnding.NEVER
    assert {ask.rate for _, ask in servers.asked} == {0.0}
    assert "cannot carry the rate" in found.because
    assert "CPU" in found.because


def test_a_candidate_that_needs_too_much_memory_is_out() -> None:
    limit = 200_000_000
    servers = Servers(APPS[5], 1)
    found = tune(servers, GRID, replace(CAPACITY, memory_bytes=limit))
    assert found.best is not None
    assert servers.memory(found.best.candidate) <= limit * 1.05
    too_big = [one for one in found.entries if one.fate is Fate.TOO_BIG]
    assert too_big
    assert all("MB" in one.why for one in too_big)


def test_growth_of_memory_is_kept_with_the_candidate() -> None:
    found = tune(Servers(APPS[5], 1), GRID, CAPACITY)
    assert found.best is not None
    assert found.best.grew_bytes == pytest.approx(4_000, rel=0.6)


def test_a_stack_that_does_not_start_is_out_with_its_reason_and_the_others_go_on() -> None:
    servers = Servers(APPS[3], 2)

    def measure(candidate: Candidate, ask: Ask) -> Told:
        if candidate.contestant.stack == "granian-wsgi":
            return Told(ask, failed="its process ended before it answered")
        return servers(candidate, ask)

    found = tune(measure, GRID, CAPACITY)
    assert found.best is not None
    assert found.best.candidate.contestant.stack != "granian-wsgi"
    lost = [one for one in found.entries if one.candidate.contestant.stack == "granian-wsgi"]
    assert {(one.fate, one.why) for one in lost} == {(Fate.FAILED, "its process ended before it answered")}


def test_a_generator_that_is_the_limit_everywhere_cannot_tell() -> None:
    found = tune(lambda _, ask: Told(ask, spoilt="the generator used 99 % of its core"), GRID, CAPACITY)
    assert found.ending is TuneEnding.CANNOT
    assert "generator" in found.because


def test_a_generator_that_gives_out_near_the_top_is_told_with_the_best_so_far() -> None:
    servers = Servers(APPS[3], 2)
    top = max(servers.capacity(one) for one in GRID)

    def measure(candidate: Candidate, ask: Ask) -> Told:
        spoilt = "the generator used 99 % of its core" if ask.rate > 0.8 * top else ""
        return replace(servers(candidate, ask), spoilt=spoilt)

    found = tune(measure, GRID, CAPACITY)
    assert found.best is not None
    assert found.trials <= MOST
    assert servers.capacity(found.best.candidate) > 0.7 * top
    assert found.ending is TuneEnding.SPENT
    assert "generator" in found.because


def test_time_that_runs_out_is_told_with_the_best_so_far() -> None:
    servers = Servers(APPS[0], 1)
    found = tune(servers, GRID, CAPACITY, goes_on=lambda: len(servers.asked) < 16)
    assert found.ending is TuneEnding.SPENT
    assert found.best is not None
    assert len(servers.asked) == 16
    assert any(one.fate in {Fate.UNTRIED, Fate.ALIKE} for one in found.entries)


def test_stacks_that_there_is_no_time_to_look_at_are_told_as_not_tried() -> None:
    servers = Servers(APPS[0], 1)
    found = tune(
        servers, GRID, CAPACITY, lambda: len(servers.asked) < 20, looks_on=lambda: len(servers.asked) < 4
    )
    looked = list(dict.fromkeys(one.contestant.stack for one in GRID))[:2]
    assert {label.partition("[")[0] for label, _ in servers.asked} <= set(looked)
    unseen = [one for one in found.entries if one.candidate.contestant.stack not in looked]
    assert {(one.fate, one.why) for one in unseen} == {
        (Fate.UNTRIED, "its stack was not looked at: the time (--budget) or the loads were spent")
    }
    assert found.best is not None
    assert found.ending is TuneEnding.SPENT
    assert "--budget" in found.because


def test_a_stack_that_had_to_wait_is_looked_at_once_the_others_left_time() -> None:
    servers = Servers(APPS[0], 1)
    found = tune(servers, GRID, CAPACITY, looks_on=lambda: False)
    assert len({label.partition("[")[0] for label, _ in servers.asked}) > 2
    assert found.best is not None
    assert regret(servers, GRID, found.best.candidate) < 0.05
    assert found.trials <= MOST


def test_however_late_it_is_one_stack_is_looked_at_and_asked_for_a_rate() -> None:
    servers = Servers(APPS[0], 1)
    found = tune(servers, GRID, CAPACITY, goes_on=lambda: False, looks_on=lambda: False)
    assert found.best is not None
    assert 0 < sum(ask.rate > 0 for _, ask in servers.asked) <= 3


def test_no_time_is_no_proof_that_nothing_holds() -> None:
    servers = Servers(APPS[1], 3, slo_ms=50.0)
    found = tune(servers, GRID, CAPACITY, goes_on=lambda: len(servers.asked) < 16)
    assert found.ending is TuneEnding.CANNOT
    assert "--budget" in found.because
    assert "p99 was 612 ms" in found.because


def test_what_is_wrong_at_any_rate_ends_a_stack_at_its_first_load() -> None:
    servers = Servers(APPS[0], 1)
    why = "6 % of the answers are wrong at any rate: say errors < 10% or correct the requests"

    def measure(candidate: Candidate, ask: Ask) -> Told:
        return replace(servers(candidate, ask), why=why, everywhere=True)

    found = tune(measure, GRID, CAPACITY)
    assert found.ending is TuneEnding.NEVER
    assert found.because == why
    assert len(servers.asked) == len({one.contestant.stack for one in GRID})


def test_what_turns_out_to_be_wrong_at_any_rate_later_ends_its_whole_stack() -> None:
    servers = Servers(APPS[0], 1)

    def measure(candidate: Candidate, ask: Ask) -> Told:
        told = servers(candidate, ask)
        if ask.rate and candidate.contestant.stack == "granian-wsgi":
            return replace(told, held=False, why="6 % of the answers are wrong at any rate", everywhere=True)
        return told

    found = tune(measure, GRID, CAPACITY)
    assert found.best is not None
    assert found.best.candidate.contestant.stack != "granian-wsgi"
    fates = {one.fate for one in found.entries if one.candidate.contestant.stack == "granian-wsgi"}
    assert fates == {Fate.CANNOT}
    asked = [label for label, ask in servers.asked if ask.rate and label.startswith("granian")]
    assert len(asked) == 1


def test_candidates_that_arithmetic_puts_out_are_never_started() -> None:
    servers = Servers(APPS[1], 1)
    found = tune(servers, GRID, CAPACITY)
    pruned = {one.candidate.label for one in found.entries if one.fate is Fate.BY_ARITHMETIC}
    started = {label for label, ask in servers.asked if ask.rate}
    assert "gunicorn-sync[workers=2]" in pruned
    assert not pruned & started
    assert len(pruned) > 10


def test_the_neighbours_of_the_best_are_tried_at_the_end() -> None:
    servers = Servers(APPS[0], 1)
    found = tune(servers, GRID[:5], CAPACITY, refine=lambda best: [GRID[-1]])
    assert GRID[-1].label in {label for label, _ in servers.asked}
    assert found.candidates == 6

"""The last load of a tuning: what is recommended has to hold once more, or is told not to have."""

import time
from dataclasses import dataclass, field
from typing import cast

import pytest
from tests.judge import made

from velodrome.guest.recipe import Body, Recipe
from velodrome.judge.search.holding import Demands
from velodrome.model.errors import AppAnswersWrongError, NoServerError, VelodromeError
from velodrome.model.load import Closed, Limits, Load
from velodrome.model.measurement import Measurement
from velodrome.model.quantity import Interval
from velodrome.model.search import Probe
from velodrome.model.trial import Contestant, Trial
from velodrome.model.tuning import Candidate, Entry, Fate, Goal
from velodrome.usecases import tune
from velodrome.usecases import tune as tracks
from velodrome.usecases.tune import Budget

CANDIDATE = Candidate(Contestant("waitress"), processes=1, slots=4)
BEST = Entry(CANDIDATE, Fate.BEST, "", 9, Interval(1_000, 1_050, 1_100), None, None, None)
RECIPE = Recipe("hello", "answers at once", (Body(84),))
TRIAL = Trial("tune", "hello", RECIPE, CANDIDATE.contestant, Load(Closed(1), 1.0), Limits(), block=0)
ASKED = tune.Asked(TRIAL, (), Goal.CAPACITY, Demands())


MEASURED = made.measured(TRIAL, 800.0, mean_ms=21.0)
WRONG = AppAnswersWrongError("shop:app", "waitress", "it answers status 500, not 2xx: «gone»")
DEAD = NoServerError("waitress", "its process ended")
BROKE = "p99 was 612 ms, and the limit is 200 ms"


@dataclass
class Benches:
    """Answers loads as it is told to, each of which takes so long."""

    answers: list[bool | VelodromeError]
    rates: list[float] = field(default_factory=list)

    def bench(self, candidate: Candidate) -> "Benches":
        return self

    def rate(self, rate: float, demands: Demands, seconds: float) -> tuple[Probe, Measurement | None]:
        self.rates.append(rate)
        answer = self.answers.pop(0)
        if isinstance(answer, VelodromeError):
            raise answer
        return Probe(rate, answer, "" if answer else BROKE), MEASURED


def proven(benches: Benches, budget_s: float = 600.0) -> tuple[Measurement | None, str]:
    budget = Budget(time.monotonic(), budget_s)
    return tune._proof(BEST, ASKED, cast(tracks.Benches, benches), budget)


def test_what_holds_at_four_fifths_of_what_it_can_do_is_proven_by_one_load() -> None:
    benches = Benches([True])
    assert proven(benches) == (MEASURED, "")
    assert benches.rates == [800]


def test_a_load_that_breaks_by_chance_is_made_again() -> None:
    benches = Benches([False, False, True])
    assert proven(benches) == (MEASURED, "")
    assert len(benches.rates) == 3


def test_what_never_holds_again_is_told_not_to_be_proven() -> None:
    found, why = proven(Benches([False, False, False]))
    assert found is MEASURED
    assert why == f"loaded 3 times more at 800/s, it never held: {BROKE}"


@pytest.mark.parametrize("before", [[], [False]])
@pytest.mark.parametrize("error", [DEAD, WRONG], ids=["dead", "wrong"])
def test_a_server_that_does_not_come_again_is_told_and_what_was_found_is_kept(
    before: list[bool], error: NoServerError | AppAnswersWrongError
) -> None:
    found, why = proven(Benches([*before, error]))
    assert why == f"loaded once more, {error.reason}"
    assert found is (MEASURED if before else None)


def test_one_load_is_made_however_late_it_is_and_no_more() -> None:
    benches = Benches([False, False, False])
    assert proven(benches, budget_s=0.0) == (MEASURED, f"loaded once more at 800/s, it never held: {BROKE}")
    assert len(benches.rates) == 1


def test_a_short_budget_keeps_a_third_for_the_proof_and_looks_take_half_of_the_rest() -> None:
    budget = Budget(time.monotonic(), 30.0)
    assert budget.racing_s == pytest.approx(20.0)
    assert budget.allows(15.0)
    assert not budget.allows(20.5)
    assert budget.allows_look(9.0)
    assert not budget.allows_look(10.5)
    assert budget.allows_proof(29.0)
    assert Budget(time.monotonic(), 600.0).racing_s == 580.0

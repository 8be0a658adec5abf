"""The last load of a tuning: what is recommended has to hold once more, or is told not to have."""

from dataclasses import dataclass, field
from typing import Any, cast

from velodrome.guest.recipe import Body, Recipe
from velodrome.judge.search.holding import Demands
from velodrome.model.errors import NoServerError
from velodrome.model.interval import Interval
from velodrome.model.limits import Limits
from velodrome.model.load import Closed, Load
from velodrome.model.search import Probe
from velodrome.model.trial import Contestant, Trial
from velodrome.model.tuning import Candidate, Entry, Fate, Goal
from velodrome.track import tuning

CANDIDATE = Candidate(Contestant("waitress"), processes=1, slots=4)
BEST = Entry(CANDIDATE, Fate.BEST, "", 9, Interval(1_000, 1_050, 1_100), None, None, None)
RECIPE = Recipe("hello", "answers at once", (Body(84),))
TRIAL = Trial("tune", "hello", RECIPE, CANDIDATE.contestant, Load(Closed(1), 1.0), Limits(), block=0)
ASKED = tuning.Asked(TRIAL, (), Goal.CAPACITY, Demands())


@dataclass
class Benches:
    """Answers loads as it is told to."""

    answers: list[bool | str]
    rates: list[float] = field(default_factory=list)

    def bench(self, candidate: Candidate) -> "Benches":
        return self

    def rate(self, rate: float, demands: Demands, seconds: float) -> tuple[Probe, Any]:
        self.rates.append(rate)
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            raise NoServerError("waitress", answer)
        return Probe(rate, answer, "" if answer else "p99 was 612 ms, and the limit is 200 ms"), None


def proof(benches: Benches) -> str:
    return tuning._proof(BEST, ASKED, cast(tuning.Benches, benches))[1]


def test_what_holds_at_four_fifths_of_what_it_can_do_is_proven_by_one_load() -> None:
    benches = Benches([True])
    assert proof(benches) == ""
    assert benches.rates == [800]


def test_a_load_that_breaks_by_chance_is_made_again() -> None:
    benches = Benches([False, False, True])
    assert proof(benches) == ""
    assert len(benches.rates) == 3


def test_what_never_holds_again_is_told_not_to_be_proven() -> None:
    why = proof(Benches([False, False, False]))
    assert why == "loaded 3 times more at 800/s, it never held: p99 was 612 ms, and the limit is 200 ms"


def test_a_server_that_does_not_start_again_is_told_not_to_be_proven() -> None:
    assert proof(Benches(["its process ended"])) == "loaded once more, its process ended"

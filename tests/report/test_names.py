"""What an answer is called in a few words."""

from dataclasses import replace

import pytest
from tests.report import made_up_verdict

from velodrome.model.verdict import Answer, Outcome
from velodrome.report import names

pytestmark = pytest.mark.unit


def no_matter(best: int) -> Answer:
    """Return an answer whose first `best` contestants are tied, and whose others, if any, are behind."""
    answer = made_up_verdict.answers()[0]
    ranked = [row for row in answer.standings if row.rank is not None]
    placed = [
        replace(
            row, rank_low=1 if place < best else 1 + best, rank_high=best if place < best else len(ranked)
        )
        for place, row in enumerate(ranked)
    ]
    labels = tuple(row.contestant for row in placed[:best])
    return replace(answer, outcome=Outcome.DOES_NOT_MATTER, best=labels, standings=tuple(placed))


def test_the_server_does_not_matter_where_nobody_is_clearly_slower() -> None:
    everyone = len(no_matter(1).standings)
    assert names.headline(no_matter(everyone))[0] == "the server does not matter"


def test_who_is_clearly_slower_is_named_where_it_does_not_matter_which_of_the_others_is_taken() -> None:
    answer = no_matter(3)
    best, beside = names.headline(answer)
    slower = names.of_standing(answer.standings[3])
    assert "the server does not matter" not in best
    assert slower in beside

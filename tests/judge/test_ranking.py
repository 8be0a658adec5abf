"""Ties are ties; a rank counts only those who are clearly better."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.judge.made import settled

from velodrome.judge.standings import equal, rank
from velodrome.judge.statistics import Sample, Side


def sample(label: str, *values: float) -> Sample:
    return Sample(label, dict(enumerate(values)))


def test_nobody_is_ranked_when_nobody_gave_an_answer() -> None:
    assert rank([]) is None
    assert rank([Sample("a", {})]) is None


def test_equals_share_the_first_rank() -> None:
    ranking = rank([sample("a", 100, 101, 99), sample("b", 101, 99, 100), sample("c", 50, 51, 50)])
    assert ranking is not None
    assert ranking.places == {"a": (1, 2), "b": (1, 2), "c": (3, 3)}
    assert ranking.first == ("a", "b")


def test_a_clear_lead_is_a_rank() -> None:
    ranking = rank([sample("a", 100, 101, 99), sample("b", 130, 131, 128), sample("c", 200, 198, 202)])
    assert ranking is not None
    assert ranking.order == ("c", "b", "a")
    assert ranking.ranks == {"c": 1, "b": 2, "a": 3}


def test_rows_are_in_the_order_of_their_estimates_and_a_place_is_a_set() -> None:
    # The first and the third are told apart, the second from neither of them.
    ranking = rank([sample("a", 100, 101, 99), sample("b", 94, 97, 93), sample("c", 88, 90, 89)])
    assert ranking is not None
    assert ranking.order == ("a", "b", "c")
    assert ranking.places == {"a": (1, 2), "b": (1, 3), "c": (2, 3)}


def test_a_lower_bound_wins_and_cannot_lose() -> None:
    bound = Sample("bound", {0: 100.0, 1: 101.0, 2: 99.0}, side=Side.AT_LEAST)
    above = rank([bound, sample("slow", 50, 51, 50)])
    below = rank([bound, sample("fast", 200, 201, 202)])
    assert above is not None
    assert below is not None
    assert above.places == {"bound": (1, 1), "slow": (2, 2)}
    assert below.places == {"fast": (1, 2), "bound": (1, 2)}


def test_an_upper_bound_loses_and_cannot_win() -> None:
    bound = Sample("bound", {0: 100.0, 1: 101.0, 2: 99.0}, side=Side.AT_MOST)
    above = rank([bound, sample("slow", 50, 51, 50)])
    below = rank([bound, sample("fast", 200, 201, 202)])
    assert above is not None
    assert below is not None
    assert (above.places["slow"], above.first) == ((1, 2), ("slow",))
    assert below.places == {"fast": (1, 1), "bound": (2, 2)}


def test_a_lead_below_the_margin_is_none_however_sure() -> None:
    blocks = range(60)
    ranking = rank([Sample("a", dict.fromkeys(blocks, 100.0)), Sample("b", dict.fromkeys(blocks, 102.5))])
    assert ranking is not None
    assert settled(ranking.to_best["a"])
    assert set(ranking.ranks.values()) == {1}


def test_who_gave_no_right_answer_is_last_without_a_ratio() -> None:
    ranking = rank([sample("a", 100, 100), Sample("mute", {}), sample("b", 10, 10)])
    assert ranking is not None
    assert ranking.order == ("a", "b", "mute")
    assert ranking.ranks["mute"] == 3
    assert "mute" not in ranking.to_best


@pytest.mark.parametrize(("values", "alike"), [((100.0,) * 40, True), ((100.0,), False)])
def test_equal_means_that_no_lead_worth_naming_can_hide(values: tuple[float, ...], alike: bool) -> None:
    ranking = rank([sample("a", *values), sample("b", *values)])
    assert ranking is not None
    assert equal(ranking.to_best["b"]) is alike


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(1, 1e4), st.floats(1, 1e4), st.floats(1, 1e4)), min_size=1, max_size=6))
def test_somebody_is_always_first_and_scale_changes_nothing(rows: list[tuple[float, float, float]]) -> None:
    ranking = rank([sample(str(i), *row) for i, row in enumerate(rows)])
    scaled = rank([sample(str(i), *(7 * value for value in row)) for i, row in enumerate(rows)])
    assert ranking is not None
    assert scaled is not None
    assert ranking.ranks == scaled.ranks
    assert ranking.ranks[ranking.order[0]] == 1
    assert all(1 <= low <= high <= len(rows) for low, high in ranking.places.values())


def test_whoever_is_better_than_a_contestant_is_better_than_all_whom_that_beats() -> None:
    # First and third scatter against each other, so that the two cannot be told apart directly.
    first, third = sample("first", 1_000, 900), sample("third", 600, 720)
    ranking = rank([first, sample("second", 824, 824), third])
    assert ranking is not None
    over = ranking.over("first", "third")
    assert over is not None
    assert over.ratio.low < 1
    assert ranking.places == {"first": (1, 1), "second": (2, 2), "third": (3, 3)}

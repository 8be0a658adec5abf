"""Pieces of sentences."""

import pytest

from velodrome.judge.words import blocks, inverse, lead, list_names, sentence
from velodrome.model.quantity import Interval


@pytest.mark.parametrize(
    ("names", "word", "text"),
    [
        ([], "and", ""),
        (["a"], "or", "a"),
        (["a", "b"], "or", "a or b"),
        (["a", "b", "c"], "and", "a, b and c"),
        (list("abcdefg"), "or", "a, b, c, d and 3 more"),
    ],
)
def test_names_are_listed_as_people_do(names: list[str], word: str, text: str) -> None:
    assert list_names(names, word) == text


def test_a_lead_is_a_multiple_when_large_and_percent_when_small() -> None:
    assert lead(Interval(1.79, 1.9, 2.04), "b") == "1.90× [1.79, 2.04] the next, b"
    assert lead(Interval(1.05, 1.09, 1.13), "b") == "9 % [+5, +13] ahead of b"


def test_the_inverse_of_an_interval_keeps_its_order() -> None:
    assert inverse(Interval(0.5, 0.8, 1.0)) == Interval(1.0, 1.25, 2.0)


def test_a_sentence_ends_once_and_keeps_a_name_small() -> None:
    assert sentence("uvicorn is fast") == "uvicorn is fast."
    assert sentence("Done.") == "Done."
    assert sentence("") == ""


def test_blocks_are_counted_from_one() -> None:
    assert blocks([0]) == "block 1"
    assert blocks([2, 0, 0]) == "blocks 1 and 3"

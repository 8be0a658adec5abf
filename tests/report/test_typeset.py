import pytest

from velodrome.model.quantity import Interval
from velodrome.report.typeset import (
    FIGURE_SPACE,
    LINES,
    POINT_SPACE,
    align,
    align_figures,
    estimate,
    plural,
    visible,
)


def test_what_a_terminal_obeys_is_made_visible_and_layout_stays() -> None:
    hostile = "a\x1b]0;OWNED\x07b\x9b31mc\x7fd\u202ee\u2066f\u200bg\ufeffh\rz\udcff"
    shown = visible(f"{hostile}\n\tü 1\u00a0000", LINES)
    assert shown.endswith("\n\tü 1\u00a0000")
    assert shown.replace("\n", "").replace("\t", "").replace("\u00a0", "").isprintable()
    assert "\\x1b]0;OWNED\\x07" in shown
    assert visible("a\nb") == "a\\nb"


def test_decimal_points_stand_under_each_other() -> None:
    assert align(["197 ±2", "9.87 ±0.11", "–", ""]) == [
        "197    ±2   ",
        "  9.87 ±0.11",
        "  –         ",
        "            ",
    ]


def test_in_proportional_type_missing_decimals_become_spaces_as_wide_as_figures() -> None:
    whole, exact, missing = align_figures(["113", "2.29", "–"])
    assert whole == f"113{POINT_SPACE}{FIGURE_SPACE * 2}"
    assert (exact, missing) == ("2.29", "–")


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(195, 197, 199), "197 ±2"),
        (Interval(197.3, 197.5, 197.7), "198 ±1"),
        (Interval(9.809, 9.819, 9.829), "9.82 ±0.01"),
        (Interval(40_700, 41_234, 41_700), "41 200 ±500"),
        (Interval(0, 0, 0), "0"),
    ],
)
def test_an_estimate_claims_at_most_three_digits(interval: Interval, text: str) -> None:
    assert estimate(interval) == text


def test_an_interval_that_is_wider_than_its_value_shows_its_ends() -> None:
    assert estimate(Interval(12, 2600, 570_000)) == "2 600 [12.0, 570 000]"


def test_control_and_direction_characters_of_a_server_are_shown_not_obeyed() -> None:
    shown = visible("\x1b[31mred\u202e\nline\u2028é·⚑")
    assert shown == "\\x1b[31mred\\u202e\\nline\\u2028é·⚑"
    assert shown.isprintable()


def test_one_is_not_plural() -> None:
    assert (plural(1, "block"), plural(2000, "trial")) == ("1 block", "2 000 trials")

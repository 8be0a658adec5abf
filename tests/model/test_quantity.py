"""Numbers are shown with the digits they deserve."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from velodrome.model import quantity
from velodrome.model.quantity import Interval


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(1.79, 1.9, 2.04), "1.90× [1.79, 2.04]"),
        (Interval(1.001, 1.003, 1.004), "1.003× [1.001, 1.004]"),
        (Interval(1.2, 3.5, 9), "3.5× [1.2, 9.0]"),
        (Interval(15, 18.7, 22), "19× [15, 22]"),
    ],
)
def test_a_ratio_has_the_digits_of_its_interval(interval: Interval, text: str) -> None:
    assert quantity.ratio(interval) == text


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(0.97, 1.01, 1.05), "+1 % [−3, +5]"),
        (Interval(0.95, 0.99, 1.0), "−1 % [−5, 0]"),
        (Interval(0.999, 1.0, 1.001), "0.00 % [−0.10, +0.10]"),
    ],
)
def test_a_difference_is_written_in_percent_with_signs(interval: Interval, text: str) -> None:
    assert quantity.difference(interval) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (48e6, "48 MB"),
        (1.93e9, "1.9 GB"),
        (220e3, "220 kB"),
        (84, "84 bytes"),
        (None, "–"),
        (999_960, "1.0 MB"),
    ],
)
def test_memory_has_a_unit(count: float | None, text: str) -> None:
    assert quantity.memory(count) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (197.2, 195, 199.3, "197 ±2"),
        (18_437, 18_125, 18_749, "18 400 ±300"),
        (10.02, 9.98, 10.06, "10.02 ±0.04"),
    ],
)
def test_an_estimate_is_rounded_to_what_its_interval_deserves(
    value: float, low: float, high: float, text: str
) -> None:
    assert quantity.within(value, low, high) == text


@given(st.floats(1e-6, 1e12))
def test_rounding_never_moves_a_number_by_more_than_half_a_percent(value: float) -> None:
    shown = float(quantity.number(value).replace(" ", ""))
    assert shown == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1213.4, "1 210"),
        (38.62, "38.6"),
        (0.5, "0.5"),
        (2.0, "2"),
        (0.0, "0"),
        (None, "–"),
        (float("inf"), "–"),
    ],
)
def test_a_number_within_a_sentence_has_no_exponent_and_no_zeros_at_its_end(
    value: float | None, text: str
) -> None:
    assert quantity.significant(value) == text

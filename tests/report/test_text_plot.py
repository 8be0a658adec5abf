import pytest

from velodrome.report.typeset import DUE, SENT, at, plot, tail

CURVE = [(50.0, 1.0), (90.0, 2.0), (99.0, 10.0), (99.9, 100.0)]


def test_the_axis_gives_each_nine_the_same_room() -> None:
    assert [round(tail(p), 6) for p in (90, 99, 99.9, 99.99)] == [1, 2, 3, 4]


def test_between_two_known_percentiles_the_line_is_straight_on_both_logarithms() -> None:
    assert at(CURVE, 2.5) == pytest.approx(10**1.5)
    assert at(CURVE, 3.5) is None


def test_a_rising_curve_rises_in_the_picture_and_where_both_agree_due_covers_sent() -> None:
    lines = plot(CURVE, CURVE, width=60)
    columns = [[row for row, line in enumerate(lines) if DUE in line[c : c + 1]] for c in range(60)]
    heights = [rows[0] for rows in columns if rows and rows[0] > 0]
    assert heights == sorted(heights, reverse=True)
    assert not any(SENT in line for line in lines[1:])
    assert max(map(len, lines)) <= 60


def test_a_flat_curve_is_drawn_and_too_short_a_one_is_not() -> None:
    assert plot([(50.0, 5.0), (99.0, 5.0)], [])
    assert plot([(50.0, 5.0)], []) == []

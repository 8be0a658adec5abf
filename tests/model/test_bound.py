import pytest

from velodrome.model.condition import Bound, mb, ms, per_second, percent, seconds, us, within
from velodrome.model.quantity import Unit


@pytest.mark.parametrize(
    ("bound", "unit", "value"),
    [
        (ms(50), Unit.MILLISECONDS, 50),
        (seconds(0.05), Unit.MILLISECONDS, 50),
        (us(500), Unit.MILLISECONDS, 0.5),
        (ms(0.5), Unit.MICROSECONDS, 500),
        (us(500), Unit.MICROSECONDS, 500),
        (percent(0.1), Unit.SHARE, 0.001),
        (0.001, Unit.SHARE, 0.001),
        (per_second(200), Unit.RATE, 200),
        (200, Unit.RATE, 200),
        (mb(100), Unit.BYTES, 1e8),
    ],
)
def test_a_bound_is_read_in_the_unit_of_the_figure(bound: Bound | float, unit: Unit, value: float) -> None:
    assert within(bound, unit, "it") == pytest.approx(value)


@pytest.mark.parametrize(
    ("bound", "unit", "sentence"),
    [
        (50, Unit.MILLISECONDS, r"p99 is in milliseconds: compare it with ms\(50\), not with 50"),
        (per_second(5), Unit.MILLISECONDS, r"not with 5/s"),
        (
            ms(5),
            Unit.SHARE,
            r"p99 is in shares of the requests: compare it with percent\(0.1\), not with 5 ms",
        ),
        (100, Unit.BYTES, r"mb\(100\)"),
    ],
)
def test_a_bound_of_another_kind_is_refused_with_what_to_write(
    bound: Bound | float, unit: Unit, sentence: str
) -> None:
    with pytest.raises(TypeError, match=sentence):
        within(bound, unit, "p99")

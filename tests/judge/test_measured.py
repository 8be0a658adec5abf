import re

import pytest

from velodrome.judge.loaded import Measured, of_blocks
from velodrome.model.condition import ms
from velodrome.model.errors import InsufficientDataError
from velodrome.model.quantity import Unit

VALUES = dict(enumerate([48.0, 52, 50, 49, 51]))


def p99(seconds: float = 2.0) -> Measured:
    return of_blocks("p99", Unit.MILLISECONDS, VALUES, noise=0.1, seconds=seconds)


def test_a_limit_beyond_the_interval_is_surely_kept_or_broken() -> None:
    figure = p99()
    assert figure < ms(70)
    assert figure <= ms(70)
    assert not figure > ms(70)
    assert figure > ms(40)
    assert figure >= ms(40)
    assert not figure < ms(40)


@pytest.mark.parametrize("compare", ["__lt__", "__le__", "__gt__", "__ge__"])
def test_a_limit_within_the_interval_never_passes_by_luck_in_either_direction(compare: str) -> None:
    sentence = (
        r"insufficient data: p99 is 50 ms \[4\d, 5\d\], which reaches across 51 ms; \d+ more seconds would"
    )
    with pytest.raises(InsufficientDataError, match=sentence):
        getattr(p99(), compare)(ms(51))


def test_loading_for_as_long_as_it_says_would_have_been_enough() -> None:
    with pytest.raises(InsufficientDataError) as raised:
        p99(seconds=1.0) < ms(52)  # noqa: B015 - the comparison itself is tested
    length = int(re.findall(r"load for (\d+) s", str(raised.value))[0])
    assert length > 5
    longer = {number: VALUES[number % 5] for number in range(length)}
    assert of_blocks("p99", Unit.MILLISECONDS, longer, noise=0.1, seconds=1.0) < ms(52)


def test_a_limit_right_at_the_figure_is_too_near_for_anybody() -> None:
    with pytest.raises(InsufficientDataError, match="so near to the limit that only"):
        p99() < ms(p99().value * 1.0001)  # noqa: B015


def test_what_was_not_measured_is_compared_with_nothing() -> None:
    with pytest.raises(InsufficientDataError, match="p99 was not measured: it needs 300 requests"):
        Measured("p99", Unit.MILLISECONDS, None, "it needs 300 requests") < ms(5)  # noqa: B015
    assert repr(Measured("p99", Unit.MILLISECONDS, None)) == "p99 –"


def test_a_figure_reads_as_its_interval_and_is_a_number() -> None:
    assert re.fullmatch(r"p99 50 ms \[4\d, 5\d\]", repr(p99()))
    assert float(p99()) == pytest.approx(50, rel=0.01)


def test_a_whole_that_is_no_mean_of_blocks_is_what_is_shown() -> None:
    figure = of_blocks("p99", Unit.MILLISECONDS, VALUES, noise=0.1, seconds=1, whole=55.0)
    assert figure.interval is not None
    assert figure.value == 55
    assert figure.interval.low < 55 < figure.interval.high

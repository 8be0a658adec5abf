"""What the engine's library writes is read to the same figures; merging is the same as recording."""

import base64
import math
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.judge.made import encode

from velodrome.judge.histograms import EMPTY, decode, merge

# Written by hdrhistogram 7.6 for Rust (V2DeflateSerializer); name: count, p50, p99, max in ns as it reports them.
RUST = {
    "0.2 to 200 ms, range found by itself": (
        "HISTFAAAAKx4nO1QSwrCMBBNXtBSXHRRxI03EPEI7r1D6WFUEFx6AA/hWsSjeAK9gMR8WuknLTT9bJq8l5nHy0wSZnm4hIR4O6IXSzKVIeCcbz/auJ0o"
        "vgHePs5TyRfDkWGvKMQVeFA8FcviThELRCrGBZ13I6yxSbZJVfl1FSvMBRYq2qihOkP4f8wyupnnOlN4YEZMKny7ui6rxvKmm4YEgWaajbQ/7O9m9+EW"
        "zT8M3j2S",
        (1000, 100007935, 198049791, 200015871),
    ),
    "1 ns to 1 h": (
        "HISTFAAAAP14nC2PsUuCURTFv/N7z8+hwaG1P6L/oC2IhoiGCImIhoiGaIiIiJAKiYgIhwiJCgn5BpEIoSXCoSEapBqqIZzEUUUcRZ9P77ncezmc"
        "c7l34jgzHgRKBMMwoy43Tk8+3wVTzSFRSTDGCmk4snyH5EM6IVGcdoynOA1LKcZjyL/hwdK25CyXhhdDy5C1FOAd6pA2RIZP6GiwLQtFKMMf9ERZfIgf"
        "URMN0RVncAU5cS1uRV4URUm8ijdR8eKqOGCXfQ45EafiQmS840bci0gUfE2y7J5YY50NNtlimx32vC/lrvF5PlDNOMwy5zDPgsMiS45NOu8qqS/92j4g"
        "ZUO/",
        (400, 60028878847, 60028878847, 60028878847),
    ),
    "a billion of one value, one of nothing, lowest 1024 ns": (
        "HISTFAAAADt4nAEwAM//HISTEwAAAAgAAAAAAAAAAwAAAAAAAAQAAAAADfhHWAA/8AAAAAAAAAKFM46o1rkHfawHrw==",
        (1000000008, 5001215, 5001215, 5001215),
    ),
}
NOTHING = "HISTFAAAACJ4nJNpmSzMwMDAyAABTBCK+QWQ4P3hHsFg/wEqAwBhfAUI"


@pytest.mark.parametrize(("text", "expected"), RUST.values(), ids=RUST)
def test_what_the_engine_writes_is_read_to_the_nanosecond(text: str, expected: tuple[int, ...]) -> None:
    histogram = decode(text)
    count, p50, p99, highest = expected
    assert histogram.total == count
    assert histogram.percentile_ms(50) == p50 / 1e6
    assert histogram.percentile_ms(99) == p99 / 1e6
    assert histogram.max_ms == highest / 1e6


def test_an_empty_histogram_has_no_percentiles() -> None:
    histogram = decode(NOTHING)
    assert (histogram.total, histogram.percentile_ms(50), histogram.max_ms, histogram.curve()) == (
        0,
        None,
        None,
        (),
    )
    assert merge([]).total == merge([histogram, EMPTY]).total == 0


@given(st.lists(st.integers(1, 10**11), min_size=1, max_size=200), st.floats(0, 100))
def test_a_percentile_is_the_value_at_its_rank_to_a_thousandth(values: list[int], percentile: float) -> None:
    rank = max(1, math.ceil(round(percentile / 100 * len(values), 6)))
    found = decode(encode(values)).percentile_ms(percentile)
    exact = sorted(values)[rank - 1] / 1e6
    assert found is not None
    assert exact <= found <= exact * 1.001 + 1e-6


@given(st.lists(st.integers(1, 10**11), max_size=100), st.lists(st.integers(1, 10**11), max_size=100))
def test_merging_is_the_same_as_recording_into_one(first: list[int], second: list[int]) -> None:
    merged, together = merge([decode(encode(first)), decode(encode(second))]), decode(encode(first + second))
    assert np.array_equal(merged.highest, together.highest)
    assert np.array_equal(merged.counts, together.counts)


def test_percentiles_of_blocks_are_merged_not_averaged() -> None:
    quick, slow = decode(encode([1_000_000] * 990)), decode(encode([1_000_000_000] * 10))
    assert merge([quick, slow]).percentile_ms(50) == pytest.approx(1, rel=0.001)
    assert merge([quick, slow]).percentile_ms(99.5) == pytest.approx(1000, rel=0.001)


@pytest.mark.parametrize(
    ("count", "supported"),
    [(3, (True, False, False, False)), (300, (True, True, True, False)), (10_000, (True, True, True, True))],
)
def test_a_percentile_that_too_few_requests_lie_beyond_is_missing(
    count: int, supported: tuple[bool, ...]
) -> None:
    histogram = decode(encode(range(1_000_000, 1_000_000 + count)))
    found = tuple(histogram.supported_ms(percentile) is not None for percentile in (0, 90, 99, 99.9))
    assert found == supported


def test_a_curve_rises_and_ends_where_one_request_lies_beyond() -> None:
    curve = decode(encode(range(1_000_000, 3_000_000, 2_000))).curve()
    assert curve[0][0] == 0
    assert curve[-1][0] == pytest.approx(99.9)
    assert all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(curve))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no base64!",
        "AAAA",
        NOTHING[:-8],
        base64.b64encode(b"\x1c\x84\x93\x14\x00\x00\x00\x03abc").decode(),
    ],
)
def test_what_is_no_histogram_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode(text)


@given(st.binary(max_size=60))
def test_damaged_histograms_never_do_more_than_raise_a_value_error(damage: bytes) -> None:
    sound = bytearray(base64.b64decode(RUST["1 ns to 1 h"][0]))
    sound[: len(damage)] = damage
    with suppress(ValueError):
        decode(base64.b64encode(bytes(sound)).decode())


@given(st.lists(st.integers(1, 10**12), max_size=200))
def test_counts_are_those_that_were_recorded(values: list[int]) -> None:
    found = decode(encode(values))
    assert found.total == len(values)
    assert int(found.counts.sum()) == len(values)
    slowest = max(values, default=0)
    assert slowest <= int(found.highest.max(initial=0)) <= slowest * 1.001 + 1

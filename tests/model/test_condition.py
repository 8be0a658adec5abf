import itertools

import pytest

from velodrome.model.condition import Beyond, Figure, LoadMetric, comparisons, decide, read, read_slo
from velodrome.model.errors import SloError

VALUES = {True: 100.0, False: 1.0, None: None}


def given(**truths: bool | None) -> object:
    def look_up(metric: LoadMetric, _counted: bool) -> Figure:
        return Figure(VALUES[truths[metric.name]], "unasked")

    return look_up


@pytest.mark.parametrize(("p50", "p99"), list(itertools.product((True, False, None), repeat=2)))
def test_an_unknown_figure_never_makes_a_condition_false_by_itself(
    p50: bool | None, p99: bool | None
) -> None:
    look_up = given(p50=p50, p99=p99)
    both = decide(read("p50 > 50ms and p99 > 50ms"), look_up).holds  # type: ignore[arg-type]
    either = decide(read("p50 > 50ms or p99 > 50ms"), look_up).holds  # type: ignore[arg-type]
    assert both is (False if False in (p50, p99) else None if None in (p50, p99) else True)
    assert either is (True if True in (p50, p99) else None if None in (p50, p99) else False)


def test_only_what_decides_is_reported() -> None:
    found = decide(read("p50 > 50ms or p99 > 50ms or p90 > 50ms"), given(p50=False, p99=True, p90=None))  # type: ignore[arg-type]
    assert [compared.comparison.metric.name for compared in found.because] == ["p99"]
    found = decide(read("p50 > 50ms or p90 > 50ms"), given(p50=False, p90=None))  # type: ignore[arg-type]
    assert [compared.comparison.metric.name for compared in found.because] == ["p90"]
    found = decide(read("p50 > 50ms and p90 > 50ms"), given(p50=True, p90=True))  # type: ignore[arg-type]
    assert len(found.because) == 2


@pytest.mark.parametrize(
    ("relation", "value", "exact", "bound"),
    [
        (">", 51, True, True),
        (">", 50, False, None),
        (">", 49, False, None),
        (">=", 50, True, True),
        (">=", 49, False, None),
        ("<", 49, True, None),
        ("<", 50, False, False),
        ("<=", 50, True, None),
        ("<=", 51, False, False),
    ],
)
def test_a_lower_bound_tells_only_what_every_higher_value_would(
    relation: str, value: float, exact: bool, bound: bool | None
) -> None:
    condition = read(f"p99 {relation} 50ms")
    assert decide(condition, lambda *_: Figure(value)).holds is exact
    assert decide(condition, lambda *_: Figure(value, lower_bound=True)).holds is bound


def test_every_comparison_of_a_condition_is_found() -> None:
    found = comparisons(read("p99 > 50ms or (errors > 1% and rate < 5/s)"))
    assert [comparison.metric.name for comparison in found] == ["p99", "errors", "rate"]


@pytest.mark.parametrize(
    ("relation", "above", "below"),
    [(">", True, False), (">=", True, False), ("<", False, True), ("<=", False, True)],
)
def test_what_is_beyond_every_limit_is_compared_as_that(relation: str, above: bool, below: bool) -> None:
    condition = read(f"p99 {relation} 50ms")
    for value in (1.0, 100.0):
        found = Figure(value, lower_bound=True, beyond=Beyond.ABOVE)
        assert decide(condition, lambda *_, found=found: found).holds is above
        found = Figure(value, beyond=Beyond.BELOW)
        assert decide(condition, lambda *_, found=found: found).holds is below
    assert decide(condition, lambda *_: Figure(None, "unasked", beyond=Beyond.ABOVE)).holds is None


@pytest.mark.parametrize(
    "text", ["p99 < 200ms and errors <= 1%", "rate > 500/s and timeout < 5", "in_flight > 3"]
)
def test_what_must_hold_is_fast_right_and_much(text: str) -> None:
    assert read_slo(text) == read(text)


@pytest.mark.parametrize("text", ["p99 > 200ms", "p50 < 1s and errors >= 1%", "rate < 500/s"])
def test_the_opposite_of_what_must_hold_is_refused(text: str) -> None:
    with pytest.raises(SloError):
        read_slo(text)

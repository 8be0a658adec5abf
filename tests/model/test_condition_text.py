import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from velodrome.model.condition import (
    Comparison,
    Condition,
    Every,
    Relation,
    Some,
    load_metric,
    read,
    read_slo,
    read_stored,
    write_condition,
)
from velodrome.model.errors import ConditionError, NeverMeasuredError, UnknownLoadMetricError, VelodromeError


def only(text: str) -> Comparison:
    found = read(text)
    assert isinstance(found, Comparison)
    return found


@pytest.mark.parametrize(
    ("text", "limit", "counted"),
    [
        ("p99 > 50ms", 50.0, False),
        ("p99>50ms", 50.0, False),
        ("mean >= 1.5s", 1_500.0, False),
        ("sent.p99.9 < 250us", 0.25, False),
        ("p50 <= .5ms", 0.5, False),
        ("max > 1min", 60_000.0, False),
        ("errors > 0.1%", 0.001, False),
        ("errors > 5", 5.0, True),
        ("timeout > 0", 0.0, True),
        ("cpu > 90%", 0.9, False),
        ("rate < 950/s", 950.0, False),
        ("rate < 1_000", 1_000.0, False),
        ("requests < 10", 10.0, False),
    ],
)
def test_a_quantity_is_read_in_the_unit_of_its_metric(text: str, limit: float, counted: bool) -> None:
    found = only(text)
    assert found.limit == pytest.approx(limit)
    assert found.counted is counted


def test_and_binds_closer_than_or_and_brackets_closer_still() -> None:
    p99, errors, rate = read("p99 > 1s"), read("errors > 1%"), read("rate < 5")
    assert read("p99 > 1s or errors > 1% and rate < 5") == Some((p99, Every((errors, rate))))
    assert read("(p99 > 1s OR errors > 1%) AND rate < 5") == Every((Some((p99, errors)), rate))


@pytest.mark.parametrize(
    ("text", "at", "problem"),
    [
        ("", 1, "it ends where a metric"),
        ("p99", 4, "it ends where a comparison"),
        ("p99 >", 6, "it ends where a limit"),
        ("p99 = 50ms", 5, "compares nothing"),
        ("p99 > 50", 7, "is a time: give it a unit"),
        ("p99 > 50%", 7, "is a time"),
        ("p99 > fast", 7, "is no quantity"),
        ("p99 > 1h", 7, "is no quantity"),
        ("errors > 0.01", 10, "is a share: write it in percent"),
        ("errors > 5ms", 10, "is a share"),
        ("cpu > 1", 7, "is a share of the CPU time that there is: write it in percent, as in 80%"),
        ("errors < 200%", 10, "errors is a share, and never above 100%"),
        ("timeout > 100.1%", 11, "timeout is a share, and never above 100%"),
        ("rate < 5ms", 8, "is a rate"),
        ("requests < 5%", 12, "is a count"),
        ("p99 > 50ms p50 > 3ms", 12, "put and, or between"),
        ("p99 > 50ms and", 15, "it ends where a metric"),
        ("p99 > 50ms and or", 16, "a metric is wanted"),
        ("(p99 > 50ms", 12, "it ends where ')'"),
        ("(p99 > 50ms p50", 13, "')' is missing"),
        ("p99 > 50ms)", 11, "follows a whole condition"),
        ("p99 > 5!", 8, "this cannot be read"),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_place(text: str, at: int, problem: str) -> None:
    with pytest.raises(ConditionError) as caught:
        read(text)
    assert problem in str(caught.value)
    assert caught.value.at + 1 == at


def test_a_stored_condition_is_read_as_it_was_taken() -> None:
    assert write_condition(read_stored("errors < 200% and p99 < 50ms")) == "errors < 200% and p99 < 50ms"


@pytest.mark.parametrize(
    "metric", ["tls.p99", "connect.max", "first_byte.mean", "last_byte.p50", "delivery.p99"]
)
def test_what_is_never_measured_of_an_app_is_no_slo(metric: str) -> None:
    with pytest.raises(NeverMeasuredError, match=f"'{metric}' of the condition .* also of sent, lag, first "):
        read_slo(f"errors < 1% and {metric} < 3ms", of_app=True)


def test_a_recipe_may_have_a_room() -> None:
    assert read_slo("delivery.p99 < 3ms") == read("delivery.p99 < 3ms")
    with pytest.raises(NeverMeasuredError):
        read_slo("tls.p99 < 3ms")


@pytest.mark.parametrize("text", ["", "p99", "p99 > nothing"])
def test_an_example_is_shown_of_what_is_to_hold_where_that_is_wanted(text: str) -> None:
    with pytest.raises(ConditionError, match="p99 < 50ms and"):
        read_slo(text)
    with pytest.raises(ConditionError, match="p99 > 50ms or"):
        read(text)


def test_an_unknown_metric_is_no_condition() -> None:
    with pytest.raises(UnknownLoadMetricError, match=r"Nearest: .*p99"):
        read("p99 > 50ms or pp99 > 3ms")


def test_brackets_without_end_are_refused_and_do_not_exhaust_the_stack() -> None:
    with pytest.raises(ConditionError, match="nested more than"):
        read("(" * 100_000)


compared = st.builds(
    lambda name, relation, number: only(
        f"{name} {relation} {number}ms" if name != "errors" else f"{name} {relation} {number / 10**4:.4f}%"
    ),
    st.sampled_from(["p50", "sent.p99.9", "tls.mean", "errors"]),
    st.sampled_from([str(relation) for relation in Relation]),
    st.integers(0, 10**6),
)


def flattened(condition: Condition) -> Condition:
    """Without an `and` directly in an `and`: brackets around those say nothing."""
    if isinstance(condition, Comparison):
        return condition
    kind = type(condition)
    parts: list[Condition] = []
    for part in map(flattened, condition.parts):
        parts += part.parts if isinstance(part, kind) else [part]
    return kind(tuple(parts))


@given(
    st.recursive(
        compared,
        lambda inner: st.lists(inner, min_size=2, max_size=3).flatmap(
            lambda parts: st.sampled_from([Every(tuple(parts)), Some(tuple(parts))])
        ),
        max_leaves=8,
    )
)
def test_what_is_written_reads_back_the_same(condition: Condition) -> None:
    assert flattened(read(write_condition(condition))) == flattened(condition)


@given(st.text(alphabet="p99.sent >=<()0123456789ms%/ andor\u2028é", max_size=40))
def test_any_text_is_a_condition_or_one_sentence(text: str) -> None:
    with contextlib.suppress(VelodromeError):
        read(text)


def test_the_metric_of_a_comparison_is_the_one_named() -> None:
    assert only("lag.p99 > 1ms").metric == load_metric("lag.p99")

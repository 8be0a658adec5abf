"""The schedules of all parts of a load are, request for request, the schedule of one machine."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from velodrome.run import engine
from velodrome.run.engine import LoadSpec

pytestmark = pytest.mark.unit

NOWHERE = "http://127.0.0.1:9/"
COUNT = 400
rates = st.floats(0.5, 50_000).map(lambda rate: round(rate, 3))
steps = st.lists(
    st.fixed_dictionaries(
        {"rate": rates, "duration_s": st.floats(0.01, 3).map(lambda span: round(span, 3))},
        optional={"to_rate": rates},
    ),
    min_size=1,
    max_size=5,
)
paces: st.SearchStrategy[Mapping[str, Any]] = st.one_of(
    rates.map(lambda rate: {"rate": rate, "duration_s": 5.0}), steps.map(lambda found: {"schedule": found})
)


@given(
    paces,
    st.sampled_from(["constant", "poisson"]),
    st.integers(0, 2**63),
    st.integers(1, 9),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.7]),
)
def test_the_parts_together_are_the_whole(
    pace: Mapping[str, Any],
    arrivals: Any,
    seed: int,
    parts: int,
    threads: int,
    warmup_s: float,
) -> None:
    whole = LoadSpec(url=NOWHERE, arrivals=arrivals, seed=seed, warmup_s=warmup_s, **pace)
    alone = engine.schedule(whole, COUNT)
    split = [
        engine.schedule(whole.changed(threads=threads, part={"number": number, "of": parts}), COUNT)
        for number in range(parts)
    ]
    assert [split[n % parts][n // parts] for n in range(COUNT)] == alone
    assert sorted(due for each in split for due in each)[:COUNT] == sorted(alone)


def test_a_closed_loop_has_no_schedule() -> None:
    assert engine.schedule(LoadSpec(url=NOWHERE, duration_s=1.0), 5) == []

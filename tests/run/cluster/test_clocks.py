"""What is known of another machine's clock, and what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from velodrome.run.cluster.clocks import Alignment, Offset, Reading, best

pytestmark = pytest.mark.unit

HOUR_NS = 3_600_000_000_000


@given(
    st.integers(-HOUR_NS, HOUR_NS),
    st.lists(st.tuples(st.integers(1, 10**8), st.integers(1, 10**8)), min_size=1, max_size=20),
)
def test_the_true_offset_is_within_the_bounds_whichever_way_is_slower(
    offset: int, ways: list[tuple[int, int]]
) -> None:
    readings = [Reading(1000, 1000 + there + offset, 1000 + there + back) for there, back in ways]
    found = best(readings).offset
    assert abs(found.ns - offset) <= found.uncertainty_ns + 1
    assert found.uncertainty_ns == min(there + back for there, back in ways) / 2


def test_a_drift_is_said_only_where_the_readings_can_tell() -> None:
    before = Offset(1_000_000, 50_000, 0)
    still = Alignment(before, Offset(1_090_000, 50_000, 10_000_000_000), 100_000)
    assert still.drift_ppm is None
    drifts = Alignment(before, Offset(3_000_000, 50_000, 10_000_000_000), 100_000)
    assert drifts.drift_ppm == pytest.approx(200.0)
    assert drifts.uncertainty_ns == 2_050_000, "the timeline began by the first offset and ended by the last"

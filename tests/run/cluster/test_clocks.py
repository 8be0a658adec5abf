"""What is known of another machine's clock, and what is not."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from velodrome.run.cluster.clocks import (
    FASTEST,
    MOST_WINDOWS,
    Alignment,
    Offset,
    Reading,
    Windows,
    best,
    best_at,
)

pytestmark = pytest.mark.unit

HOUR_NS = 3_600_000_000_000
SECOND_NS = 1_000_000_000
ROUNDING_NS = 2
ways = st.lists(st.tuples(st.integers(1, 10**8), st.integers(1, 10**8)), min_size=1, max_size=20)


@dataclass
class Theirs:
    """A clock that was set wrong, drifts, and perhaps jumps; and the way to it, of which the halves are unequal."""

    offset: int
    drift: float
    jump: tuple[int, int] = (0, 0)
    """When, and by how much."""
    now: int = SECOND_NS
    seen: list[int] = field(default_factory=list)

    def ahead(self, moment: float) -> float:
        """Return by how much it is ahead: the truth."""
        at, by = self.jump
        return self.offset + self.drift * moment + (by if by and moment >= at else 0)

    def read(self, there: int, back: int) -> Reading:
        """Have it read, and time go on."""
        sent, arrived = self.now, self.now + there
        self.now = arrived + back
        return Reading(sent, arrived + round(self.ahead(arrived)), self.now)


@given(st.integers(-HOUR_NS, HOUR_NS), st.floats(-FASTEST, FASTEST), ways)
def test_the_true_offset_is_within_the_bounds_whichever_way_is_slower(
    offset: int, drift: float, both: list[tuple[int, int]]
) -> None:
    clock = Theirs(offset, drift)
    found = best(clock.read(there, back) for there, back in both).offset
    assert abs(found.ns - clock.ahead(found.at)) <= found.uncertainty_ns + ROUNDING_NS
    assert found.uncertainty_ns == pytest.approx(min(there + back for there, back in both) / 2, rel=1e-3)


@given(
    st.integers(-HOUR_NS, HOUR_NS),
    st.floats(-200e-6, 200e-6),
    ways,
    st.lists(st.tuples(st.integers(1, 10**9), st.integers(1, 10**8), st.integers(1, 10**8)), max_size=60),
    ways,
    st.integers(0, 10**10),
)
def test_the_timeline_of_an_agent_stays_within_what_is_printed(
    offset: int,
    drift: float,
    before: list[tuple[int, int]],
    during: list[tuple[int, int, int]],
    after: list[tuple[int, int]],
    waited: int,
) -> None:
    clock = Theirs(offset, drift)
    readings = [clock.read(there, back) for there, back in before]
    clock.now += waited
    begun = clock.now
    first = best_at(readings, begun)
    windows = Windows()
    for gap, there, back in during:
        clock.now += gap
        windows.add(clock.read(there, back))
    ended = clock.now
    last = best(clock.read(there, back) for there, back in after).offset
    how = Alignment(first, [reading.offset for reading in windows.kept], last, 1)
    for moment in (begun, (begun + ended) // 2, ended):
        assert abs(first.ns - clock.ahead(moment)) <= how.uncertainty_ns + ROUNDING_NS
    unsure = how.drift_uncertainty_ppm
    assert unsure is not None
    assert abs((how.drift_ppm or 0.0) - drift * 1e6) <= unsure * (2 if how.drift_ppm is None else 1) + 1e-3


@given(st.integers(-HOUR_NS, HOUR_NS), st.integers(1, 20))
def test_a_clock_that_jumps_and_comes_back_is_seen_by_a_reading_between(jump: int, at_s: int) -> None:
    clock = Theirs(0, 0.0)
    first, windows = clock.read(100, 100).offset, Windows()
    for second in range(1, 22):
        clock.now = second * SECOND_NS
        clock.jump = (0, jump if second == at_s else 0)
        windows.add(clock.read(100, 100))
    how = Alignment(first, [reading.offset for reading in windows.kept], clock.read(100, 100).offset, 200)
    assert how.uncertainty_ns >= abs(jump) - 2 * how.before.uncertainty_ns - ROUNDING_NS


def test_a_drift_is_reported_only_where_the_readings_can_tell() -> None:
    before = Offset(1_000_000, 50_000, 0)
    still = Alignment(before, (), Offset(1_090_000, 50_000, 10 * SECOND_NS), 100_000)
    assert still.drift_ppm is None
    drifts = Alignment(before, (), Offset(3_000_000, 50_000, 10 * SECOND_NS), 100_000)
    assert drifts.drift_ppm == pytest.approx(200.0)
    assert drifts.drift_uncertainty_ppm == pytest.approx(10.0)
    assert drifts.uncertainty_ns == 2_050_000, "the timeline began by the first offset and ended by the last"
    assert Alignment(before, (), before, 100_000).drift_uncertainty_ppm is None


def test_a_fresh_reading_counts_more_than_an_old_one_that_took_a_little_less() -> None:
    old, fresh = Reading(0, 50_000, 100_000), Reading(60 * SECOND_NS, 0, 60 * SECOND_NS + 200_000)
    assert best_at([old, fresh], SECOND_NS) == old.offset
    assert best_at([old, fresh], 61 * SECOND_NS) == fresh.offset


@given(st.lists(st.tuples(st.integers(1, 10**10), st.integers(1, 10**7)), min_size=1, max_size=300))
def test_of_a_long_load_the_best_reading_of_each_span_is_kept(steps: list[tuple[int, int]]) -> None:
    windows, now, readings = Windows(), 0, []
    for gap, took in steps:
        now += gap
        readings.append(Reading(now, 0, now + took))
        windows.add(readings[-1])
    assert len(windows.kept) <= MOST_WINDOWS
    assert best(windows.kept).round_trip_ns == best(readings).round_trip_ns
    for reading in windows.kept:
        same = [
            other for other in readings if other.sent // windows.span_ns == reading.sent // windows.span_ns
        ]
        assert reading.round_trip_ns == best(same).round_trip_ns

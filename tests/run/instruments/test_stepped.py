"""What third parties that take longer show: how many calls follow each other, and how many can be made at once."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.ward.made import slower

from velodrome.model.diagnosis import AS_IT_IS, Treatment
from velodrome.model.errors import UpstreamError
from velodrome.run.third_party import slower as made_slower

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("alone_ms", "calls"), [(60, 0), (110, 1), (210, 3)])
def test_a_request_takes_longer_by_as_many_calls_as_follow_each_other(alone_ms: float, calls: float) -> None:
    assert slower(alone_ms, 50.0).in_sequence == pytest.approx(calls)


def test_slots_are_as_many_as_can_be_in_their_calls_at_once() -> None:
    """15 connections, held for 60 ms, and for 110 ms: 250/s and 136/s."""
    before, after = slower(110.0, 50.0).before, slower(110.0, 50.0).after
    found = replace(
        slower(110.0, 50.0), before=replace(before, rps=15 / 0.060), after=replace(after, rps=15 / 0.110)
    )
    assert found.slots == pytest.approx(15)


def test_throughput_that_stays_has_no_slots() -> None:
    assert slower(110.0, 99.0).slots is None
    assert slower(60.0, 50.0).slots is None


@pytest.mark.parametrize(
    ("latency", "longer"),
    [
        ("50ms", "100ms"),
        ("1.5s", "3s"),
        ("lognormal(50ms,0.4)", "lognormal(100ms,0.4)"),
        ("uniform(10ms, 20ms)", "uniform(20ms, 40ms)"),
        ("exponential(150us)", "exponential(300us)"),
        ("0ms", "0ms"),
    ],
)
def test_a_latency_is_made_longer_in_its_own_form(latency: str, longer: str, tmp_path: Path) -> None:
    assert made_slower(latency, 2.0, tmp_path) == longer


def test_a_file_of_latencies_is_written_anew(tmp_path: Path) -> None:
    listed = tmp_path / "listed.txt"
    listed.write_text("# of the payment provider\n10\n0.02s  # the slowest\n\n")
    made = Path(made_slower(str(listed), 3.0, tmp_path))
    assert made.read_text().split() == ["30ms", "0.06s"]
    assert listed.read_text().startswith("#")
    with pytest.raises(UpstreamError):
        made_slower(str(tmp_path / "nowhere.txt"), 2.0, tmp_path)


def test_third_parties_that_take_longer_are_a_treatment_that_adds_to_others() -> None:
    twice = Treatment("third parties take 2 times as long", third_parties=2.0)
    assert twice
    assert not AS_IT_IS
    assert AS_IT_IS.plus(twice).third_parties == 2.0
    assert twice.plus(twice).third_parties == 4.0

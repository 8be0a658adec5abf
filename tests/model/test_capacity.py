"""What Little's law allows."""

import pytest
from tests.judge.made import CPU, HELLO, STACKS, THIRD_PARTY

from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import KnobValue
from velodrome.model.littles_law import ceiling
from velodrome.model.load import Closed, Open


@pytest.mark.parametrize(
    ("stack", "knobs", "recipe", "pace", "rps", "arithmetic", "bound"),
    [
        ("sync", {}, THIRD_PARTY, Closed(40), 10, "2 ÷ 0.2 s = 10/s", "slots"),
        ("sync", {"workers": 3}, THIRD_PARTY, Closed(40), 15, "3 ÷ 0.2 s = 15/s", "slots"),
        ("sync", {"workers": 80}, THIRD_PARTY, Closed(40), 200, "40 ÷ 0.2 s = 200/s", "connections"),
        ("uvicorn", {}, THIRD_PARTY, Closed(40), 200, "40 ÷ 0.2 s = 200/s", "connections"),
        ("sync", {}, THIRD_PARTY, Open(100), 10, "2 ÷ 0.2 s = 10/s", "slots"),
        ("sync", {}, THIRD_PARTY, Open(5), 5, "5/s requested", "rate"),
        ("sync", {}, CPU, Closed(40), 500, "1 ÷ 0.002 s = 500/s", "cpu"),
    ],
)
def test_the_lowest_bound_is_the_ceiling(
    stack: str,
    knobs: dict[str, KnobValue],
    recipe: Recipe,
    pace: Closed | Open,
    rps: float,
    arithmetic: str,
    bound: str,
) -> None:
    found = ceiling(STACKS[stack], knobs, recipe, pace, cpus=1)
    assert found is not None
    assert (round(found.rps, 9), found.arithmetic, found.bound) == (rps, arithmetic, bound)


def test_where_nothing_waits_only_the_code_is_the_limit() -> None:
    assert ceiling(STACKS["sync"], {}, HELLO, Closed(40), cpus=1) is None
    assert ceiling(STACKS["uvicorn"], {}, THIRD_PARTY, Open(100)) is None


def test_a_link_holds_a_connection_for_its_round_trip_and_a_slot_not() -> None:
    found = ceiling(STACKS["uvicorn"], {}, HELLO, Closed(40), rtt_ms=160)
    assert found is not None
    assert (found.rps, found.arithmetic, found.bound) == (250, "40 ÷ 0.16 s = 250/s", "connections")
    found = ceiling(STACKS["sync"], {}, THIRD_PARTY, Closed(400), rtt_ms=160)
    assert found is not None
    assert found.bound == "slots"


def test_a_knob_the_stack_does_not_have_is_an_error() -> None:
    with pytest.raises(KeyError, match="greenlets"):
        ceiling(STACKS["sync"], {"greenlets": 3}, THIRD_PARTY, Closed(40))

"""What is taken for a place is what the engine takes for one."""

import pytest

from velodrome.model.errors import UsageError
from velodrome.plan.requests import lines
from velodrome.run import engine
from velodrome.run.engine import LoadSpec

PLACES = [
    "n",
    " i ",
    "random",
    "random 1..9",
    "random 9..1",
    "random 1 .. 2",
    "hex 16",
    "hex 0",
    "hex 65537",
    "hex",
]
PLACES += [
    "uuid",
    "pick a|b",
    "pick",
    "pick ",
    "",
    "m",
    "uuid 4",
    "n 1",
    "random -1..2",
    "random 1..2..3",
    "hex +4",
]
PLACES += ["random 1..18446744073709551615", "random 1..18446744073709551616", "random 1_0..20"]


def taken_by_the_engine(text: str) -> bool:
    """Whether the engine finds no fault in a body; what is looked at behind it is wrong, so nothing is ever sent."""
    spec = LoadSpec(
        url="http://127.0.0.1:9/",
        requests=1,
        template=True,
        expect_contains="b",
        body=text.encode(),
        expect_body=b"ab",
    )
    try:
        engine.load(spec)
    except UsageError as error:
        message = str(error)
    assert ("stands for nothing" in message) != ("has nothing to say" in message)
    return "stands for nothing" not in message


@pytest.mark.parametrize("place", PLACES)
def test_a_place_is_known_where_the_engine_knows_it(place: str) -> None:
    text = f"a{{{{{place}}}}}b"
    assert (lines.unknown_places(text) is None) == taken_by_the_engine(text)

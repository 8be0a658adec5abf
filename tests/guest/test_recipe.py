"""What a recipe says of itself: whom it calls, and what cannot be served."""

import pytest

from velodrome.guest.recipe import Body, Call, Recipe, Step, Stream, from_plain


def test_a_call_needs_the_third_party_that_it_is_made_over() -> None:
    over_http, over_grpc = (
        Recipe("x", "x", (Call(5), Body(1))),
        Recipe("x", "x", (Call(5, over="grpc"), Body(1))),
    )
    assert (over_http.calls_upstream, over_http.calls_grpc) == (True, False)
    assert (over_grpc.calls_upstream, over_grpc.calls_grpc) == (False, True)
    assert over_grpc.wait_ms == 5


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (
            Call(5, over="smtp"),
            "steps[0] (call): over is 'smtp'; a third party is called over http or grpc",
        ),
        (
            Call(0.5, over="grpc"),
            "steps[0] (call): latency_ms is 0.5; over grpc it is a whole number of milliseconds",
        ),
    ],
)
def test_what_cannot_be_served_is_reported(step: Step, problem: str) -> None:
    assert Recipe("x", "x", (step, Body(1))).problems() == [problem]


def test_a_recipe_of_an_older_file_calls_over_http() -> None:
    plain = {
        "name": "x",
        "about": "x",
        "steps": [
            {"do": "call", "latency_ms": 5},
            {"do": "stream", "chunks": 1, "chunk_bytes": 1, "every_ms": 0},
        ],
    }
    recipe = from_plain(plain)
    assert recipe == Recipe("x", "x", (Call(5), Stream(1, 1, 0)))
    assert (recipe.streams, recipe.reads_body) == (True, False)

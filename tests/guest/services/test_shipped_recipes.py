"""The recipes that ship: found, servable, and saying what a right answer is."""

import sys

import pytest

from velodrome.guest import catalog
from velodrome.guest.recipe import FILLER, Recipe, from_plain, to_plain

RECIPES = catalog.recipes()


def test_those_that_the_questions_are_about_are_there() -> None:
    names = "hello large sleep-50ms third-party-200ms chain-125ms cpu-2ms upload-1mb stream query"
    assert set(names.split()) <= set(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_each_can_be_served_and_says_what_is_right(recipe: Recipe) -> None:
    module = sys.modules["velodrome.guest.services." + recipe.name.replace("-", "_")]
    assert recipe.problems() == []
    right = "Right: each message" if recipe.chats else "Right: status 200"
    assert right in (module.__doc__ or ""), "the docstring does not say what a right answer is"
    assert from_plain(to_plain(recipe)) == recipe == Recipe.from_json(recipe.to_json())


def test_their_sizes_and_waits_are_those_of_their_names() -> None:
    assert len(RECIPES["hello"].answer()) == 84
    assert RECIPES["large"].answer() == FILLER * 10_000
    assert len(RECIPES["upload-1mb"].upload) == 1_000_000
    waits = {name: RECIPES[name].wait_ms for name in ("sleep-50ms", "third-party-200ms", "chain-125ms")}
    assert waits == {"sleep-50ms": 50, "third-party-200ms": 200, "chain-125ms": 125}
    assert RECIPES["cpu-2ms"].cpu_us == 2000

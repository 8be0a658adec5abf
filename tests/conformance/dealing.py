"""Which pairs of stack and recipe are tested every day."""

from collections.abc import Mapping

import pytest

from velodrome.guest import catalog
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack

RECIPES = catalog.recipes()


def marks(stack: Stack, recipe: Recipe, stacks: Mapping[str, Stack]) -> list[pytest.MarkDecorator]:
    """Deal the recipes among the stacks, one to each; `hello` is for all.

    Every stack boots in each run of the tests, and every pair in the exhaustive one. Every recipe is asked of every
    interface each day, without a server, by guest/interfaces/test_every_handler.py.
    """
    dealt = list(RECIPES).index(recipe.name) == list(stacks).index(stack.name) % len(RECIPES)
    return [] if dealt or recipe.name == "hello" else [pytest.mark.exhaustive]

"""Which pairs of stack and recipe are tested every day."""

from collections.abc import Mapping

import pytest

from velodrome.guest import catalog
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack

RECIPES = catalog.recipes()


def marks(stack: Stack, recipe: Recipe, stacks: Mapping[str, Stack]) -> list[pytest.MarkDecorator]:
    """Deal the recipes of an interface among its stacks, as handlers are the interface's; `hello` is for all.

    Every stack boots and every handler is asked in each run of the tests; every pair in the exhaustive one.
    """
    kin = [one for one in stacks.values() if one.interface == stack.interface]
    dealt = list(RECIPES).index(recipe.name) % len(kin) == kin.index(stack)
    return [] if dealt or recipe.name == "hello" else [pytest.mark.exhaustive]

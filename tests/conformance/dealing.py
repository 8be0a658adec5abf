"""Which pairs of stack and recipe are tested every day."""

from collections.abc import Callable, Hashable, Mapping

import pytest

from velodrome.guest import catalog
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack

RECIPES = catalog.recipes()


def of_each(stacks: Mapping[str, Stack], kind: Callable[[Stack], Hashable]) -> pytest.MarkDecorator:
    """Try stacks, in each run of the tests the first of each kind, and the others in the exhaustive one."""
    seen: set[Hashable] = set()
    params = []
    for name, stack in stacks.items():
        first = kind(stack) not in seen
        seen.add(kind(stack))
        params.append(pytest.param(stack, id=name, marks=() if first else pytest.mark.exhaustive))
    return pytest.mark.parametrize("stack", params)


def marks(stack: Stack, recipe: Recipe, stacks: Mapping[str, Stack]) -> list[pytest.MarkDecorator]:
    """Deal the recipes among the stacks, to each one that it can serve.

    Every stack boots in each run of the tests, and every pair in the exhaustive one. Every recipe is sent to every
    interface each day, without a server, by guest/interfaces/test_every_handler.py.
    """
    chats = catalog.interface(stack.interface).protocol == "grpc"  # over HTTP: test_every_chat.py
    served = [
        entry.name
        for entry in RECIPES.values()
        if catalog.serves(stack, entry) is None and not entry.services and (chats or not entry.chats)
    ]
    dealt = served[list(stacks).index(stack.name) % len(served)]
    return [] if recipe.name == dealt else [pytest.mark.exhaustive]

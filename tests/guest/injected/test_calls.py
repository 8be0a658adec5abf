"""A call is found by where it stands, and wrapped there and nowhere else."""

import ast
import asyncio
import textwrap
from typing import Any

import pytest

from velodrome.guest.injected.calls import Awaited, Wrapped
from velodrome.guest.injected.places import Place

SOURCE = textwrap.dedent(
    """
    async def view(order):
        found = [fetch(order, more=1), fetch(order)]
        return found

    def plain(order):
        return fetch(order)

    class Shop(dict):
        def __init__(self):
            super().__init__(fetch=1)
    """
)


def site(call: str, line: int, *, columns: bool = True) -> Place:
    begin = SOURCE.splitlines()[line - 1].index(call)
    return Place(line, line, *((begin, begin + len(call)) if columns else ()))


def run(change: Wrapped, **names: Any) -> dict[str, Any]:
    tree = ast.fix_missing_locations(change.visit(ast.parse(SOURCE)))
    scope: dict[str, Any] = {"fetch": lambda order, more=0: (order, more), **names}
    exec(compile(tree, "views.py", "exec"), scope)
    return scope


def test_the_call_is_awaited_in_another_place_with_the_same_arguments() -> None:
    moved: list[Any] = []

    async def elsewhere(func: Any, *args: Any, **named: Any) -> Any:
        moved.append((args, named))
        return func(*args, **named)

    change = Awaited(site("fetch(order, more=1)", 3), "elsewhere")
    scope = run(change, elsewhere=elsewhere)
    assert asyncio.run(scope["view"](7)) == [(7, 1), (7, 0)]
    assert (change.changed, moved) == (1, [((7,), {"more": 1})])


def test_what_is_no_async_def_cannot_await() -> None:
    change = Awaited(site("fetch(order)", 7), "elsewhere")
    assert run(change)["plain"](7) == (7, 0)
    assert change.changed == 0


def test_any_call_can_be_wrapped() -> None:
    change = Wrapped(site("fetch(order)", 7), "twice")
    scope = run(change, twice=lambda func, *args: (func(*args), func(*args)))
    assert scope["plain"](7) == ((7, 0), (7, 0))


def test_without_columns_the_outermost_call_of_the_line_is_meant() -> None:
    change = Wrapped(site("fetch(order)", 7, columns=False), "wrapped")
    assert run(change, wrapped=lambda func, *args: "wrapped")["plain"](7) == "wrapped"


@pytest.mark.parametrize("call", ["super()", "super().__init__(fetch=1)"])
def test_super_still_knows_what_it_is_called_in(call: str) -> None:
    change = Wrapped(site(call, 11), "wrapped")
    scope = run(change, wrapped=lambda func, *args, **named: func(*args, **named))
    assert scope["Shop"]() == {"fetch": 1}

"""Awaits that do not need each other are found in source and awaited at once; those that do are left alone."""

import ast
import asyncio
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from velodrome.guest.injected.gathering import Gathered, find, runs
from velodrome.guest.injected.places import Place

pytestmark = pytest.mark.unit


def function(body: str) -> ast.Module:
    """Return the source of a module with one coroutine."""
    return ast.parse(
        "async def work(get, items, session):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    )


STATEMENTS = """
    price = await get("price")
    stock: str = (await get("stock")).upper()
    return price, stock
"""
LOOP = """
    found = {}
    for item in items:
        name = item.lower()
        found[name] = await get(item)
        found[item] = name
    return found
"""
COMPREHENSION = """
    found = [await get(item) for item in items if item]
    return found
"""


@pytest.mark.parametrize(
    "body",
    [STATEMENTS, LOOP.replace("        name = item.lower()\n", "        name = item\n"), COMPREHENSION],
)
def test_what_is_awaited_at_once_comes_to_the_same(body: str) -> None:
    before, tree = function(body), function(body)
    (run,) = runs(tree)
    change = Gathered([(run.line, run.end_line)], "gathered")
    changed = ast.fix_missing_locations(change.visit(tree))
    assert change.changed == 1
    assert result_of(before)[0] == result_of(changed)[0]
    assert result_of(before)[1] == 1
    assert result_of(changed)[1] > 1


def result_of(tree: ast.Module) -> tuple[Any, int]:
    """Return what the coroutine returns, and how many calls were in flight at once."""
    flying, most = 0, 0

    async def get(what: str) -> str:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        await asyncio.sleep(0)
        flying -= 1
        return f"<{what}>"

    names: dict[str, Any] = {"gathered": asyncio.gather}

    async def gathered(*started: Any) -> Any:
        return await asyncio.gather(*started)

    names["gathered"] = gathered
    exec(compile(tree, "work.py", "exec"), names)
    work: Callable[..., Any] = names["work"]
    return asyncio.run(work(get, ["a", "b", "c"], None)), most


@pytest.mark.parametrize(
    "body",
    [
        'user = await get("user")\ncart = await get(user)',
        'await get("lock")\nawait get("write")',
        'found = await get("a") if items else None\nother = await get("b")',
        "last = ''\nfor item in items:\n    last = await get(last)",
        "for item in items:\n    await get(item)",
        "for item in items:\n    found = await get(item)\n    if found:\n        break",
        "for item in items:\n    if item:\n        session.x = await get(item)",
        "session.user = await get('user')\ncart = await get(session.user)",
        "found = []\nfor item in items:\n    found.append(await get(found))",
        "found = []\nfor item in items:\n    async with item:\n        pass\n    found.append(await get(item))",
    ],
    ids=[
        *("needs what came before", "bare awaits", "not always", "each turn needs the last", "a bare loop"),
        *("a loop that ends early", "a loop with a condition", "an attribute", "what the loop works on"),
        "a loop that waits for something else",
    ],
)
def test_what_may_need_what_came_before_is_left_alone(body: str) -> None:
    assert runs(function(body)) == []


def test_an_await_is_found_in_its_run_by_where_it_stands() -> None:
    tree = function(STATEMENTS)
    second = [node for node in ast.walk(tree) if isinstance(node, ast.Await)][1]
    place = Place(second.lineno, second.end_lineno or 0, second.col_offset, second.end_col_offset)
    every = runs(tree)
    run = find(every, place)
    assert run is not None
    assert (len(run.awaits), run.loops) == (2, False)
    assert find(every, Place(1, 1, 0, 5)) is None
    by_line = find(every, Place(second.lineno, second.lineno))
    assert by_line == run


def test_the_changed_line_is_reported() -> None:
    (run,) = runs(function('a = await get("a")\nb = await get("b")'))
    assert run.after == "a, b = await asyncio.gather(get('a'), get('b'))"
    (run,) = runs(function(LOOP.replace("        name = item.lower()\n", "        name = item\n")))
    assert run.after == "await asyncio.gather(*[get(item) for item in items])"

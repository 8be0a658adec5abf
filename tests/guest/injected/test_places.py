"""The expression of an instruction is found in the source, among others that begin where it does."""

import ast
import sys
from typing import Any

import pytest

from velodrome.guest.injected.places import Place, position
from velodrome.model.symptoms import Frame

pytestmark = pytest.mark.unit
SOURCE = """
async def view(pause):
    return [await pause("ä"), await pause(
        2)]

def where(found):
    return found()(found)
"""


def nodes(kind: Any) -> list[Any]:
    return [node for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, kind)]


def scope() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(SOURCE, "views.py", "exec"), names)
    return names


def test_an_await_is_where_its_coroutine_waits() -> None:
    class Pause:
        def __init__(self, _: object) -> None:
            pass

        def __await__(self) -> Any:
            yield

    coroutine = scope()["view"](Pause)
    met = []
    for _ in range(2):
        coroutine.send(None)
        place = position(coroutine.cr_code, coroutine.cr_frame.f_lasti)
        met.append([place.is_at(node) for node in nodes(ast.Await)])
    coroutine.close()
    assert met == [[True, False], [False, True]]


def test_a_call_is_known_from_one_that_begins_where_it_does() -> None:
    def calls(*_: object) -> Any:
        frame = sys._getframe(1)
        places.append(position(frame.f_code, frame.f_lasti))
        return calls

    places: list[Place] = []
    scope()["where"](calls)
    outer, inner = (node for node in nodes(ast.Call) if node.lineno == 7)
    assert [(place.is_at(inner), place.is_at(outer)) for place in places] == [(True, False), (False, True)]


@pytest.mark.parametrize("columns", [(8, 14), (None, None)])
def test_what_the_host_sends_of_a_frame_is_a_place(columns: tuple[int | None, int | None]) -> None:
    frame = Frame("views.py", 3, "view", end_line=4, column=columns[0], end_column=columns[1])
    assert Place.of(frame.site()) == Place(3, 4, *columns)

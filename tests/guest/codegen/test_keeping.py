"""Places to keep a marker in: each keeps apart what it says it does."""

import contextvars
import threading

import pytest

from velodrome.guest.codegen.steps import place
from velodrome.guest.recipe import PLACES, Body, Keep, ReadBody, Recipe


def test_threads_share_a_global_place_alone() -> None:
    for name in PLACES[:3]:
        put, get = place(name)
        put(b"ours")
        other = threading.Thread(target=put, args=(b"theirs",))
        other.start()
        other.join()
        assert get() == (b"theirs" if name == "global" else b"ours"), name


def test_contexts_of_one_thread_share_all_but_a_context_local_place() -> None:
    for name in PLACES[:3]:
        put, get = place(name)
        put(b"ours")
        contextvars.copy_context().run(put, b"theirs")
        assert get() == (b"ours" if name == "context-local" else b"theirs"), name


def test_two_places_of_one_kind_are_apart() -> None:
    (put, _), (_, get) = place("thread-local"), place("thread-local")
    put(b"one")
    assert get() == b""


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("greenlet-local", "greenlet-local is a place where gevent has patched the standard library"),
        ("request-local", "no place is called 'request-local'; there are: global, thread-local"),
    ],
)
def test_a_place_that_is_not_here_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        place(name)


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe("x", "x", (Keep(), Body(2))),
        Recipe("x", "x", (Keep(), ReadBody(), Body(2)), "POST", 12),
        Recipe("x", "x", (ReadBody(), Keep(), Body(2)), "POST"),
    ],
)
def test_a_recipe_that_keeps_what_it_has_not_read_is_reported(recipe: Recipe) -> None:
    assert any(problem.startswith("keep has no upload to keep") for problem in recipe.problems())

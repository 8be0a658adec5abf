"""Lists of stacks and recipes as plain lines."""

import io

from velodrome.guest import catalog
from velodrome.report import listing


def test_columns_are_aligned_and_the_last_is_not_padded() -> None:
    assert listing.align_rows([("a", "bb", "c"), ("aaa", "b", "cc")]) == ["a    bb  c", "aaa  b   cc"]


def test_a_stack_that_cannot_run_here_is_reported_with_its_reason_and_a_broken_one_with_its_error() -> None:
    out = io.StringIO()
    found = next(iter(catalog.stacks().values()))
    listing.stacks([(found, "it needs Linux")], [("mine", "./mine.py", "SyntaxError: invalid syntax")], out)
    assert f"{found.name} cannot run here: it needs Linux" in out.getvalue()
    assert "mine could not be loaded from ./mine.py: SyntaxError" in out.getvalue()


def test_every_stack_can_be_described() -> None:
    for found in catalog.stacks().values():
        out = io.StringIO()
        listing.stack(found, catalog.requires(found), None, "python -m it", out)
        assert found.about in out.getvalue()
        assert "here" in out.getvalue()


def test_every_recipe_says_what_a_right_answer_is() -> None:
    for recipe in catalog.recipes().values():
        out = io.StringIO()
        listing.recipe(recipe, out)
        assert "A correct response has status 200" in out.getvalue()

"""Requests of one shape are one kind, however many there are."""

import uuid

import pytest

from velodrome.plan.requests import mix
from velodrome.plan.requests.mix import MOST, MOST_KINDS, MOST_NAMES, Budget, Tree


def shapes(tree: Tree) -> dict[str, int]:
    return {f"{method} {shape}": kind.sample.seen for method, shape, kind in tree.all()}


def tree(*targets: str) -> Tree:
    found = Tree()
    for target in targets:
        assert found.add("GET", target, 200)
    return found


@pytest.mark.parametrize(
    ("target", "shape"),
    [
        ("/", "/"),
        ("/cart", "/cart"),
        ("/cart/", "/cart/"),
        ("/items/7", "/items/*"),
        (f"/items/{uuid.UUID(int=7)}/open", "/items/*/open"),
        ("/blobs/0badc0de42", "/blobs/*"),
        ("/feedback/facade", "/feedback/facade"),
        ("/search?q=red&page=2", "/search?q=*&page=*"),
        ("/a//7", "/a//*"),
        ("/v2/items", "/v2/items"),
    ],
)
def test_ids_are_told_from_names(target: str, shape: str) -> None:
    assert shapes(tree(target)) == {f"GET {shape}": 1}


def test_too_many_names_in_one_place_are_one_kind() -> None:
    few = tree("/about", *(f"/blog/{word}/comments" for word in range_of_words(MOST_NAMES)))
    assert len(shapes(few)) == MOST_NAMES + 1
    many = tree("/about", *(f"/blog/{word}/comments" for word in range_of_words(300)), "/blog/word-1/likes")
    assert shapes(many) == {"GET /about": 1, "GET /blog/*/comments": 300, "GET /blog/*/likes": 1}
    assert many.kinds == 3


def range_of_words(count: int) -> list[str]:
    return [f"word-{number}" for number in range(count)]


def test_what_is_behind_gathered_names_is_gathered_too() -> None:
    found = tree(*(f"/{a}-x/{b}-y" for a in range(MOST_NAMES + 5) for b in range(MOST_NAMES + 5)))
    assert shapes(found) == {"GET /*/*": (MOST_NAMES + 5) ** 2}
    assert found.kinds == 1


def test_there_are_only_so_many_kinds() -> None:
    found = Tree()
    taken = sum(found.add("GET", f"/?{number}", 200) for number in range(MOST_KINDS + 100))
    assert taken == MOST_KINDS
    assert not found.add("GET", "/new/name", 200)
    assert found.add("GET", "/?7", 200)


def test_samples_are_bounded_and_keep_the_shares() -> None:
    found = tree(*(f"/items/{number % 4 and 1}" for number in range(4000)))
    [(_, _, kind)] = found.all()
    assert len(kind.sample.kept) == MOST
    assert 60 <= kind.sample.kept.count("/items/1") <= 90


def test_all_samples_share_one_budget() -> None:
    found = Tree(Budget(1000))
    for number in range(2000):
        found.add("GET", f"/items/{number}?{'x' * (number % 50)}=1", 200)
    kept = sum(len(target) for _, _, kind in found.all() for target in kind.sample.kept)
    assert kept <= 1000
    assert found.budget.left >= 0


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("/cart?id=7", "/cart?id=7"),
        ("/caf\\xC3\\xA9", "/caf%C3%A9"),
        ("/caf\xc3\xa9", "/caf%C3%A9"),
        ('/a\\"b\\\\', "/a%22b%5C"),
        ("/{{n}}|x", "/%7B%7Bn%7D%7D%7Cx"),
        ("/a%20b#top", "/a%20b"),
        ("http://shop.test/cart?id=7", "/cart?id=7"),
        ("http://shop.test", "/"),
        ("shop.test:443", None),
        ("*", None),
        ("http://[", None),
        ("/" + "x" * 3000, None),
    ],
)
def test_a_target_is_written_as_it_is_sent_again(text: str, target: str | None) -> None:
    assert mix.target(text) == target


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("/items/7", ("/items/", 7, "")),
        ("/items/7/open", ("/items/", 7, "/open")),
        ("/search?page=12", ("/search?page=", 12, "")),
        ("/7up/7/7up", ("/7up/", 7, "/7up")),
        ("/7", ("/", 7, "")),
        ("/items/007", None),
        ("/items/7/parts/8", None),
        ("/items/7?page=1", None),
        ("/items/7?full", None),
        ("/search?page=1&size=2", None),
        ("/search?page=a", None),
        ("/about", None),
    ],
)
def test_the_only_number_is_found(target: str, found: object) -> None:
    assert mix.around_number(target) == found

"""What differs in the paths of a kind is one template."""

import random

import pytest

from velodrome.plan.requests import mix
from velodrome.plan.requests.mix import Budget, Kind, Sample


def path(*targets: str) -> str:
    kind = Kind(Sample(Budget(), random.Random(1)))
    for target in targets:
        kind.add(target, 200)
    return mix.path(kind)


@pytest.mark.parametrize(
    ("targets", "template"),
    [
        (["/cart"] * 3, "/cart"),
        (["/items/7", "/items/12", "/items/7"], "/items/{{pick 7|7|12}}"),
        (["/items/71/open", "/items/72/open"], "/items/{{pick 71|72}}/open"),
        (
            ["/users/7/orders/31", "/users/9/orders/2"],
            "/users/{{pick 7/orders/31|9/orders/2}}",
        ),
        (["/search?q=red&page=1", "/search?q=blue&page=1"], "/search?q={{pick blue|red}}&page=1"),
        (["/a/", "/a/b"], "/a/{{pick |b}}"),
        ([f"/items/{number}" for number in range(1, 200)], "/items/{{random 1..199}}"),
        ([f"/items/{number}/open" for number in range(1, 200, 2)], "/items/{{random 1..199}}/open"),
        ([f"/search?page={number}" for number in range(10)], "/search?page={{random 0..9}}"),
    ],
)
def test_paths_become_one_template(targets: list[str], template: str) -> None:
    assert path(*targets) == template


def test_numbers_far_apart_are_picked_from() -> None:
    template = path(*(f"/items/{number * 1000}" for number in range(50)))
    assert template.startswith("/items/{{pick 0|1000|2000|")


def test_few_words_stand_by_their_shares() -> None:
    assert path(*["/a/1"] * 60, *["/a/2"] * 30, *["/a/3"] * 10) == f"/a/{{{{pick {'1|' * 6}2|2|2|3}}}}"

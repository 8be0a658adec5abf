"""Every key and item of a file is found where it stands."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from velodrome.plan.findings import TomlMap

TEXT = """\
title = "x"
limits = {cpus = 1, "memory" = "1GB"}
a.b = 1
list = [
  "one",  # a comment
  {stack = "two", workers = 2},
]
[[questions]]
name = 'é€'
[[questions]]
x = 1
loads = [{rate = -5}, {rate = 3}]
[questions.recipe]
steps = [{do = "sleep", ms = 50}]
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("title",), (1, 1)),
        (("limits", "cpus"), (2, 11)),
        (("limits", "memory"), (2, 21)),
        (("a", "b"), (3, 1)),
        (("list", 0), (5, 3)),
        (("list", 1), (6, 3)),
        (("list", 1, "workers"), (6, 19)),
        (("questions",), (8, 3)),
        (("questions", 0, "name"), (9, 1)),
        (("questions", 1), (10, 3)),
        (("questions", 1, "loads", 0, "rate"), (12, 11)),
        (("questions", 1, "loads", 1, "rate"), (12, 24)),
        (("questions", 1, "recipe", "steps", 0, "ms"), (14, 25)),
        (("questions", 1, "loads", 1, "missing"), (12, 23)),
        (("questions", 7, "name"), (8, 3)),
        (("nothing", "here"), (1, 1)),
    ],
)
def test_a_key_is_where_it_stands_and_a_missing_one_where_it_should(
    path: tuple[str | int, ...], place: tuple[int, int]
) -> None:
    assert TomlMap.of(TEXT).place(path) == place


def test_columns_are_counted_in_characters() -> None:
    assert TomlMap.of('x = {"é€" = 1, b = 2}').place(("x", "b")) == (1, 16)


def test_reading_goes_on_after_an_error() -> None:
    broken = TomlMap.of("a = \nb = 2\n\n\n[c\nd = 1\n").broken
    assert len({place[0] for place, _ in broken}) >= 2


@given(st.text(max_size=80))
def test_no_text_is_too_strange(text: str) -> None:
    TomlMap.of(text)


KEYS = st.sampled_from(["a", "b", "c-d", '"e f"'])
VALUES = st.recursive(
    st.sampled_from(["1", '"t"', "true", "1.5"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        st.dictionaries(KEYS, inner, max_size=3).map(
            lambda table: "{" + ", ".join(f"{key} = {value}" for key, value in table.items()) + "}"
        ),
    ),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test_whatever_tomllib_reads_has_a_place(table: dict[str, str]) -> None:
    text = "\n".join(f"{key} = {value}" for key, value in table.items())
    places = TomlMap.of(text).places

    def walk(value: object, path: tuple[str | int, ...]) -> None:
        assert not path or path in places
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, (*path, key))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                walk(inner, (*path, index))

    walk(tomllib.loads(text), ())

"""JSON or YAML, in the words of JSON; what is neither is one sentence."""

import json
import math
from typing import Any

import pytest

from velodrome.plan.requests import document
from velodrome.plan.requests.document import OverflowingError, UnreadableError, parse_document

MERGES = "\n".join(
    [
        "a0: &a0 {a: 1, b: 2, c: 3}",
        *(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 10)),
    ]
)
LAUGHS = "\n".join(["a0: &a0 x", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("a: [1, -2, 0.5, 1e3, 007, 1_000, 1:30]", {"a": [1, -2, 0.5, 1000.0, "007", "1_000", "1:30"]}),
        ("a: [true, False, no, on, ~, null, '1', 2024-01-01]",
         {"a": [True, False, "no", "on", None, None, "1", "2024-01-01"]}),
        ("200: ok\ndefault: no\ntrue: x", {"200": "ok", "default": "no", "true": "x"}),
        ("base: &b {a: 1}\nmore: {<<: *b, c: 2}", {"base": {"a": 1}, "more": {"a": 1, "c": 2}}),
        ("- &a {x: 1, y: 1}\n- &b {y: 2, z: 2}\n- {z: 3, <<: [*a, *b]}",
         [{"x": 1, "y": 1}, {"y": 2, "z": 2}, {"x": 1, "y": 1, "z": 3}]),
        ("'<<': {a: 1}", {"<<": {"a": 1}}),
        ("&k name: 1\nother: *k", {"name": 1, "other": "name"}),
        ("a: !!str 007\nb: !!binary aGk=\nc: ! 1\nd: !!int '12'\n~: x",
         {"a": "007", "b": "aGk=", "c": "1", "d": 12, "null": "x"}),
        ("", None),
    ],
)  # fmt: skip
def test_yaml_is_read_in_the_words_of_json(text: str, value: Any) -> None:
    assert parse_document(text) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "it is no JSON"),
        ("a: b: c", "it is neither JSON nor YAML: line 1, column 5: mapping values are not allowed"),
        ("a: !!python/object/apply:os.system [x]", "could not determine a constructor"),
        ("a: &a [*a]", "holds itself"),
        ("[" * 100_000, "nested too deeply"),
        ("- " * 100_000, "nested too deeply"),
        ("a: \x00", "neither JSON nor YAML"),
        ("a: 1\n---\nb: 2", "line 2: another document begins"),
        ("a: *b", "line 1: nothing is called"),
        ("? [a]\n: b", "line 1: a name is a text"),
        ("x: &x [1]\n*x : b", "line 2: a name is a text"),
        ("a: {<<: [b]}", "line 1: << merges objects"),
        ("a: !shop {b: c}", "could not determine a constructor"),
        ("a: !!bool maybe", "line 1: 'maybe' is no bool"),
        ("a: !!int 1:30", "is no int"),
        ("a: !!float ''", "is no float"),
        (f"a: {'1' * 5_000}", "a number of 5000 digits is too long"),
        (
            "\n".join(["a0: &a0 []", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 300))]),
            "line 200: it is nested too",
        ),
    ],
)
def test_what_is_neither_is_one_sentence(text: str, why: str) -> None:
    with pytest.raises(UnreadableError, match=why) as caught:
        parse_document(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (LAUGHS, "line 4"),
        ("- [" + "x, " * 1_000 + "]", "line 1"),
        (json.dumps(["x"] * 2_000), ""),
        (MERGES, "line 4"),
    ],
)
def test_what_stands_for_too_much_is_reported_with_its_line(
    text: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "MOST_NODES", 1_000)
    with pytest.raises(OverflowingError) as caught:
        parse_document(text)
    assert (caught.value.place, caught.value.budget) == (place, "1 000 values")


def test_texts_that_are_repeated_are_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MOST_BYTES", 10_000)
    with pytest.raises(OverflowingError) as caught:
        parse_document(f"- &a {'x' * 1_000}\n" + "- *a\n" * 20)
    assert (caught.value.place, caught.value.budget) == ("line 11", "10 000 bytes")


def test_what_an_alias_names_is_kept_once() -> None:
    first, second = parse_document("- &a {b: [c]}\n- *a")
    assert first is second


def test_numbers_that_json_does_not_know_are_texts() -> None:
    assert parse_document("a: [.inf, .nan, 0x1f]") == {"a": [".inf", ".nan", "0x1f"]}
    assert math.isfinite(parse_document("a: 1.5")["a"])

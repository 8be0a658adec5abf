"""JSON or YAML, in the words of JSON; what is neither is one sentence."""

import math
from typing import Any

import pytest

from velodrome.plan.asked.described import document
from velodrome.plan.asked.described.document import UnreadableError, parsed

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
        ("", None),
    ],
)  # fmt: skip
def test_yaml_is_read_in_the_words_of_json(text: str, value: Any) -> None:
    assert parsed(text) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "it is no JSON"),
        ("a: b: c", "it is neither JSON nor YAML: line 1, column 5: mapping values are not allowed"),
        ("a: !!python/object/apply:os.system [x]", "could not determine a constructor"),
        ("a: &a [*a]", "holds itself"),
        (LAUGHS, "it stands for more than 1 000 values"),
        ("[" * 100_000, "nested too deeply"),
        ("- " * 100_000, "nested too deeply"),
        ("a: \x00", "neither JSON nor YAML"),
    ],
)
def test_what_is_neither_is_one_sentence(text: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MOST_NODES", 1_000)
    with pytest.raises(UnreadableError, match=why) as caught:
        parsed(text)
    assert "\n" not in str(caught.value)


def test_numbers_that_json_does_not_know_are_texts() -> None:
    assert parsed("a: [.inf, .nan, 0x1f]") == {"a": [".inf", ".nan", "0x1f"]}
    assert math.isfinite(parsed("a: 1.5")["a"])

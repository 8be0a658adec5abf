"""A schema is filled in by what it says, else by the least it allows."""

from typing import Any

import pytest

from velodrome.plan.requests.document import MOST_VALUES, References, TooMuchError, UnfillableError
from velodrome.plan.requests.openapi import Filling

ROOT: dict[str, Any] = {
    "components": {
        "schemas": {
            "Item": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
            "Tree": {
                "type": "object",
                "required": ["child"],
                "properties": {"child": {"$ref": "#/components/schemas/Tree"}},
            },
            "Leafy": {
                "type": "object",
                "required": ["leaves"],
                "properties": {"leaves": {"type": "array", "items": {"$ref": "#/components/schemas/Leafy"}}},
            },
            "Wide": {"type": "object", "required": list("ab"), "properties": {}},
            "Circle": {"$ref": "#/components/schemas/Circle"},
            "a/b~c": {"const": 7},
        }
    }
}
WIDE = {"$ref": "#/components/schemas/Wide"}
ROOT["components"]["schemas"]["Wide"]["properties"] = {"a": WIDE, "b": WIDE}


NESTED: dict[str, Any] = {"type": "integer"}
for _ in range(100):
    NESTED = {"type": "array", "items": NESTED, "minItems": 1}


def value(schema: object) -> Any:
    return Filling(References(ROOT)).value(schema, "body")


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


@pytest.mark.parametrize(
    ("schema", "filled"),
    [
        ({"type": "integer", "example": 7, "default": 8}, 7),
        ({"type": "string", "examples": ["red", "blue"]}, "red"),
        ({"type": "integer", "default": 8}, 8),
        ({"const": "x"}, "x"),
        ({"enum": [None, "a", "b"]}, "a"),
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "minimum": 5, "exclusiveMinimum": True}, 6),
        ({"type": "integer", "minimum": 5, "exclusiveMinimum": False}, 5),
        ({"type": "integer", "exclusiveMinimum": 5}, 6),
        ({"type": "integer", "minimum": 5, "multipleOf": 4}, 8),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "number", "minimum": 0.5}, 0.5),
        ({"type": "number", "exclusiveMinimum": 0}, 1.0),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, 0.5),
        ({"type": "boolean"}, True),
        ({"type": ["null", "string"], "minLength": 6}, "bodyxx"),
        ({"type": "string", "maxLength": 2}, "bo"),
        ({"type": "string", "format": "uuid"}, "{{uuid}}"),
        ({"type": "string", "format": "date"}, "2026-01-01"),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"type": "array", "items": {"type": "string", "pattern": "x"}}, []),
        ({"type": "array"}, []),
        (ref("Item"), {"id": 1}),
        (ref("a~1b~0c"), 7),
        (ref("Leafy"), {"leaves": []}),
        ({"allOf": [ref("Item"), {"properties": {"name": {"example": "red"}}}]}, {"id": 1, "name": "red"}),
        ({"anyOf": [{"type": "null"}, {"pattern": "x", "type": "string"}, ref("Item")]}, {"id": 1}),
        (
            {"properties": {"a": {"type": "string"}, "id": {"readOnly": True}}, "required": ["a", "id"]},
            {"a": "a"},
        ),
    ],
)
def test_a_schema_is_filled_in(schema: object, filled: object) -> None:
    found = value(schema)
    assert found == filled
    assert type(found) is type(filled)


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ({}, "body has neither an example nor a type"),
        ({"type": "string", "pattern": "^a+$"}, "body has a pattern and no example"),
        (ref("Tree"), "body.child holds itself"),
        (ref("Wide"), "body.a holds itself"),
        (ref("Circle"), "refers to itself"),
        (ref("None"), "#/components/schemas/None refers to nothing"),
        ({"$ref": "other.json#/a"}, "is in another document"),
        ({"type": "object", "required": ["x"]}, "body.x is required and not described"),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 10**9}, "at least 1000000000 items"),
        ({"type": "string", "minLength": 10**9}, "at least 1000000000 letters"),
        ({"anyOf": [{"type": "null"}]}, "body is null"),
        (NESTED, "is too deep"),
        ({"type": 7}, "neither an example nor a type"),
    ],
)
def test_what_cannot_be_filled_in_says_why(schema: object, sentence: str) -> None:
    with pytest.raises(UnfillableError) as caught:
        value(schema)
    assert sentence in str(caught.value)


def arrays(levels: int, least: int, inside: dict[str, Any]) -> dict[str, Any]:
    for _ in range(levels):
        inside = {"type": "array", "items": inside, "minItems": least}
    return inside


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "array",
            "minItems": 1,
            "items": {"anyOf": [{"pattern": "x", "type": "string"}] * MOST_VALUES},
        },
        arrays(7, 100, {"type": "integer"}),
        arrays(2, 100, {"type": "integer"}),
        arrays(1, 100, {"example": ["x"] * 1_000}),
        arrays(1, 100, {"example": "x" * 100_000}),
        arrays(2, 100, {"type": "string", "minLength": 10_000}),
        {"anyOf": [arrays(7, 100, {"type": "integer"}), {"type": "integer"}]},
    ],
)
def test_what_is_filled_in_is_bounded(schema: dict[str, Any]) -> None:
    with pytest.raises(TooMuchError):
        value(schema)


def test_what_is_repeated_within_the_bounds_is_written_as_often() -> None:
    assert value(arrays(2, 50, {"type": "integer"})) == [[1] * 50] * 50


def test_an_example_that_is_nested_too_deeply_says_so() -> None:
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    with pytest.raises(UnfillableError, match="nested too deeply"):
        value({"example": deep})

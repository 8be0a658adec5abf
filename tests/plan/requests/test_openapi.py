"""An OpenAPI document becomes requests; what it does not say is left out with the reason."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from velodrome.model.app import Content, Request
from velodrome.model.errors import OpenApiError
from velodrome.plan.requests import lines, openapi
from velodrome.plan.requests.lines import SAFE
from velodrome.plan.requests.openapi import OpenApi

ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 7}}
JSON = (("Content-Type", "application/json"),)
SHOP: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Shop"},
    "servers": [{"url": "https://{host}/{version}/", "variables": {"version": {"default": "v1"}}}],
    "paths": {
        "/items/{id}": {
            "parameters": [{"$ref": "#/components/parameters/Id"}],
            "get": {"responses": {"404": {}, "200": {}}},
            "delete": {"responses": {"204": {}}},
        },
        "/search": {
            "get": {
                "parameters": [
                    {"name": "q", "in": "query", "required": True, "example": "red shoes", "schema": {}},
                    {"name": "sort", "in": "query", "schema": {"enum": ["price", "name"]}},
                    {"name": "tag", "in": "query", "schema": {"type": "array", "example": ["a&b", "c"]}},
                    {"name": "X-Shop", "in": "header", "required": True, "schema": {"default": "north"}},
                    {"name": "seen", "in": "cookie", "required": True, "schema": {"const": 1}},
                    {"name": "Accept", "in": "header", "required": True, "schema": {}},
                ],
            }
        },
        "/by/{colour}": {
            "get": {
                "parameters": [{"name": "colour", "in": "path", "schema": {"enum": ["red", "a/b"]}}],
                "responses": {"2XX": {}},
            }
        },
        "/old": {"get": {"responses": {"307": {}}}},
        "/user/{name}": {"get": {"parameters": [{"name": "name", "in": "path", "schema": {"type": "string"}}]}},
        "/secret": {"get": {"security": [{"token": []}]}},
        "/events": {"get": {"responses": {"200": {"content": {"text/event-stream": {}}}}}},
        "/orders": {
            "post": {
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}}},
                "responses": {"201": {}},
            }
        },
        "/login": {
            "post": {
                "requestBody": {
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {"type": "object", "properties": {"name": {"example": "a b"}}}
                        }
                    }
                }
            }
        },
        "/picture": {"put": {"requestBody": {"required": True, "content": {"image/png": {}}}}},
    },
    "components": {
        "parameters": {"Id": ID},
        "schemas": {
            "Order": {
                "type": "object",
                "required": ["id", "lines"],
                "properties": {
                    "id": {"type": "string", "format": "uuid"},
                    "lines": {"type": "array", "items": {"type": "object", "properties": {"n": {"example": 2}}}},
                },
            }
        },
    },
}  # fmt: skip


def read(tmp_path: Path, document: object, *methods: str) -> OpenApi:
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(document))
    return openapi.read(path, methods or SAFE)


def test_operations_are_filled_in_by_what_the_document_says(tmp_path: Path) -> None:
    found = read(tmp_path, SHOP)
    assert found.title == "Shop"
    assert found.requests == (
        Request("GET /items/{id}", "/v1/items/7", expect_status=200),
        Request(
            "GET /search",
            "/v1/search?q=red%20shoes&tag=a%26b&tag=c",
            headers=(("X-Shop", "north"), ("Cookie", "seen=1")),
        ),
        Request("GET /by/{colour}", "/v1/by/{{pick red|a%2Fb}}"),
        Request("GET /old", "/v1/old", expect_status=307),
    )


def test_what_is_left_out_is_reported_with_its_reason(tmp_path: Path) -> None:
    reasons = {left_out.what: left_out.why for left_out in read(tmp_path, SHOP).left_out}
    assert reasons.pop("GET /user/{name}") == "parameter name has no example, default, enum or minimum"
    assert reasons.pop("GET /secret").startswith("it needs authorization (token); write the request")
    assert reasons.pop("GET /events") == "it answers with a stream of events, which has no end"
    assert set(reasons) == {"DELETE /items/{id}", "POST /orders", "POST /login", "PUT /picture"}
    assert all(why.startswith("not among --methods") for why in reasons.values())


def test_bodies_are_made_where_methods_with_them_are_named(tmp_path: Path) -> None:
    found = read(tmp_path, SHOP, "post", "PUT", "DELETE")
    delete, order, login = found.requests
    assert delete == Request("DELETE /items/{id}", "/v1/items/7", "DELETE", expect_status=204)
    assert order == Request(
        "POST /orders",
        "/v1/orders",
        "POST",
        headers=JSON,
        body=Content('{"id": "{{uuid}}", "lines": [{"n": 2}]}'),
        expect_status=201,
    )
    assert login.body == Content("name=a+b")
    reasons = {left_out.what: left_out.why for left_out in found.left_out}
    assert reasons["PUT /picture"] == "its body is image/png; JSON and forms are written"


def test_swagger_2_is_read_too(tmp_path: Path) -> None:
    document = {
        "swagger": "2.0",
        "basePath": "/api/",
        "paths": {
            "/items/{id}": {
                "get": {"parameters": [{"name": "id", "in": "path", "type": "integer", "minimum": 7}]},
                "put": {
                    "parameters": [
                        {"name": "id", "in": "path", "type": "integer", "default": 3},
                        {"name": "body", "in": "body", "schema": {"$ref": "#/definitions/Item"}},
                    ]
                },
            }
        },
        "definitions": {"Item": {"type": "object", "properties": {"name": {"example": "red"}}}},
    }
    get, put = read(tmp_path, document, "GET", "PUT").requests
    assert get == Request("GET /items/{id}", "/api/items/7")
    assert (put.path, put.headers, put.body) == ("/api/items/3", JSON, Content('{"name": "red"}'))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it is no OpenAPI document"),
        ("{", "it is no JSON"),
        ("[]", "it is no OpenAPI document: it has no field 'openapi'"),
        ('{"openapi": 3}', "it is no OpenAPI document"),
        ('{"openapi": "3.1.0"}', "it describes no operation"),
        ('{"openapi": "3.1.0", "paths": []}', "it describes no operation"),
        (
            '{"openapi": "3.1.0", "paths": {"/": {"post": {}}}}',
            "leaves nothing to request: POST / (not among",
        ),
        ("openapi: 3.1.0\ninfo:\n  title: Shop\n", "it describes no operation"),
        (
            "openapi: 3.1.0\ninfo: title: Shop\n",
            "it is neither JSON nor YAML: line 2, column 12: mapping values",
        ),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_document_is_one_clear_error(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "openapi.json"
    path.write_text(text)
    with pytest.raises(OpenApiError) as caught:
        openapi.read(path)
    assert sentence in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_that_is_not_there_or_no_text_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(OpenApiError, match="cannot be read: No such file"):
        openapi.read(tmp_path / "none.json")
    (tmp_path / "openapi.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(OpenApiError, match="it is no text"):
        openapi.read(tmp_path / "openapi.yaml")


WRITTEN = """
openapi: 3.0.3
info: {title: Shop}
servers: [{url: /api}]
paths:
  /items/{id}:
    get:
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}, example: 007}
        - {name: since, in: query, required: true, schema: &plain {type: string}, example: 2024-01-01}
        - {name: all, in: query, required: true, schema: *plain, example: no}
        - {name: most, in: query, required: true, schema: {type: integer}, example: 30}
      responses:
        200: {description: one}
  /orders:
    post:
      requestBody:
        content:
          application/json:
            schema: {type: object, required: [paid], properties: {paid: {type: boolean, example: true}}}
      responses:
        201: {description: made}
"""


@pytest.mark.parametrize("name", ["openapi.yaml", "openapi.yml", "openapi"])
def test_yaml_says_what_json_would(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(WRITTEN)
    get, post = openapi.read(tmp_path / name, ("GET", "POST")).requests
    assert get.path == "/api/items/007?since=2024-01-01&all=no&most=30"
    assert get.expect_status == 200
    assert post.body == Content('{"paid": true}')
    assert post.expect_status == 201


def test_an_unquoted_version_of_swagger_is_one(tmp_path: Path) -> None:
    path = tmp_path / "swagger.yaml"
    path.write_text("swagger: 2.0\nbasePath: /v1\npaths:\n  /items:\n    get: {responses: {200: {}}}\n")
    (get,) = openapi.read(path).requests
    assert get.path == "/v1/items"


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
LEAVES |= st.sampled_from(
    ["get", "path", "query", "object", "array", "{{n}}", "#/paths/~1a", "\ud800", "/{x}", "application/json"]
)
NAMES = st.sampled_from(
    [
        "$ref",
        "type",
        "schema",
        "example",
        "enum",
        "items",
        "properties",
        "required",
        "allOf",
        "oneOf",
        "minimum",
        "maximum",
        "parameters",
        "name",
        "in",
        "content",
        "requestBody",
        "responses",
        "200",
        "servers",
        "url",
        "x",
        "application/json",
        "minItems",
        "minLength",
        "format",
        "examples",
        "value",
        "multipleOf",
        "security",
    ]
)
ANYTHING = st.recursive(
    LEAVES, lambda strategy: st.lists(strategy, max_size=3) | st.dictionaries(NAMES, strategy, max_size=4)
)


@settings(suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_document_is_an_answer_or_one_clear_error(tmp_path: Path, data: st.DataObject) -> None:
    operation = st.fixed_dictionaries(
        {}, optional={"parameters": st.lists(ANYTHING, max_size=3), "requestBody": ANYTHING, "responses": ANYTHING}
    )  # fmt: skip
    path = st.sampled_from(["/a", "/{x}/{y}", "b c", "", "/é\ud800", "/{{n}}"])
    document = {
        "openapi": "3.0.0",
        "info": data.draw(ANYTHING),
        "servers": data.draw(ANYTHING),
        "paths": data.draw(
            st.dictionaries(path, st.dictionaries(st.sampled_from(["get", "post"]), operation | ANYTHING), max_size=3)
        ),
        "x": data.draw(ANYTHING),
    }  # fmt: skip
    with suppress(OpenApiError):
        found = read(tmp_path, document, "GET", "POST")
        assert [*lines.faults_of_all(found.requests)] == []
        json.dumps([request.path for request in found.requests]).encode()
        for text in (found.title, *(left_out.why + left_out.what for left_out in found.left_out)):
            text.encode()


def test_of_many_operations_that_are_left_out_some_are_reported(tmp_path: Path) -> None:
    paths: dict[str, Any] = {
        f"/{number}": {"get": {}, "post": {}} for number in range(openapi.MOST_LISTED + 20)
    }
    found = read(tmp_path, {"openapi": "3.0.0", "paths": paths})
    assert len(found.requests) == lines.MOST
    sentences = [*found.sentences()]
    assert len(sentences) == openapi.MOST_LISTED + 2
    assert sentences[-1] == f"left out: {len(found.left_out) - openapi.MOST_LISTED} more"

"""A request is read from one line as people type it, and refused with a sentence."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from velodrome.model.app import Content, Request
from velodrome.model.errors import RequestLineError, UsageError
from velodrome.plan.requests import lines

JSON = (("Content-Type", "application/json"),)
FORM = (("Content-Type", "application/x-www-form-urlencoded"),)
TEXT = (("Content-Type", "text/plain; charset=utf-8"),)


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("/", Request("GET /")),
        ("GET /cart?id=7", Request("GET /cart?id=7", "/cart?id=7")),
        ("  get   /cart  ", Request("GET /cart", "/cart")),
        ("/old -> 302", Request("GET /old", "/old", expect_status=302)),
        ("HEAD /->404", Request("HEAD /", "/", "HEAD", expect_status=404)),
        (
            "/items/{{random 1..500}}?trace={{hex 8}}",
            Request(
                "GET /items/{{random 1..500}}?trace={{hex 8}}", "/items/{{random 1..500}}?trace={{hex 8}}"
            ),
        ),
        (
            'POST /orders {"id": "{{uuid}}"} -> 201',
            Request(
                "POST /orders",
                "/orders",
                "POST",
                headers=JSON,
                body=Content('{"id": "{{uuid}}"}'),
                expect_status=201,
            ),
        ),
        (
            "PUT /login name=a&word=b%20c",
            Request("PUT /login", "/login", "PUT", headers=FORM, body=Content("name=a&word=b%20c")),
        ),
        (
            "PATCH /note up -> down",
            Request("PATCH /note", "/note", "PATCH", headers=TEXT, body=Content("up -> down")),
        ),
        ("DELETE /items/7", Request("DELETE /items/7", "/items/7", "DELETE")),
    ],
)
def test_a_line_is_read(text: str, request_: Request) -> None:
    assert lines.read_line(text) == request_


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it is empty"),
        ("cart", "'cart' is no method"),
        ("7", "a path begins with /"),
        ("GET", "behind GET stands a path"),
        ("GET cart", "behind GET stands a path"),
        ("FETCH /", "'FETCH' is no method; there are GET, HEAD"),
        ("http://127.0.0.1:8000/cart", "give the path alone"),
        ("GET http://127.0.0.1:8000/cart", "give the path alone"),
        ("/search?q=red shoes", "'shoes' behind the path would be a body"),
        ("/ -> found", "behind -> stands the right status"),
        ("/ -> 99", "expect-status: 99 is no status"),
        ("/ -> 1000", "expect-status: 1000 is no status"),
        ("/café", "write this one /caf%C3%A9"),
        ("/a#b", "never sent"),
        ("/items/{{m}}", "{{m}} stands for nothing; there are {{n}}"),
        ("/items/{{random 9..1}}", "{{random 9..1}} stands for nothing"),
        ("POST / {{pick}}", "{{pick}} stands for nothing"),
    ],
)
def test_what_is_no_request_is_reported_with_an_example(text: str, sentence: str) -> None:
    with pytest.raises(RequestLineError) as caught:
        lines.read_line(text)
    assert sentence in str(caught.value)
    assert "Write it as 'GET /cart?id=7' or 'POST /orders" in str(caught.value)


def test_a_body_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "order.json").write_text('{"id": 1}')
    (tmp_path / "picture").write_bytes(b"\xff\xd8\xff")
    order, picture = (lines.read_line(f"POST / @{name}", tmp_path) for name in ("order.json", "picture"))
    assert (order.headers, order.body) == (JSON, Content('{"id": 1}'))
    assert picture.headers == (("Content-Type", "application/octet-stream"),)
    assert picture.body is not None
    assert picture.body.data == b"\xff\xd8\xff"
    with pytest.raises(UsageError, match="cannot read none"):
        lines.read_line("POST / @none", tmp_path)


@given(st.text(max_size=40) | st.text("GETPOS /{}->@2x &=random1..", max_size=40))
def test_any_text_is_a_request_or_one_clear_error(text: str) -> None:
    with suppress(UsageError):
        found = lines.read_line(text, Path("/nowhere"))
        assert found.path.startswith("/")
        assert found.path.isascii()
        assert found.method in lines.ALL

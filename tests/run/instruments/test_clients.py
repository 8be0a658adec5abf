"""Which of an app's requests clients of a probe send, and how."""

import re
from dataclasses import replace

import pytest

from velodrome.guest import catalog
from velodrome.model.app import Content, Request
from velodrome.run import calls
from velodrome.run.drivers.driver import Target
from velodrome.run.instruments.clients import where

pytestmark = pytest.mark.unit
URL = "http://127.0.0.1:8000/"
DRAWN = Request(
    "order",
    "/orders/{{random 1..99}}",
    "POST",
    headers=(("X-Trace", "{{hex 8}}"),),
    body=Content('{"id": "{{uuid}}", "number": {{n}}}'),
)
FIXED = Request("cart", "/cart?id=7", "POST", body=Content('{"id": 7}'), expect_status=201)


def test_of_several_requests_the_first_without_templates_is_sent() -> None:
    found = where(Target.of_requests(URL, (DRAWN, FIXED)))
    assert found is not None
    assert (found.host, found.port, found.method, found.path) == ("127.0.0.1", 8000, "POST", "/cart?id=7")
    assert (found.body, found.status) == (b'{"id": 7}', 201)
    assert found.request == found.request


def test_templates_are_filled_in_anew_for_each_request() -> None:
    at = where(Target(URL, mix=(DRAWN,)))
    assert at is not None
    heads, bodies = zip(*(at.request.decode().split("\r\n\r\n") for _ in range(3)), strict=True)
    assert all(re.match(r"POST /orders/\d{1,2} HTTP/1.1\r\n", head) for head in heads)
    assert all(re.search(r"X-Trace: [0-9a-f]{8}\r\n", head) for head in heads)
    assert all(f"Content-Length: {len(body)}" in head for head, body in zip(heads, bodies, strict=True))
    assert len(set(bodies)) == 3
    assert [body.rpartition(" ")[2] for body in bodies] == ["0}", "1}", "2}"]


def test_a_body_that_is_no_text_is_sent_as_it_is() -> None:
    image = b"\xff{{uuid}}"
    at = where(Target(URL, mix=(replace(DRAWN, body=Content.of(image)),)))
    assert at is not None
    assert at.request.endswith(b"\r\n\r\n" + image)


def test_a_request_that_has_to_be_the_same_is_filled_in_once() -> None:
    at = where(Target(URL, mix=(DRAWN,)))
    assert at is not None
    one = at.filled()
    assert one.request == one.request
    assert "{{" not in one.request.decode()
    assert one.request != at.filled().request


def test_no_probe_speaks_grpc() -> None:
    call = calls.grpc_of_recipe(catalog.recipes()["hello"])
    assert where(Target("grpc://127.0.0.1:8000/x", call=call)) is None

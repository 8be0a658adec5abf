"""Requests come from one of several forms."""

from pathlib import Path

import pytest

from velodrome.model.app import Request
from velodrome.model.errors import RequestLineError, TwoSourcesError
from velodrome.plan.requests import sources

LOG = '::1 - - [10/Oct/2000:13:55:{:02} -0700] "{} HTTP/1.1" 200 5\n'


def test_where_nothing_is_given_the_root_is_requested() -> None:
    assert sources.of().requests == (Request("GET /"),)


def test_a_line_that_is_given_twice_is_sent_twice_as_often() -> None:
    found = sources.of(["/cart", "GET /cart", "POST /orders a=1", "POST /orders a=2"])
    assert [(request.name, request.weight) for request in found.requests] == [
        ("GET /cart", 2),
        ("POST /orders", 1),
        ("POST /orders (2)", 1),
    ]


def test_each_form_is_read(tmp_path: Path) -> None:
    (tmp_path / "mix.toml").write_text("[[request]]\nname = 'a'\n")
    (tmp_path / "access.log").write_text(LOG.format(7, "GET /cart") * 3 + LOG.format(8, "POST /"))
    (tmp_path / "openapi.json").write_text('{"openapi": "3.1.0", "paths": {"/a": {"get": {}, "put": {}}}}')
    assert sources.of(file=tmp_path / "mix.toml").requests == (Request("a"),)
    logged = sources.of(access_log=tmp_path / "access.log")
    assert logged.requests == (Request("GET /cart", "/cart", weight=3),)
    assert logged.peak_rps == 3
    assert logged.told == (
        "4 requests in 2 s: 2 a second on average, 3 in the busiest second",
        "left out: POST, 1 of them (25.0%): not among --methods; a log has no bodies",
    )
    described = sources.of(openapi=tmp_path / "openapi.json", methods=["GET", "PUT"])
    assert [request.name for request in described.requests] == ["GET /a", "PUT /a"]
    assert described.told == ("2 of 2 operations, each as often as the others",)


def test_only_one_form_gives_the_requests(tmp_path: Path) -> None:
    with pytest.raises(TwoSourcesError, match=r"^--request and --openapi each"):
        sources.of(["/"], openapi=tmp_path)
    with pytest.raises(RequestLineError):
        sources.of(["nothing"])

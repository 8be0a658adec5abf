"""A file of requests is read whole, or refused with all that is wrong in it."""

import json
import os
from pathlib import Path

import pytest

from velodrome.model.app import Content, Request
from velodrome.model.errors import RequestsFileError, UntrustedError, UsageError
from velodrome.model.files import Deed, Named
from velodrome.plan.requests import file

MIX = """
[[request]]
name = "item"
weight = 9
path = "/items/{{random 1..500}}"
expect-contains = '"price":'

[[request]]
name = "order"
method = "POST"
headers = { Content-Type = "application/json" }
body = "@order.json"
expect-status = 201
expect-body = '{"id": 1}'
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "order.json").write_text('{"id": "{{uuid}}"}')
    (tmp_path / "mix.toml").write_text(MIX)
    return tmp_path


def test_requests_are_read_with_their_checks(folder: Path) -> None:
    item, order = file.read(folder / "mix.toml", default_path="/shop")
    assert item == Request("item", "/items/{{random 1..500}}", weight=9, expect_contains='"price":')
    assert order == Request(
        "order",
        "/shop",
        "POST",
        headers=(("Content-Type", "application/json"),),
        body=Content('{"id": "{{uuid}}"}'),
        expect_status=201,
        expect_body=Content('{"id": 1}'),
    )


def test_a_body_that_is_no_text_has_no_places(tmp_path: Path) -> None:
    picture = b"\xff\xd8{{m}}"
    (tmp_path / "picture.jpg").write_bytes(picture)
    path = tmp_path / "mix.toml"
    path.write_text("[[request]]\nname = 'a'\nmethod = 'PUT'\nbody = '@picture.jpg'")
    (request,) = file.read(path)
    assert request.body is not None
    assert (request.body.data, request.has_templates) == (picture, False)


def test_a_list_in_json_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "mix.json"
    path.write_text(json.dumps([{"name": "a", "path": "/a", "expect-status": 404}]))
    assert file.read(path) == (Request("a", "/a", expect_status=404),)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name = 'a'\nweight = 0", "request 1, weight: 0 is no weight"),
        ("name = 'a'\nweight = nan", "request 1, weight: nan is no weight"),
        ("name = ' '", "request 1, name: it is empty"),
        ("name = 'a'\n[[request]]\nname = 'a'", "request 2, name: another one is called 'a'"),
        ("name = 'a'\npath = 'a'", "request 1, path: 'a' does not begin with /"),
        (
            "name = 'a'\npath = '/a b'",
            "request 1, path: it is of ASCII letters without blanks; write this one /a%20b",
        ),
        ("name = 'a'\npath = '/{{m}}'", "request 1, path: {{m}} stands for nothing; there are {{n}}"),
        ("name = 'a'\nbody = '{{m}}'", "request 1, body: {{m}} stands for nothing"),
        ("name = 'a'\nmethod = 'G T'", "request 1, method: 'G T' is no HTTP method"),
        ("name = 'a'\nmethod = 'CONNECT'", "request 1, method: CONNECT makes a tunnel"),
        ("name = 'a'\nheaders = {'a b' = 'c'}", "request 1, headers: 'a b' is no name of a header"),
        (
            "name = 'a'\nheaders = {a = \"b\\n\"}",
            "request 1, headers: the value of a has a control character",
        ),
        (
            "name = 'a'\nheaders = {Connection = 'close'}",
            "request 1, headers: Connection is written by the generator",
        ),
        ("name = 'a'\nexpect-status = 99", "request 1, expect-status: 99 is no status"),
        ("name = 'a'\nexpect-body = 'b'\nexpect-contains = 'b'", "request 1, expect-body is the whole body"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "mix.toml"
    path.write_text(f"[[request]]\n{text}")
    with pytest.raises(RequestsFileError) as caught:
        file.read(path)
    assert sentence in str(caught.value)


def test_all_that_is_wrong_is_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "mix.toml"
    path.write_text("".join(f"[[request]]\nname = 'r{n}'\npath = 'no'\n" for n in range(600)))
    with pytest.raises(RequestsFileError) as caught:
        file.read(path)
    assert caught.value.faults[0] == "600 requests are too many, each is given by itself; give at most 500"
    assert len(caught.value.faults) == 601
    assert str(caught.value).endswith("; and 591 more")


def test_without_templates_braces_stand_for_themselves(tmp_path: Path) -> None:
    path = tmp_path / "mix.toml"
    path.write_text("[[request]]\nname = 'a'\npath = '/{{random 1..2}}'\nbody = '{{m}}'")
    assert file.read(path, templates=False) == (Request("a", "/{{random 1..2}}", body=Content("{{m}}")),)


def test_the_file_of_a_body_that_is_not_there_is_named(folder: Path) -> None:
    (folder / "order.json").unlink()
    with pytest.raises(UsageError, match=r"request order, body: cannot read order\.json"):
        file.read(folder / "mix.toml")


def naming(folder: Path, body: str) -> Path:
    path = folder / "mix.toml"
    path.write_text(f'[[request]]\nname = "a"\nmethod = "POST"\nbody = {json.dumps(body)}\n')
    return path


@pytest.fixture
def strangers(tmp_path: Path) -> Path:
    """Return the folder of a stranger's file of requests, with files of theirs and of the user's."""
    folder = tmp_path / "app"
    (folder / "bodies").mkdir(parents=True)
    (tmp_path / "id_rsa").write_text("s3cret")
    (folder / ".env").write_text("s3cret")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("s3cret")
    (folder / "bodies" / "order.json").write_text("{}")
    (folder / "inside").symlink_to("bodies/order.json")
    (folder / "outside").symlink_to("../id_rsa")
    (folder / "up").symlink_to("..")
    return folder


@pytest.mark.parametrize("body", ["@bodies/order.json", "@inside", "@bodies/../inside", "@../app/inside"])
def test_files_beside_the_file_are_read(body: str, strangers: Path) -> None:
    (request,) = file.read(naming(strangers, body))
    assert request.body == Content("{}")


@pytest.mark.parametrize(
    "body",
    ["@../id_rsa", "@outside", "@up/id_rsa", "@.env", "@.git/config", "@bodies/../../id_rsa", "{absolute}"],
)
def test_files_elsewhere_are_not_read_unless_they_are_allowed(body: str, strangers: Path) -> None:
    body = body.replace("{absolute}", f"@{strangers.parent / 'id_rsa'}")
    path = naming(strangers, body)
    with pytest.raises(UntrustedError) as caught:
        file.read(path)
    assert "request a, body" in caught.value.named[0]
    assert "s3cret" not in str(caught.value)
    seen: list[Named] = []
    (request,) = file.read(path, see=lambda _, named: seen.extend(named))
    assert request.body == Content("s3cret")
    assert seen == [Named(Deed.READS, body[1:], "request a, body")]


def test_what_a_home_is_called_is_not_followed(strangers: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        file.read(naming(strangers, "@~/.ssh/none"), see=lambda _path, _named: None)


@pytest.mark.parametrize("body", ["@pipe", "@/dev/zero", "@bodies", "@\x00"])
def test_what_has_no_end_is_not_read(body: str, strangers: Path) -> None:
    os.mkfifo(strangers / "pipe")
    with pytest.raises(UsageError, match="cannot read"):
        file.read(naming(strangers, body), see=lambda _path, _named: None)

"""Requests to an app with all their headers, third parties that answer something, and the cures without these."""

import urllib.request
from pathlib import Path

import pytest
from tests.run.apps.theirs import SHOP
from tests.usecases.served import standing

from velodrome.model.app import Request
from velodrome.model.errors import AppAnswersWrongError, HeaderError, WithheldHeaderError
from velodrome.model.secrets import MARK
from velodrome.model.trial import Contestant
from velodrome.plan.requests.lines import read_headers
from velodrome.usecases.apps import AppSpec, lab_for, look

HEADERS = (("Host", "shop.example"), ("Authorization", "Bearer s3cret"))
STACK = Contestant("waitress")


def guarded(*paths: str, **more: object) -> AppSpec:
    requests = tuple(Request(path, path) for path in paths)
    return AppSpec("guarded:application", cwd=str(SHOP), requests=requests, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("paths", [("/",), ("/", "/cart")], ids=["one request", "a mix"])
def test_every_request_has_the_headers_and_nothing_that_is_stored_has_their_values(
    paths: tuple[str, ...],
) -> None:
    spec = guarded(*paths, headers=HEADERS)
    app = look(spec)
    with standing(app, STACK, lab_for(spec)) as booted:
        assert booted.wrong == ""
    assert app.headers == ("Host", "Authorization")
    assert all(request.headers == (("Host", MARK), ("Authorization", MARK)) for request in app.requests)
    assert "s3cret" not in repr(app)


def test_values_of_secret_headers_are_withheld_whoever_gives_them() -> None:
    request = Request("/", "/", headers=(("Host", "shop.example"), ("authorization", "Bearer s3cret")))
    spec = AppSpec("guarded:application", cwd=str(SHOP), requests=(request,))
    app = look(spec)
    with standing(app, STACK, lab_for(spec)):
        pass
    assert app.requests[0].headers == (("Host", "shop.example"), ("authorization", MARK))
    assert app.headers == ()


@pytest.mark.parametrize(
    ("spec", "cure"),
    [
        (guarded("/"), "--header 'Host: shop.example'"),
        (guarded("/", headers=HEADERS[:1]), "--header 'Authorization: …'"),
        (guarded("/old"), r"leads to «/new\?a=b».*--request 'GET /new\?a=b'"),
        (guarded("/plain"), "--header 'X-Forwarded-Proto: https'"),
        (
            guarded("/charge", upstreams=("PAYMENTS_URL=1ms",)),
            r"PAYMENTS_URL .*--upstream 'PAYMENTS_URL=latency:50ms,body:@answer\.json'",
        ),
    ],
    ids=["host", "user", "redirection", "https", "third party"],
)
def test_what_an_app_wants_is_reported(spec: AppSpec, cure: str) -> None:
    with pytest.raises(AppAnswersWrongError, match=f"(?s){cure}"), standing(look(spec), STACK, lab_for(spec)):
        pass


@pytest.mark.parametrize("inline", [True, False], ids=["text", "file"])
def test_a_third_party_answers_what_the_app_reads(inline: bool, tmp_path: Path) -> None:
    (tmp_path / "charge.json").write_text('{"amount": 5}')
    body = '{"amount":5}' if inline else f"@{tmp_path}/charge.json"
    spec = guarded("/charge", upstreams=(f"PAYMENTS_URL=latency:1ms,body:{body}",))
    with (
        standing(look(spec), STACK, lab_for(spec)) as booted,
        urllib.request.urlopen(f"{booted.server.url}/charge", timeout=10) as answer,
    ):
        assert answer.read() == b"charged 5"


def test_what_was_not_written_down_is_never_sent() -> None:
    marked = Request("/", "/", headers=(("Authorization", MARK),))
    with pytest.raises(WithheldHeaderError, match="the value of Authorization is a secret"):
        look(AppSpec("guarded:application", cwd=str(SHOP), requests=(marked,)))
    app = look(AppSpec("guarded:application", cwd=str(SHOP), requests=(marked,), headers=HEADERS))
    assert len(app.requests[0].headers) == 2
    with pytest.raises(HeaderError, match="here stands what was not written down"):
        read_headers([f"Authorization: {MARK}"])

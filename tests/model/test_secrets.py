"""What counts as a secret, and that no form of it is left in a text."""

import base64
import html
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as some

from velodrome.model import secrets
from velodrome.model.errors import UsageError
from velodrome.model.secrets import MARK

HARD = 'p/w+d ="é\\€%41'


@pytest.mark.parametrize(
    "name",
    [
        *(
            "PASSWORD",
            "PGPASSWORD",
            "apiKey",
            "API_KEY",
            "X-Api-Key",
            "Private-Token",
            "SENTRY_DSN",
            "csrftoken",
        ),
        *(
            "client_secret",
            "X-Auth",
            "AWS_SECRET_ACCESS_KEY",
            "sessionid",
            "Cookie",
            "sig",
            "X-Amz-Signature",
        ),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert secrets.names_secret(name)


@pytest.mark.parametrize("name", ["KEYBOARD", "MONKEY", "AUTHOR", "page", "PATH", "id", "COMPASS", "signal"])
def test_names_that_only_look_alike(name: str) -> None:
    assert not secrets.names_secret(name)


@pytest.mark.parametrize(
    "value",
    [
        "eu-west-1-production-cluster",
        "/etc/ssl/private/2024-01-02/key.pem",
        "2024-01-02T03:04:05.123456",
        "1.2.3.dev4+g123abcd",
        "myproject.settings.production",
        "https://example.com/static/v1/main.js",
        "postgresql+asyncpg://localhost:5432/db",
        "application/json, text/plain",
        "10000000000000000000000",
    ],
)
def test_words_paths_versions_and_dates_are_of_no_secret_shape(value: str) -> None:
    assert not secrets.looks_random(value)
    secrets.of_variable("SHOP_NAME", value)
    assert secrets.mask(value) == value


@pytest.mark.parametrize(
    "value",
    [
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "550e8400-e29b-41d4-a716-446655440000",
        "0123456789abcdef0f1e2d3c4b5a6978",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
        "kJ8x/Qp2vZt+Lw9RbN4mYc7sHd1FgUe5aXoTiK0q",
    ],
)
def test_what_is_long_and_random_is_a_secret_under_any_name(value: str) -> None:
    secrets.of_variable("SHOP_NAME", value)
    assert secrets.mask(f"it is {value}.") == f"it is {MARK}."


FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "percent": lambda text: quote(text, safe=""),
    "percent, lower": lambda text: quote(text, safe="").replace("%2F", "%2f"),
    "percent, slashes kept": quote,
    "form": quote_plus,
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "JSON": lambda text: json.dumps({"key": text}),
    "JSON, slashes escaped": lambda text: json.dumps(text).replace("/", "\\/"),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "Python": repr,
    "Python, ASCII": ascii,
    "bytes": lambda text: repr(text.encode("latin-1", "ignore")) if text.isascii() else repr(text),
    "HTML": html.escape,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "Basic": lambda text: "Basic " + base64.b64encode(f"user:{text}".encode()).decode(),
    "base64 amid": lambda text: base64.b64encode(f"u:{text}:more".encode()).decode(),
    "base64 in a query": lambda text: quote(base64.b64encode(text.encode()).decode(), safe=""),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", ["correct-horse-7", HARD, "päss wörd 12", "𝄞clef-and-key"])
def test_a_secret_is_masked_in_every_form(form: str, secret: str) -> None:
    secrets.of_variable("DB_PASSWORD", secret)
    written = FORMS[form](secret)
    masked = secrets.mask(f"before {written} after")
    assert masked.startswith("before ")
    assert masked.endswith(" after")
    assert MARK in masked
    core = base64.b64encode(secret.encode()).decode()[:8]
    for piece in (secret, quote(secret, safe=""), core):
        assert piece not in masked


@given(
    some.text(some.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=8, max_size=40),
    some.sampled_from(sorted(FORMS)),
)
def test_any_secret_is_masked_in_any_form(secret: str, form: str) -> None:
    secrets.forget()
    secrets.mark(["PIN"])
    secrets.of_variable("PIN", secret)
    if MARK in secret or secret != secret.strip():
        return
    assert secret not in secrets.mask(f"<{FORMS[form](secret)}>").replace(MARK, "")


def test_whole_values_go_longest_first() -> None:
    secrets.of_variable("A_TOKEN", "abcdefgh")
    secrets.of_variable("B_TOKEN", "abcdefgh-ijkl")
    assert secrets.mask("abcdefgh-ijkl abcdefgh") == f"{MARK} {MARK}"


def test_short_values_numbers_settings_and_paths_stay_unless_they_are_marked() -> None:
    kept = {"PIN_TOKEN": "4711", "API_KEY": "abc", "CARD_TOKEN": "12345678", "USE_AUTH": "disabled"}
    kept |= {"TLS_KEY": "/etc/ssl/key.pem"}
    for name, value in kept.items():
        secrets.of_variable(name, value)
    text = " ".join(kept.values())
    assert secrets.mask(text) == text
    secrets.mark(["pin-token", "TLS_KEY"])
    for name, value in kept.items():
        secrets.of_variable(name, value)
    # Where it stands alone: of another number it is no part.
    assert secrets.mask("4711 14711 /etc/ssl/key.pem") == f"{MARK} 14711 {MARK}"


def test_credentials_in_urls_and_secret_parameters_go_whether_they_are_known_or_not() -> None:
    text = "GET /pay?page=2&access_token=hush-hush HTTP/1.1 to redis://:hush@db, postgres://me:h@db/x?sslmode=require"
    masked = secrets.mask(text)
    assert masked == (
        f"GET /pay?page=2&access_token={MARK} HTTP/1.1 to redis://{MARK}@db, postgres://{MARK}@db/x?sslmode=require"
    )
    assert (
        secrets.mask("sorted(items, key=lambda one: one.name)") == "sorted(items, key=lambda one: one.name)"
    )


def test_the_password_of_a_url_is_known_by_itself_too() -> None:
    secrets.of_variable("DATABASE_URL", "postgres://shop:s3cr%2Ft-pw@db:5432/shop")
    assert secrets.mask("no user shop with s3cr/t-pw at db:5432") == f"no user shop with {MARK} at db:5432"


def test_of_headers_and_cookies_the_values_are_known() -> None:
    basic = base64.b64encode(b"me:open-sesame").decode()
    headers = {"Authorization": "Bearer tok-en-12", "Proxy-Authorization": f"Basic {basic}"}
    headers |= {"Cookie": "theme=dark; session=coo-kie-1", "Host": "shop.example", "X-Trace": "trace-me-12"}
    for name, value in headers.items():
        secrets.of_header(name, value, given=True)
    for value in ("tok-en-12", "open-sesame", basic, "coo-kie-1", "trace-me-12"):
        assert secrets.mask(f"saw {value}!") == f"saw {MARK}!"
    assert secrets.mask("shop.example dark") == "shop.example dark"


def test_of_bodies_the_fields_that_are_named_so_are_known() -> None:
    secrets.of_text('{"user": "me-myself", "password": "op\\u0065n-up-1", "pin": 1234567}')
    secrets.of_text("user=me-myself&client_secret=hush%2Fhush")
    assert secrets.mask("me-myself open-up-1 hush/hush 1234567") == f"me-myself {MARK} {MARK} 1234567"


@pytest.mark.parametrize("end", ["", "…", "…»"])
def test_what_was_cut_off_amid_a_secret_is_masked_to_its_end(end: str) -> None:
    secrets.of_variable("A_TOKEN", "correct-horse-battery")
    assert secrets.mask(f"«it said correct-hor{end}") == f"«it said {MARK}{end}"
    assert secrets.mask("a corridor") == "a corridor"


def test_of_plain_data_texts_are_masked_and_names_and_figures_are_not() -> None:
    @dataclass(frozen=True)
    class Noun:
        stack: str
        study: str
        notes: tuple[str, ...]
        count: int

    secrets.of_variable("A_TOKEN", "gunicorn-sync")
    noun = Noun("x", "gunicorn-sync", ("it is gunicorn-sync", "fine"), 5)
    assert secrets.mask_noun(noun) == Noun("x", "gunicorn-sync", (f"it is {MARK}", "fine"), 5)
    untouched = {"a": [1, 2.5, None, True, "text"]}
    assert secrets.mask_noun(untouched) is untouched


def test_an_error_never_says_one() -> None:
    secrets.of_variable("A_TOKEN", "correct-horse")
    error = UsageError("cannot use correct-horse")
    assert str(error) == f"cannot use {MARK}"
    assert "correct-horse" not in repr(error)


def test_processes_of_our_own_see_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "correct-horse")
    monkeypatch.setenv("SOME_URL", "http://me:hush-hush@proxy")
    monkeypatch.setenv("SOME_WORD", "fine")
    seen = secrets.environment()
    assert "A_TOKEN" not in seen
    assert "SOME_URL" not in seen
    assert seen["SOME_WORD"] == "fine"
    assert "PATH" in seen


def test_a_long_output_is_masked_in_milliseconds() -> None:
    for number in range(20):
        secrets.add(f"s3cret-{number:04}-and-more")
    line = '127.0.0.1 - - [22/Nov/2026] "GET /items/7?page=3&sort=asc HTTP/1.1" 200 57\n'
    text = (line * 1000)[:65_000] + "s3cret-0003-and-more"
    secrets.mask(text)
    took = []
    for _ in range(5):
        began = time.process_time()
        assert secrets.mask(text).endswith(MARK)
        took.append(time.process_time() - began)
    print(f"{len(text)} characters, 20 secrets: {min(took) * 1e3:.1f} ms")
    assert min(took) < 0.01

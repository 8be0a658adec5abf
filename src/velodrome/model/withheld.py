"""What results never hold: the secrets of requests and of simulated third parties. A mark stands in their place.

What is stored and shown of a request is `withheld(request, names)`; what is sent is the request itself, which the lab
has (`run/lab.py`), as it has the values of environment variables. What counts as a secret: `secrets.py`.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from velodrome.model import secrets
from velodrome.model.errors import WithheldHeaderError, WithheldRequestError
from velodrome.model.request import Content, Request
from velodrome.model.secrets import MARK
from velodrome.model.third_party import ThirdParty


def known(requests: Sequence[Request], names: Collection[str] = ()) -> None:
    """Make the secrets of requests known; `names` are of the headers that their user gives all of them."""
    for one in requests:
        bodies = [content.text for content in (one.body, one.expect_body) if content is not None]
        secrets.of_request(one.path, one.headers, [*bodies, one.name, one.expect_contains or ""], names)


def withheld(request: Request, names: Collection[str] = ()) -> Request:
    """Return a request as it may be stored and shown, and make its secrets known.

    Its name, path and bodies are masked; of headers that carry secrets and of those in `names` no value is kept.
    """
    known((request,), names)
    given = {name.lower() for name in names}
    contains = request.expect_contains
    return replace(
        request,
        name=secrets.mask(request.name),
        path=secrets.mask(request.path),
        headers=tuple((name, _value(name, value, given)) for name, value in request.headers),
        body=_content(request.body),
        expect_body=_content(request.expect_body),
        expect_contains=None if contains is None else secrets.mask(contains),
    )


def _value(name: str, value: str, given: Collection[str]) -> str:
    whole = name.lower() in secrets.HEADERS or name.lower() in given or secrets.marked(name)
    if whole or (secrets.named(name) and name.lower() not in secrets.ORDINARY):
        return MARK
    return secrets.mask(value)


def _content(content: Content | None) -> Content | None:
    if content is None:
        return None
    if content.base64:
        # Bytes are told whole or not at all: masked in part they could not be read again.
        return Content(MARK) if secrets.mask(content.base64) != content.base64 else content
    masked = secrets.mask(content.text)
    return content if masked == content.text else Content(masked)


def withheld_third(third: ThirdParty) -> ThirdParty:
    """Return a third party as it may be stored and shown, and make the secrets of its answers known."""
    if third.body is not None:
        secrets.of_text(third.body.text)
    return replace(third, body=_content(third.body))


def unmarked(request: Request, names: Collection[str]) -> Request:
    """Return a request without the marks of headers that are given beside it."""
    beside = {name.lower() for name in names}
    kept = tuple(one for one in request.headers if one[1] != MARK or one[0].lower() not in beside)
    return replace(request, headers=kept)


def whole(requests: Sequence[Request]) -> tuple[Request, ...]:
    """Return requests of which nothing is withheld: they would be sent with marks.

    Raises WithheldHeaderError, WithheldRequestError.
    """
    for one in requests:
        for name, value in one.headers:
            if MARK in value:
                raise WithheldHeaderError(one.name, name)
        texts = {"path": one.path, "expect-contains": one.expect_contains or ""}
        for field, content in (("body", one.body), ("expect-body", one.expect_body)):
            texts[field] = "" if content is None else content.text
        for field, text in texts.items():
            if MARK in text:
                raise WithheldRequestError(one.name, field)
    return tuple(requests)

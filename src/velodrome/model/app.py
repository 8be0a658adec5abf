"""A user's own app: what is served in place of a recipe, its requests, and the third parties simulated for it."""

import base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from velodrome.guest.recipe import Recipe
from velodrome.model.errors import WithheldHeaderError, WithheldRequestError
from velodrome.model.secrets import (
    HEADERS,
    MARK,
    ORDINARY,
    is_marked,
    mask,
    names_secret,
    of_request,
    of_text,
)


@dataclass(frozen=True)
class Content:
    """Bytes that can be stored: as text where they are UTF-8, else as base64."""

    text: str = ""
    base64: str = ""

    @staticmethod
    def of(data: bytes) -> "Content":
        """Return bytes in the form they are stored in."""
        try:
            return Content(text=data.decode())
        except UnicodeDecodeError:
            return Content(base64=base64.b64encode(data).decode())

    @property
    def data(self) -> bytes:
        """The bytes themselves."""
        return base64.b64decode(self.base64) if self.base64 else self.text.encode()


@dataclass(frozen=True)
class Request:
    """One request of a mix, and what a right answer to it is.

    Path, values of headers and body may hold templates (`docs/load.md`): `{{n}}`, `{{random 1..500}}`, `{{uuid}}`.
    """

    name: str
    path: str = "/"
    method: str = "GET"
    weight: float = 1.0
    """Share of the mix, in proportion to the sum of all weights."""
    headers: tuple[tuple[str, str], ...] = ()
    body: Content | None = None
    expect_status: int | None = None
    """None: any 2xx is right."""
    expect_body: Content | None = None
    expect_contains: str | None = None
    fingerprint: str = ""
    """Of the whole request, where a part of it is withheld (`run/apps/serving.py`); empty: nothing is."""

    @property
    def has_templates(self) -> bool:
        """Whether there are places in it to be filled in: it then differs from time to time.

        There are none in a body that is no text.
        """
        texts = [self.path, *(value for _, value in self.headers)]
        return any("{{" in text for text in (*texts, self.body.text if self.body is not None else ""))


SHOWN = 200
"""Characters of a body that are shown in one line with the rest."""


@dataclass(frozen=True)
class Stall:
    """A third party that answers nothing for a while, again and again."""

    for_s: float
    every_s: float


@dataclass(frozen=True)
class ThirdParty:
    """How it answers, and where the app finds it: plain data."""

    variable: str
    """Environment variable in which the app finds its base URL: `PAYMENTS_URL`."""
    latency: str
    """As `velodrome upstream --latency` takes it: `50ms`, `lognormal(50ms,0.4)`."""
    errors: float = 0.0
    """Share of requests that it answers with status 500."""
    stall: Stall | None = None
    body: Content | None = None
    """Of a right answer; None: `size` bytes of a text that says nothing."""
    size: int = 64
    content_type: str = "text/plain"

    def text(self, file: str) -> str:
        """Return it as it is typed behind `--upstream`; a body that does not go on a line is in `file`."""
        parts = [f"latency:{self.latency}"]
        if self.errors:
            parts.append(f"errors:{self.errors * 100:g}%")
        if self.stall is not None:
            parts.append(f"stall:{self.stall.for_s:g}s/{self.stall.every_s:g}s")
        if self.body is not None or self.content_type != ThirdParty.content_type:
            parts.append(f"type:{self.content_type}")
        if self.body is not None:
            short = not self.body.base64 and len(self.body.text) <= SHOWN
            parts.append(f"body:{self.body.text}" if short else f"body:@{file}")
        elif self.size != ThirdParty.size:
            parts.append(f"body:{self.size}")
        return f"{self.variable}={','.join(parts)}"


@dataclass(frozen=True)
class App:
    """What is served: where it is found, how it is called, in what it runs, and its requests.

    Plain data that is stored with every result, so it holds names of environment variables and of headers that its user
    gives, and never their values: these may be secrets, and are the lab's (`run/lab.py`).
    """

    path: str
    """`module:attribute`, as its user wrote it; over Django the settings module or its `wsgi.py`."""
    interface: str
    """How servers call it: name of an interface, such as `wsgi`; stacks of that interface can serve it. Of a Django
    site, which has two, the first; `interfaces` are all."""
    python: str
    """Path of its interpreter."""
    cwd: str
    """Folder it runs in; first on its import path."""
    requests: tuple[Request, ...] = (Request("/"),)
    """Its requests, without values of headers that may be secrets (`withheld.py`)."""
    form: str = "application"
    """What the attribute is: `application`, `factory` (called without arguments), `coroutine` (a factory that has to
    be awaited), `asgi2`, `django`, `servicer`."""
    served: Mapping[str, str] = field(default_factory=dict)
    """What servers load instead of `path`, by interface: `wsgi` to `shop.wsgi:application`; of a servicer, what
    adds it to a server."""
    what: str = ""
    """For a sentence: `a Flask`, `the function create_app that makes a FastAPI`."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Version of every package installed beside it, by name: these win over what stacks pin."""
    variables: tuple[str, ...] = ()
    """Names of the environment variables that its user sets for it."""
    third_parties: tuple[ThirdParty, ...] = ()
    proto: str = ""
    """Path of the `.proto` file of a gRPC servicer; empty: it is none."""
    source: str = ""
    """Folder its module is imported from beside `cwd`, relative to that or absolute: `src`; empty: there is none."""
    revision: str = ""
    """Of its source, where several are compared; empty: as it is."""
    named_interface: str = ""
    """The interface its user named, because it cannot be detected; empty: it was detected."""
    headers: tuple[str, ...] = ()
    """Names of the headers that its user gives every request."""
    framework: str = ""
    """What it is made with, where that can be seen by its class: `flask`; empty: it cannot."""

    @property
    def simulated(self) -> tuple[str, ...]:
        """Variables behind which simulated third parties stand."""
        return tuple(party.variable for party in self.third_parties)

    @property
    def interfaces(self) -> tuple[str, ...]:
        """Every interface it can be served through."""
        return tuple(self.served) or (self.interface,)

    def target(self, interface: str) -> str:
        """Return the `module:attribute` that a server of that interface loads."""
        return self.served.get(interface, self.path)

    @property
    def recipe(self) -> Recipe:
        """The app where a recipe stands: it has no steps, because nothing is known of what it does."""
        first = ", ".join(f"{request.method} {request.path}" for request in self.requests[:3])
        more = f" and {len(self.requests) - 3} more" if len(self.requests) > 3 else ""
        name = self.path + (f" at {self.revision}" if self.revision else "")
        return Recipe(name, f"answers {first}{more} as {name} does", ())


# Secrets of requests and of simulated third parties: results never hold them, a mark stands in their place.
#
# What is stored and shown of a request is `withheld(request, names)`; what is sent is the request itself, which the lab
# has (`run/lab.py`), as it has the values of environment variables. What counts as a secret: `secrets.py`.


def register_secrets(requests: Sequence[Request], names: Collection[str] = ()) -> None:
    """Make the secrets of requests known; `names` are of the headers that their user gives all of them."""
    for request in requests:
        bodies = [content.text for content in (request.body, request.expect_body) if content is not None]
        of_request(
            request.path, request.headers, [*bodies, request.name, request.expect_contains or ""], names
        )


def withheld(request: Request, names: Collection[str] = ()) -> Request:
    """Return a request as it may be stored and shown, and make its secrets known.

    Its name, path and bodies are masked; of headers that carry secrets and of those in `names` no value is kept.
    """
    register_secrets((request,), names)
    given = {name.lower() for name in names}
    contains = request.expect_contains
    return replace(
        request,
        name=mask(request.name),
        path=mask(request.path),
        headers=tuple((name, _value(name, value, given)) for name, value in request.headers),
        body=_content(request.body),
        expect_body=_content(request.expect_body),
        expect_contains=None if contains is None else mask(contains),
    )


def _value(name: str, value: str, given: Collection[str]) -> str:
    whole = name.lower() in HEADERS or name.lower() in given or is_marked(name)
    if whole or (names_secret(name) and name.lower() not in ORDINARY):
        return MARK
    return mask(value)


def _content(content: Content | None) -> Content | None:
    if content is None:
        return None
    if content.base64:
        # Bytes are shown whole or not at all: masked in part they could not be read again.
        return Content(MARK) if mask(content.base64) != content.base64 else content
    masked = mask(content.text)
    return content if masked == content.text else Content(masked)


def withheld_third(third: ThirdParty) -> ThirdParty:
    """Return a third party as it may be stored and shown, and make the secrets of its answers known."""
    if third.body is not None:
        of_text(third.body.text)
    return replace(third, body=_content(third.body))


def without_marks(request: Request, names: Collection[str]) -> Request:
    """Return a request without the marks of headers that are given beside it."""
    beside = {name.lower() for name in names}
    kept = tuple(header for header in request.headers if header[1] != MARK or header[0].lower() not in beside)
    return replace(request, headers=kept)


def whole(requests: Sequence[Request]) -> tuple[Request, ...]:
    """Return requests of which nothing is withheld: they would be sent with marks.

    Raises WithheldHeaderError, WithheldRequestError.
    """
    for request in requests:
        for name, value in request.headers:
            if MARK in value:
                raise WithheldHeaderError(request.name, name)
        texts = {"path": request.path, "expect-contains": request.expect_contains or ""}
        for part, content in (("body", request.body), ("expect-body", request.expect_body)):
            texts[part] = "" if content is None else content.text
        for part, text in texts.items():
            if MARK in text:
                raise WithheldRequestError(request.name, part)
    return tuple(requests)

"""What is asked of a user's own app: one request, or several by weight."""

import base64
from dataclasses import dataclass


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
    """Of the whole request, where a part of it is withheld (`run/apps/fingerprints.py`); empty: nothing is."""

    @property
    def has_templates(self) -> bool:
        """Whether there are places in it to be filled in: it then differs from time to time."""
        texts = [self.path, *(value for _, value in self.headers)]
        return any("{{" in text for text in texts) or (self.body is not None and b"{{" in self.body.data)

"""The options of `velodrome load` that say what is asked over HTTP."""

from __future__ import annotations

from velodrome.cli._declared import Annotated, Option
from velodrome.model.errors import UsageError

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

RequestsFile = Annotated[
    str | None,
    Option(
        "--requests-file",
        metavar="PATH",
        help="HTTP: several requests by weight, TOML or JSON: name, weight, method, path, headers, body, expect-….",
    ),
]
Trust = Annotated[bool, Option("--trust", help="HTTP: the file may name files that are not beside it.")]
Template = Annotated[
    bool,
    Option(
        "--template/--no-template",
        help="HTTP: fill in {{n}}, {{random 1..100}}, {{hex 16}}, {{uuid}}, {{pick a|b}} in paths, headers and bodies.",
    ),
]
Cookies = Annotated[
    bool,
    Option(
        "--cookies", help="HTTP: each connection keeps the cookies the server sets, and tells them again."
    ),
]
ExpectContains = Annotated[str | None, Option(help="HTTP: what the right body has in it.")]


class Asked:
    """What is asked over HTTP, as the options say it; None: not given."""

    def __init__(
        self,
        method: str | None,
        body: str | None,
        expect_status: int | None,
        expect_body: str | None,
        expect_contains: str | None,
        file: str | None,
        cookies: bool,
        http2: bool,
        headers: Sequence[Sequence[str]] = (),
        trust: bool = False,
    ) -> None:
        """`headers`: those of the whole load, name and value each; `trust`: what the file names is allowed."""
        self.method, self.body, self.file = method, body, file
        self.expect_status, self.expect_body = expect_status, expect_body
        self.expect_contains = expect_contains
        self.cookies, self.http2, self.trust = cookies, http2, trust
        self.names = [name for name, _ in headers]

    @property
    def given(self) -> dict[str, object]:
        """The options that say nothing to another protocol."""
        return self._of_each | {
            "--expect-status": self.expect_status,
            "--requests-file": self.file,
            "--trust": self.trust,
            "--cookies": self.cookies,
            "--http2": self.http2,
        }

    @property
    def _of_each(self) -> dict[str, object]:
        return {
            "--method": self.method,
            "--body": self.body,
            "--expect-body": self.expect_body,
            "--expect-contains": self.expect_contains,
        }

    def spec(self, *, template: bool) -> dict[str, Any]:
        """Return what the engine takes of it. Raises UsageError for what the file of requests says for each of them."""
        for option, value in self._of_each.items():
            if self.file is not None and value is not None:
                raise UsageError(f"{option}: --requests-file says it for each request; write it there")
        return {
            # As curl does: a body that nobody reads is hardly meant.
            "method": self.method or ("GET" if self.body is None else "POST"),
            "expect_status": self.expect_status,
            "expect_contains": self.expect_contains,
            "mix": _mix(self.file, self.names, self.trust),
            "template": template,
            "cookies": self.cookies,
            "http2": self.http2,
        }


def _mix(path: str | None, names: Sequence[str], trust: bool) -> list[dict[str, Any]]:
    """Return what the engine takes as `mix`; nothing without a file. `names` are of headers that the load gives.

    Raises RequestsFileError, UntrustedError, WithheldHeaderError.
    """
    if path is None:
        return []
    # What reads such a file takes longer to import than all else before the first request.
    from pathlib import Path  # noqa: PLC0415

    from velodrome.cli import _trusting as trusting  # noqa: PLC0415
    from velodrome.model.withheld import known, unmarked, whole  # noqa: PLC0415
    from velodrome.plan.asked import file  # noqa: PLC0415
    from velodrome.run.drivers import load_document  # noqa: PLC0415

    # Whether braces stand for themselves, and for what they may stand, is told by the engine.
    found = file.read(Path(path), default_path="", templates=False, see=trusting.trust(trust).see)
    known(found)
    return load_document.mix_document(whole([unmarked(one, names) for one in found]))

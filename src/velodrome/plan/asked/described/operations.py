"""The operations of a document: a path with a method, and the request that each becomes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import quote, urlsplit

from velodrome.model.app import Content, Request
from velodrome.plan.asked import faults
from velodrome.plan.asked.described import bodies, parameters
from velodrome.plan.asked.described.references import (
    Node,
    References,
    UnfillableError,
    plain,
    short,
    valid,
)

OPERATIONS = ("get", "head", "options", "post", "put", "patch", "delete", "trace")
_PLACE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    references: References
    method: str
    path: str
    """With `{name}` for what a parameter fills in."""
    told: Node
    around: Node
    """What is said of all operations of the path."""

    @property
    def name(self) -> str:
        """`GET /items/{id}`."""
        return valid(f"{self.method} {self.path}")

    @property
    def place(self) -> str:
        """Where it stands, as a JSON pointer."""
        path = short(self.path).replace("~", "~0").replace("/", "~1")
        return f"#/paths/{valid(path)}/{self.method.lower()}"

    def request(self) -> Request:
        """Return it filled in. Raises UnfillableError, and SpentError where the document's budget is spent."""
        self.references.begin()
        self.references.take(1, len(self.path))
        if scheme := self._needed_security():
            raise UnfillableError(
                f"it needs authorization ({scheme}); write the request with its header yourself"
            )
        if self._is_endless():
            raise UnfillableError("it answers with a stream of events, which has no end")
        filled = parameters.fill(self.references, self.around.get("parameters"), self.told.get("parameters"))
        body = None
        if self.method not in ("GET", "HEAD"):
            body = bodies.of(self.references, self.told, filled)
        headers = [*filled.headers, *([("Content-Type", body[0])] if body else [])]
        path = self._base() + self._filled(filled.path)
        request = Request(
            name=self.name,
            path=path + (f"?{'&'.join(filled.query)}" if filled.query else ""),
            method=self.method,
            headers=tuple((valid(name), valid(value)) for name, value in headers),
            body=Content.of(body[1]) if body else None,
            expect_status=self._status(),
        )
        if (wrong := next(faults.of(request), None)) is not None:
            raise UnfillableError(wrong)
        return request

    def _filled(self, given: Mapping[str, str]) -> str:
        def value(found: re.Match[str]) -> str:
            if found[1] not in given:
                raise UnfillableError(f"the path's {{{found[1]}}} is not among its parameters")
            self.references.take(1, len(given[found[1]]))
            return given[found[1]]

        around = [
            quote(part, safe="/:@!$&'()*+,;=~-._%", errors="replace") for part in _PLACE.split(self.path)[::2]
        ]
        names = [value(found) for found in _PLACE.finditer(self.path)]
        whole = "".join(part for pair in zip(around, [*names, ""], strict=True) for part in pair)
        return whole if whole.startswith("/") else f"/{whole}"

    def _base(self) -> str:
        """Return the path before all paths: that of the first server, without a slash at its end."""
        root = self.references.root
        if isinstance(root.get("basePath"), str):
            self.references.take(1, len(root["basePath"]))
            return str(root["basePath"]).rstrip("/")
        servers: Any = self.told.get("servers") or self.around.get("servers") or root.get("servers")
        server = self.references.node(servers[0]) if isinstance(servers, list) and servers else {}
        variables = self.references.node(server.get("variables"))

        def default(found: re.Match[str]) -> str:
            said = plain(self.references.node(variables.get(found[1])).get("default"))
            self.references.take(1, len(said))
            return said

        url = plain(server.get("url"))
        self.references.take(1, len(url))
        try:
            path = urlsplit(_PLACE.sub(default, url)).path.rstrip("/")
        except ValueError:
            raise UnfillableError(f"the URL of its server, {url}, is none") from None
        return path if not path or path.startswith("/") else f"/{path}"

    def _needed_security(self) -> str:
        """Return the names of what authorizes, unless the operation can do without."""
        told = self.told.get("security", self.references.root.get("security"))
        self.references.take(len(told) if isinstance(told, list) else 1)
        ways = [way for way in told if isinstance(way, Mapping)] if isinstance(told, list) else []
        if not ways or any(not way for way in ways):
            return ""
        return " and ".join(islice(ways[0], 10))

    def _responses(self) -> dict[str, Any]:
        found = self.told.get("responses")
        self.references.take(len(found) if isinstance(found, Mapping) else 1)
        return {str(status): told for status, told in found.items()} if isinstance(found, Mapping) else {}

    def _is_endless(self) -> bool:
        for status, told in self._responses().items():
            content = self.references.node(told).get("content")
            if status.startswith("2") and isinstance(content, Mapping) and content:
                self.references.take(len(content))
                return all(str(kind).startswith("text/event-stream") for kind in content)
        return False

    def _status(self) -> int | None:
        """Return the first right status, a redirection where it does nothing else; None: any 2xx."""
        for right in ("2", "3"):
            found = [told for told in self._responses() if re.fullmatch(rf"{right}([0-9][0-9]|XX)", told)]
            if found:
                return int(found[0]) if found[0].isdecimal() else None
        return None


def all_of(references: References) -> Iterator[Operation]:
    """Yield the operations in their order."""
    paths = references.root.get("paths")
    for path, told in paths.items() if isinstance(paths, Mapping) else ():
        try:
            references.begin()
            around = references.node(told)
        except UnfillableError:
            around = {}
        for method in OPERATIONS:
            if isinstance(around.get(method), Mapping):
                yield Operation(references, method.upper(), str(path), around[method], around)

"""Which parts of a target are names of what is there, and which tell one thing from another of its kind.

    shape("/users/42/orders/6f1d…-…?page=2")    ->  ("users", "*", "orders", "*"), ("page",)

Numbers, UUIDs and long hexadecimal words differ from request to request; the rest is taken to be a name until there
are too many of them in one place (`tree.py`).
"""

import re
from urllib.parse import quote, urlsplit

ANY = "*"
LONGEST = 2_048
"""Characters of a target; longer ones are attacks more often than requests, and no template for a user to read."""
DEEPEST = 32
_ID = re.compile(
    r"[0-9]+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(?=[0-9a-f]*[0-9])[0-9a-f]{8,}|(?=[0-9A-F]*[0-9])[0-9A-F]{8,}"
)
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u00([0-9a-fA-F]{2})|(.))")
_PLAIN = "".join(chr(code) for code in range(33, 127) if chr(code) not in '"#<>\\^`{|}')
"""What stands in a target as it is; braces and bars mean something in a template."""


def target(text: str) -> str | None:
    """Return path and query as they are sent again, or None for what is no path.

    `text` is as the log has it: nginx writes bytes as `\\x22`, Apache as `\\"`; a proxy is told whole URLs.
    """
    if "\\" in text:
        text = _ESCAPED.sub(_unescaped, text)
    if not text.startswith("/"):
        try:
            parts = urlsplit(text)
        except ValueError:
            return None
        if parts.scheme not in ("http", "https") or not parts.netloc:
            return None
        text = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    text = text.partition("#")[0]
    found = quote(text, safe=_PLAIN, encoding="latin-1", errors="replace")
    return found if len(found) <= LONGEST else None


def _unescaped(found: re.Match[str]) -> str:
    digits = found[1] or found[2]
    return chr(int(digits, 16)) if digits else found[3]


_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
"""As the engine writes one: 007 is a word."""


def around_number(asked: str) -> tuple[str, int, str] | None:
    """Return the only number of a target with what stands around it, or None where it has none or more that differs."""
    path, mark, query = asked.partition("?")
    if mark:
        name, equals, value = query.partition("=")
        found = [value] if equals and "&" not in query and not _ids(path) else []
        before, behind = f"{path}?{name}=", ""
    else:
        names = path.split("/")
        found = _ids(path)
        at = names.index(found[0]) if len(found) == 1 else 0
        before, behind = (
            "".join(f"{name}/" for name in names[:at]),
            "".join(f"/{name}" for name in names[at + 1 :]),
        )
    if len(found) != 1 or not _NUMBER.fullmatch(found[0]):
        return None
    return before, int(found[0]), behind


def _ids(path: str) -> list[str]:
    return [name for name in path.split("/") if _ID.fullmatch(name)]


def shape(asked: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the path, with `*` for what differs, and those of the query."""
    path, _, query = asked.partition("?")
    names = path[1:].split("/", DEEPEST)
    shaped = tuple(ANY if _ID.fullmatch(name) else name for name in names)
    return shaped, tuple(pair.partition("=")[0] for pair in query.split("&")) if query else ()

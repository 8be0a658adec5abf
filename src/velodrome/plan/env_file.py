r"""A file of environment variables, as dotenv has it: values that stand in no command line.

    # comment
    SHOP_NAME=corner shop          # the rest of the line, without what follows ` #`
    export PASSWORD='as it $tands' # in single quotes as it stands
    KEY="line\nline"               # in double quotes with \n, \t, \r, \", \\ and \$; may go over several lines
    HOME                           # a name alone hands on our own

Nothing is put in the place of `$NAME`: a value is what stands there.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from velodrome.model.errors import EnvFileError

_NAME = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*(=?)[ \t]*")
_SINGLE = re.compile(r"'([^']*)'")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BARE = re.compile(r"[^\n]*")
_REST = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|$)")
_BLANK = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*[ \t\r]*(?:#[^\n]*$)?")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}


def read(path: Path) -> tuple[str, ...]:
    """Return the variables of a file as `NAME=VALUE`, or `NAME`. Raises EnvFileError, which tells no value."""
    try:
        text = path.read_text(encoding="utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is not text (UTF-8)"
        raise EnvFileError(str(path), 0, why) from error
    return tuple(_variables(str(path), text))


def _variables(path: str, text: str) -> Iterator[str]:
    at = 0
    while (at := _end(_BLANK, text, at)) < len(text):
        line = text.count("\n", 0, at) + 1
        named = _NAME.match(text, at)
        if named is None:
            raise EnvFileError(path, line, "it does not begin with the name of a variable")
        at = named.end()
        value = ""
        if named[2]:
            value, at = _value(path, line, text, at)
        if "\0" in value:
            raise EnvFileError(path, line, f"the value of {named[1]} has a NUL in it")
        rest = _REST.match(text, at)
        if rest is None:
            what = "has something behind its closing quote" if named[2] else "has no = behind it"
            raise EnvFileError(path, line, f"{named[1]} {what}")
        at = rest.end()
        yield f"{named[1]}={value}" if named[2] else named[1]


def _value(path: str, line: int, text: str, at: int) -> tuple[str, int]:
    """Return a value, and where it ends."""
    quote = text[at : at + 1]
    if quote and quote in "'\"":
        found = (_SINGLE if quote == "'" else _DOUBLE).match(text, at)
        if found is None:
            raise EnvFileError(path, line, f"its {quote} is not closed")
        value = found[1]
        if quote == '"':
            value = _ESCAPED.sub(lambda one: _LETTERS.get(one[1], one[1]), value)
        return value, found.end()
    end = _end(_BARE, text, at)
    value = re.split(r"(?:^|[ \t])#", text[at:end], maxsplit=1)[0]
    return value.strip(), end


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()

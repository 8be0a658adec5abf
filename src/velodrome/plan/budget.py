"""What reading a file may take: bytes of the file, and values and bytes of what it stands for when it is written out.

    budget = Budget(values=10_000, size=1_000_000)
    budget.take(1, len("some text"))          raises SpentError when more is taken than there is

A few lines of a document may stand for more than a machine holds: an alias stands for all it names, `minItems: 100`
for a hundred of what is below it. So what is repeated is charged before it is written out, each time it occurs.
"""

import os
import re

from velodrome.model.errors import TooLargeError

MOST_BYTES = 64_000_000
"""Of one file that is read as a whole."""
MOST_DEPTH = 200
"""Levels of lists and objects, one within another."""
MOST_LISTED = 100_000
"""Values of a file that people write: a study, a file of requests."""
MOST_PARTS = 16
"""Of a key of TOML: its parser takes time by their square."""
_TEXT = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|\'[^\'\n]*\'|#[^\n]*',
    re.DOTALL,
)
"""A text of TOML or JSON, or a comment; up to two quotes may stand before the three that end one."""
_PART = r'(?:(?<![A-Za-z0-9_-])[A-Za-z0-9_-]++|"[^"\n]*+"|\'[^\'\n]*+\')'
_LONG_KEY = re.compile(rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_PARTS}}}")


class SpentError(Exception):
    """Raised when a budget is spent; the text is the budget, such as `10 000 values`."""


class TooDeepError(Exception):
    """Raised for a value with more than MOST_DEPTH levels."""


class Budget:
    """Values and bytes that are left."""

    def __init__(self, values: int, size: int) -> None:
        self._budget = values, size
        self.values, self.size = values, size

    def take(self, values: int, size: int = 0) -> None:
        """Take some. Raises SpentError when they are not left; nothing is left then."""
        self.values -= values
        self.size -= size
        if self.values < 0:
            raise SpentError(f"{_grouped(self._budget[0])} values")
        if self.size < 0:
            raise SpentError(f"{_grouped(self._budget[1])} bytes")

    def take_whole(self, value: object) -> None:
        """Take all of a value of JSON, as often as each part of it occurs. Raises SpentError, TooDeepError."""
        left = [(value, 0)]
        while left:
            one, depth = left.pop()
            if depth > MOST_DEPTH:
                raise TooDeepError
            if isinstance(one, dict):
                self.take(len(one) + 1, sum(map(len, one)))
                left += [(part, depth + 1) for part in one.values() if isinstance(part, dict | list | str)]
            elif isinstance(one, list):
                self.take(len(one) + 1)
                left += [(part, depth + 1) for part in one if isinstance(part, dict | list | str)]
            else:
                self.take(1, len(one) if isinstance(one, str) else 0)


def contents(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """Return what is in a file. Raises TooLargeError for more than `most` bytes, and OSError."""
    with open(path, "rb") as file:
        # Not by its size: of a pipe or a device that says nothing.
        found = file.read(most + 1)
    if len(found) > most:
        raise TooLargeError(os.fspath(path), "", f"{_grouped(most)} bytes")
    return found


def see_written(path: str, text: str) -> None:
    """Look at a file that people write, TOML or JSON, before it is parsed: that takes long, and much memory.

    Raises TooLargeError for more values than MOST_LISTED, or keys of more parts than MOST_PARTS.
    """

    def most(said: str) -> int:
        return sum(map(said.count, ",[{="))

    if most(text) > MOST_LISTED and most(_TEXT.sub("", text)) > MOST_LISTED:
        raise TooLargeError(path, "", f"{_grouped(MOST_LISTED)} values")
    if _LONG_KEY.search(text):
        # What looks like a key may stand in a text.
        bare = _TEXT.sub(lambda found: '""' + "\n" * found[0].count("\n"), text)
        if (found := _LONG_KEY.search(bare)) is not None:
            line = bare.count("\n", 0, found.start()) + 1
            raise TooLargeError(path, f"line {line}", f"{MOST_PARTS} parts in a key")


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")

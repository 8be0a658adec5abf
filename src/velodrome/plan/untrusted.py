"""Files of strangers: how much reading a file may take, and what it names that goes beyond measuring.

    budget = Budget(values=10_000, size=1_000_000)
    budget.take(1, len("some text"))          raises SpentError when more is taken than there is

A few lines of a document may stand for more than a machine holds: an alias stands for all it names, `minItems: 100`
for a hundred of what is below it. So what is repeated is charged before it is written out, each time it occurs.

Whoever writes a study or a file of requests decides which executables are run, which packages are installed and which
files are read on the machine of whoever runs it. `of_study` lists them, `refuse` is the error until the user agrees.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from velodrome.model.errors import TooLargeError, UntrustedError
from velodrome.model.files import Deed, Named
from velodrome.model.study import Study

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
            raise SpentError(f"{_group_digits(self._budget[0])} values")
        if self.size < 0:
            raise SpentError(f"{_group_digits(self._budget[1])} bytes")

    def take_whole(self, value: object) -> None:
        """Take all of a value of JSON, as often as each part of it occurs. Raises SpentError, TooDeepError."""
        left = [(value, 0)]
        while left:
            node, depth = left.pop()
            if depth > MOST_DEPTH:
                raise TooDeepError
            if isinstance(node, dict):
                self.take(len(node) + 1, sum(map(len, node)))
                left += [(part, depth + 1) for part in node.values() if isinstance(part, dict | list | str)]
            elif isinstance(node, list):
                self.take(len(node) + 1)
                left += [(part, depth + 1) for part in node if isinstance(part, dict | list | str)]
            else:
                self.take(1, len(node) if isinstance(node, str) else 0)


def contents(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """Return what is in a file. Raises TooLargeError for more than `most` bytes, and OSError."""
    with open(path, "rb") as file:
        # Not by its size: of a pipe or a device that says nothing.
        found = file.read(most + 1)
    if len(found) > most:
        raise TooLargeError(os.fspath(path), "", f"{_group_digits(most)} bytes")
    return found


def see_written(path: str, text: str) -> None:
    """Look at a file that people write, TOML or JSON, before it is parsed: that takes long, and much memory.

    Raises TooLargeError for more values than MOST_LISTED, or keys of more parts than MOST_PARTS.
    """

    def most(text: str) -> int:
        return sum(map(text.count, ",[{="))

    if most(text) > MOST_LISTED and most(_TEXT.sub("", text)) > MOST_LISTED:
        raise TooLargeError(path, "", f"{_group_digits(MOST_LISTED)} values")
    if _LONG_KEY.search(text):
        # What looks like a key may stand in a text.
        bare = _TEXT.sub(lambda found: '""' + "\n" * found[0].count("\n"), text)
        if (found := _LONG_KEY.search(bare)) is not None:
            line = bare.count("\n", 0, found.start()) + 1
            raise TooLargeError(path, f"line {line}", f"{MOST_PARTS} parts in a key")


def _group_digits(number: int) -> str:
    return f"{number:,}".replace(",", " ")


_VERSION = re.compile(r"(?:(?:cpython|pypy|graalpy)[-@]?)?[0-9]+(?:\.[0-9]+){0,2}t?")
"""Of an interpreter; all else is looked for as a file."""


See = Callable[[str, Sequence[Named]], None]
"""Decides on what the file at a path names, before any of it is touched. Raises UntrustedError."""


def refuse(path: str, named: Sequence[Named]) -> None:
    """Let nothing be named. Raises UntrustedError."""
    if named:
        raise UntrustedError(path, [thing.sentence for thing in named])


def of_study(study: Study) -> tuple[Named, ...]:
    """Return what a study names, each thing once, in its order."""
    found: dict[tuple[Deed, str], Named] = {}
    for named in _all_of(study):
        found.setdefault((named.deed, named.what), named)
    return tuple(found.values())


def _all_of(study: Study) -> Iterator[Named]:
    for contestant in study.contestants:
        yield from _interpreter(contestant.python or "", f"contestant {contestant.label}")
        yield from _packages(contestant.packages, f"contestant {contestant.label}")
    for experiment in study.experiments:
        place = f"experiment {experiment.name}"
        yield from _interpreter(str(experiment.settings.get("python", "")), place)
        lines = experiment.settings.get("packages", ())
        pairs = (line.partition("=") for line in (lines if isinstance(lines, tuple) else ()))
        yield from _packages({name: version for name, _, version in pairs}, place)


def _interpreter(python: str, place: str) -> Iterator[Named]:
    if python and not _VERSION.fullmatch(python):
        yield Named(Deed.EXECUTES, python, place)


def _packages(packages: Mapping[str, str], place: str) -> Iterator[Named]:
    if packages:
        lines = sorted(f"{name}=={version}" for name, version in packages.items())
        yield Named(Deed.INSTALLS, " ".join(lines), place)

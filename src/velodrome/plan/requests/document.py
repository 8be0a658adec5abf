"""A JSON or YAML document as its nodes, with what they refer to (`{"$ref": "#/components/schemas/Item"}`) in place.

YAML is read by the JSON schema of its version 1.2 (https://yaml.org/spec/1.2.2/#102-json-schema): `no` and
`2024-01-01` are texts, and so is `007`. Names are texts whatever they look like, as `200` of a response.

The nodes are built here from the events of the parser, and what they stand for is counted on the way: an alias and a
merge (`<<: *base`) count as all that they name, before anything is merged. What an alias names is one object in memory.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import yaml

from velodrome.plan.untrusted import MOST_BYTES, MOST_DEPTH, Budget, SpentError, TooDeepError

MOST_NODES = 2_000_000
"""Of a document that is written out: some 30 MB."""
_JSON = ("{", "[")
_TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_CORE = "tag:yaml.org,2002:"
_Base: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Written in C where PyYAML was built with it: twenty times as fast."""


class UnreadableError(Exception):
    """Raised for a text that is neither; the text is the reason."""


class OverflowingError(Exception):
    """Raised for a text that stands for too much: `place` is a line, or empty; `budget` is how much is read."""

    def __init__(self, place: str, budget: str) -> None:
        self.place, self.budget = place, budget
        super().__init__(f"{place}: more than {budget}")


def parse_document(text: str, *, as_yaml: bool = False) -> Any:
    """Return what a text contains; `as_yaml` where the file's name says that it is YAML.

    Raises UnreadableError, OverflowingError.
    """
    try:
        # What is no JSON at all, such as most YAML, ends at its first letters.
        if text.lstrip().startswith(_JSON):
            _see_count(text)
        return json.loads(text)
    except RecursionError as error:
        raise UnreadableError("it is nested too deeply") from error
    except ValueError as error:
        if text.lstrip().startswith(_JSON) and not as_yaml:
            raise UnreadableError(f"it is no JSON: {_short(str(error))}") from error
    try:
        return _Reader().read(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UnreadableError(f"it is neither JSON nor YAML: {_sentence(error)}") from error


def _see_count(text: str) -> None:
    """Raise OverflowingError for JSON of too many values: three letters of it may take seventy bytes of memory."""

    def most(text: str) -> int:
        return sum(map(text.count, ",[{"))

    if most(text) > MOST_NODES and most(_TEXT.sub("", text)) > MOST_NODES:
        raise OverflowingError("", f"{MOST_NODES:,} values".replace(",", " "))


class _Repeated:
    """What an anchor names: a value with what it stands for. `value` is missing while it is being read."""

    def __init__(self) -> None:
        self.value: Any = None
        self.whole = False
        self.nodes = self.size = self.depth = 0


@dataclass
class _Open:
    """A list or an object whose end has not come yet."""

    value: Any
    of: _Repeated
    before: tuple[int, int]
    """What was left of the budget when it began."""
    name: str | None = None
    """The name whose value comes next; None: a name comes next, or it is a list."""
    merging: bool = False
    """What comes next is merged: its name is a plain `<<`."""
    merged: list[Any] = field(default_factory=list)
    deepest: int = 0

    @property
    def wants_name(self) -> bool:
        """Whether a name comes next."""
        return self.name is None and isinstance(self.value, dict)


class _Reader:
    """Builds a document."""

    def __init__(self) -> None:
        self._budget = Budget(MOST_NODES, MOST_BYTES)
        self._anchors: dict[str, _Repeated] = {}
        self._open: list[_Open] = []
        self._found: Any = None
        self._documents = 0

    def read(self, text: str) -> Any:
        """Return it. Raises yaml.YAMLError, ValueError, OverflowingError."""
        for event in yaml.parse(text, _Base):
            try:
                self._event(event)
            except SpentError as error:
                raise OverflowingError(_line(event), str(error)) from error
        return self._found

    def _event(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise ValueError(f"{_line(event)}: another document begins; give one")

    def _scalar(self, event: Any) -> None:
        size = len(event.value)
        self._budget.take(1, size)
        value = _plain(event)
        repeated = self._anchored(event)
        repeated.value, repeated.whole, repeated.nodes, repeated.size = value, True, 1, size
        if self._open and self._open[-1].wants_name:
            inside = self._open[-1]
            inside.name = _name(value)
            inside.merging = value == "<<" and event.implicit[0]
        else:
            self._add(value, 0, event)

    def _begin(self, event: Any) -> None:
        if len(self._open) >= MOST_DEPTH:
            raise ValueError(f"{_line(event)}: it is nested too deeply")
        self._see_no_name(event)
        _see_tag(event)
        left = self._budget.values, self._budget.size
        self._budget.take(1)
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._open.append(_Open(value, self._anchored(event), left))

    def _end(self, event: Any) -> None:
        done = self._open.pop()
        if done.merged:
            own = dict(done.value)
            done.value.clear()
            # Of two with the same name the first counts, and what stands beside the merge before both.
            for merged in reversed(done.merged):
                done.value.update(merged)
            done.value.update(own)
        repeated = done.of
        repeated.value, repeated.whole, repeated.depth = done.value, True, done.deepest + 1
        repeated.nodes = done.before[0] - self._budget.values
        repeated.size = done.before[1] - self._budget.size
        self._add(done.value, repeated.depth, event)

    def _alias(self, event: Any) -> None:
        repeated = self._anchors.get(event.anchor)
        if repeated is None:
            raise ValueError(f"{_line(event)}: nothing is called *{_short(event.anchor)}")
        if not repeated.whole:
            raise ValueError(f"{_line(event)}: *{_short(event.anchor)} holds itself")
        self._budget.take(repeated.nodes, repeated.size)
        if len(self._open) + repeated.depth > MOST_DEPTH:
            raise ValueError(f"{_line(event)}: it is nested too deeply")
        if repeated.depth:
            self._see_no_name(event)
        if self._open and self._open[-1].wants_name:
            self._open[-1].name = _name(repeated.value)
        else:
            self._add(repeated.value, repeated.depth, event)

    def _anchored(self, event: Any) -> _Repeated:
        """Return where to note what begins here, under its anchor if it has one."""
        repeated = _Repeated()
        if event.anchor is not None:
            self._anchors[event.anchor] = repeated
        return repeated

    def _see_no_name(self, event: Any) -> None:
        if self._open and self._open[-1].wants_name:
            raise ValueError(f"{_line(event)}: a name is a text, and here stands a list or an object")

    def _add(self, value: Any, depth: int, event: Any) -> None:
        """Put a value, with so many levels in it, where it belongs."""
        if not self._open:
            self._found = value
            return
        inside = self._open[-1]
        inside.deepest = max(inside.deepest, depth)
        if inside.name is None:
            inside.value.append(value)
        elif inside.merging:
            parts = value if isinstance(value, list) else [value]
            if not all(isinstance(part, dict) for part in parts):
                raise ValueError(f"{_line(event)}: << merges objects, and here stands something else")
            inside.merged += parts
        else:
            inside.value[inside.name] = value
        inside.name, inside.merging = None, False


_WORDS = {
    "null": re.compile(r"~|null|Null|NULL|"),
    "bool": re.compile(r"true|True|TRUE|false|False|FALSE"),
    "int": re.compile(r"-?(?:0|[1-9][0-9]*)"),
    "float": re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"),
}
_FIRST = ("", *"-0123456789~nNtTfF")


def _plain(event: Any) -> Any:
    """Return what a scalar stands for. Raises ValueError."""
    text: str = event.value
    kind = _kind(event)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind not in ("int", "float"):
        return text
    try:
        return int(text) if kind == "int" else float(text)
    except ValueError as error:  # Python reads some thousand digits
        raise ValueError(f"{_line(event)}: a number of {len(text)} digits is too long") from error


def _kind(event: Any) -> str:
    """Return which of the words a scalar is, by its tag or its looks, or `str`. Raises ValueError."""
    text, tag = event.value, event.tag
    if tag in (None, "!"):
        looks = tag is None and event.implicit[0] and text[:1] in _FIRST
        return (
            next((name for name, words in _WORDS.items() if words.fullmatch(text)), "str") if looks else "str"
        )
    _see_tag(event)
    kind: str = tag.removeprefix(_CORE)
    if kind not in _WORDS:  # of !!binary and the like JSON knows the text
        return "str"
    if not _WORDS[kind].fullmatch(text):
        raise ValueError(f"{_line(event)}: '{_short(text)}' is no {kind}")
    return kind


def _name(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _see_tag(event: Any) -> None:
    """Raise ValueError for a tag that is none of YAML's own: what it stands for only its program knows."""
    tag = event.tag
    if tag not in (None, "!") and (not tag.startswith(_CORE) or "/" in tag):
        raise ValueError(f"{_line(event)}: could not determine a constructor for the tag {_short(tag)}")


def _line(event: Any) -> str:
    return f"line {event.start_mark.line + 1}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 200 else f"{text[:200]}…"


def _sentence(error: Exception) -> str:
    """Return `line 3, column 5: mapping values are not allowed here`."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return _short(str(error))
    mark = error.problem_mark or error.context_mark
    what = _short(error.problem or error.context or "it cannot be read")
    return f"line {mark.line + 1}, column {mark.column + 1}: {what}" if mark else what


MOST_HOPS = 32
"""A reference may lead to another; more of them are a circle."""
MOST_VALUES = 10_000
LARGEST_VALUE = 1_000_000
"""Of one operation, with all it refers to."""
DOCUMENT_VALUES = 200_000
DOCUMENT_BYTES = 8_000_000
"""Of all operations of a document together; a large document has more, in proportion."""
BYTES_A_VALUE = 20
LONGEST_NAME = 300
"""Letters of the description of an operation."""

Node = Mapping[str, Any]


def valid(text: str) -> str:
    """Return text that can be written: JSON may hold halves of characters."""
    return text.encode(errors="replace").decode()


def plain(value: object) -> str:
    """Return a text, a number, true or false as text; nothing for a list or an object."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, int | float) else ""


def short(text: str) -> str:
    """Return text that a sentence may hold."""
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"


class UnfillableError(Exception):
    """Raised for what cannot be filled in; the text is the reason, as shown for what is left out."""

    def __init__(self, why: str) -> None:
        super().__init__(short(why))


class TooMuchError(UnfillableError):
    """Raised for an operation that comes to more than its budget; no alternative is tried then."""


class References:
    """A document whose references are followed."""

    def __init__(self, root: Node, size: int = 0) -> None:
        """`size` is that of its text."""
        self.root = root
        self._all = Budget(DOCUMENT_VALUES + size // BYTES_A_VALUE, DOCUMENT_BYTES + size)
        self._one = Budget(MOST_VALUES, LARGEST_VALUE)

    def begin(self) -> None:
        """Charge what is looked at from now on to another operation."""
        self._one = Budget(MOST_VALUES, LARGEST_VALUE)

    def take(self, values: int, size: int = 0) -> None:
        """Charge what is looked at. Raises TooMuchError, and SpentError for the whole document."""
        try:
            self._one.take(values, size)
        except SpentError as error:
            self._all.take(1)  # it is not written out, so the rest costs nothing
            raise TooMuchError(f"it comes to more than {error} when it is written out") from error
        self._all.take(values, size)

    def take_whole(self, value: Any) -> Any:
        """Return a value of the document, charged with all that is in it. Raises what `take` does."""
        left = self._one.values, self._one.size
        try:
            self._one.take_whole(value)
        except SpentError as error:
            self._all.take(*left)
            raise TooMuchError(f"it comes to more than {error} when it is written out") from error
        except TooDeepError as error:
            raise UnfillableError("it is nested too deeply") from error
        self._all.take(left[0] - self._one.values, left[1] - self._one.size)
        return value

    @property
    def taken(self) -> tuple[int, int]:
        """Values and bytes that were charged to this operation."""
        return MOST_VALUES - self._one.values, LARGEST_VALUE - self._one.size

    def node(self, found: object) -> Node:
        """Return an object, or what it refers to. Raises UnfillableError for a reference that leads nowhere."""
        hops = 0
        self.take(1)
        while isinstance(found, Mapping) and isinstance(found.get("$ref"), str):
            hops += 1
            self.take(1, len(found["$ref"]))
            if hops > MOST_HOPS:
                raise UnfillableError(f"{found['$ref']} refers to itself")
            found = self._target(found["$ref"])
        return found if isinstance(found, Mapping) else {}

    def _target(self, pointer: str) -> object:
        if not pointer.startswith("#"):
            raise UnfillableError(f"{pointer} is in another document; put all into one")
        place: object = self.root
        # A JSON pointer in a fragment (RFC 6901, section 6).
        for part in unquote(pointer[1:]).split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(place, list) and name.isdecimal() and int(name[:9]) < len(place):
                place = place[int(name[:9])]
            elif isinstance(place, Mapping) and name in place:
                place = place[name]
            else:
                raise UnfillableError(f"{pointer} refers to nothing")
        return place

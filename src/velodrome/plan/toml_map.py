"""Where everything in a TOML file stands, and where it cannot be read.

    TomlMap.of('[[questions]]\nname = "hello"').place(("questions", 0, "name"))  ->  (2, 1)

`tomllib` forgets positions; tree-sitter keeps them, and reads on after an error.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

Path = tuple[str | int, ...]
"""Keys and indices from the top of the file: `("questions", 0, "loads", 1, "rate")`."""

Place = tuple[int, int]
"""Line and column, counted from 1."""

_DEEPEST = 32
"""Further down nothing is mapped: no study goes there, and a hostile file must not exhaust the stack."""

_KEYS = ("bare_key", "quoted_key", "dotted_key")


@dataclass
class TomlMap:
    """Places of all keys and array items; `broken` holds what could not be read, with its text."""

    places: dict[Path, Place] = field(default_factory=dict)
    broken: list[tuple[Place, str]] = field(default_factory=list)
    _lines: list[bytes] = field(default_factory=list)
    _last: tuple[int, int, int] = (0, 0, 0)
    """Row, bytes and characters of the place that was last asked for: a line may be long, and the next is behind it."""
    _counts: dict[Path, int] = field(default_factory=dict)

    @staticmethod
    def of(text: str) -> "TomlMap":
        """Map a whole file; never raises, whatever the text."""
        source = text.encode()
        found = TomlMap(_lines=source.split(b"\n"))
        root = Parser(Language(tree_sitter_toml.language())).parse(source).root_node
        found.broken = [(found._place(node), _text(node)) for node in _broken(root)]
        found._pairs(root, ())
        for node in root.named_children:
            if node.type in ("table", "table_array_element"):
                found._table(node)
        return found

    def place(self, path: Path) -> Place:
        """Return where `path` stands or, for what is missing, the nearest thing around it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, (1, 1))

    def _table(self, node: Node) -> None:
        header = next((child for child in node.named_children if child.type in _KEYS), None)
        if header is None:
            return
        path: Path = ()
        keys = _keys(header)
        for key in keys:
            path += (key,)
            is_last = key is keys[-1]
            if is_last and node.type == "table_array_element":
                self.places.setdefault(path, self._place(header))
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                path += (self._counts[path] - 1,)
        self.places[path] = self._place(header)
        self._pairs(node, path)

    def _pairs(self, parent: Node, path: Path) -> None:
        for node in parent.named_children:
            if node.type != "pair" or len(node.named_children) < 2:
                continue
            key, value = node.named_children[0], node.named_children[-1]
            inner = path
            for part in _keys(key):
                inner += (part,)
                self.places.setdefault(inner, self._place(key))
            self._value(value, inner)

    def _value(self, node: Node, path: Path) -> None:
        if len(path) > _DEEPEST:
            return
        if node.type == "inline_table":
            self._pairs(node, path)
        elif node.type == "array":
            items = [child for child in node.named_children if child.type not in ("comment", "ERROR")]
            for index, item in enumerate(items):
                self.places[(*path, index)] = self._place(item)
                self._value(item, (*path, index))

    def _place(self, node: Node) -> Place:
        row, column = node.start_point
        last, at, letters = self._last
        if row != last or column < at:
            at = letters = 0
        # The parser counts bytes; people and editors count characters.
        letters += len(self._lines[row][at:column].decode(errors="replace"))
        self._last = row, column, letters
        return row + 1, letters + 1


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _keys(node: Node) -> list[str]:
    if node.type == "dotted_key":
        return [key for child in node.named_children for key in _keys(child)]
    text = _text(node)
    if node.type == "bare_key":
        return [text]
    try:
        return list(tomllib.loads(f"{text} = 0"))
    except tomllib.TOMLDecodeError:
        return [text]


def _broken(root: Node) -> Iterator[Node]:
    left = [root]
    while left:
        node = left.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            left += reversed(node.children)

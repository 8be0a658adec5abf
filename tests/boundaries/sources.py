"""Modules as trees, each parsed once, and what they import."""

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    gc.freeze()  # half a million nodes that stay: no later collection of garbage needs to visit them
    return tree


@cache
def imported(path: Path) -> tuple[str, ...]:
    """Return the full name of everything that a module imports, wherever in it."""
    return tuple(name for node in ast.walk(parsed(path)) for name in named(node))


def named(node: ast.AST) -> Iterator[str]:
    """Yield the full name of what a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute, so that a reader sees the arrow"
        yield node.module or ""
        yield from (f"{node.module}.{alias.name}" for alias in node.names)

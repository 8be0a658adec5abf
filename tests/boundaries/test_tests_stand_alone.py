"""A test can be read, moved and deleted without looking at another: what two share is in a module that is no test."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_no_test_imports_another() -> None:
    importers = [
        f"{path.relative_to(TESTS)} imports {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for name in imported(ast.parse(path.read_text(encoding="utf-8")))
        if name.startswith("tests.") and any(part.startswith("test_") for part in name.split("."))
    ]
    assert importers == []


def imported(tree: ast.AST) -> list[str]:
    return [
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ] + [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]

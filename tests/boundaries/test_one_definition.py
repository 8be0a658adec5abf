"""Names at the top of a module: each is defined once, so that what is read there is what holds."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.boundaries.sources import parsed

pytestmark = pytest.mark.unit
SOURCE = Path(__file__).parents[2] / "src/velodrome"


def defined(tree: ast.Module) -> Iterator[str]:
    for statement in tree.body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if not any("overload" in ast.unparse(one) for one in statement.decorator_list):
                    yield statement.name
            case ast.Assign() | ast.AnnAssign():
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                names = (node for target in targets for node in ast.walk(target))
                yield from (
                    node.id
                    for node in names
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                )


def test_no_name_is_defined_twice_at_the_top_of_a_module() -> None:
    twice = {
        str(path.relative_to(SOURCE)): again
        for path in sorted(SOURCE.rglob("*.py"))
        if (again := [name for name, count in Counter(defined(parsed(path))).items() if count > 1])
    }
    assert twice == {}

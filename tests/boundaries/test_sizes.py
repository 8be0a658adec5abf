"""No module is so long that it cannot be read at a sitting, but those listed here with a reason."""

import ast
import io
import tokenize
from pathlib import Path

from tests.boundaries.sources import parsed

SOURCE = Path(__file__).parents[2] / "src/velodrome"
MOST = 800
"""Lines of code: without blanks, comments and docstrings."""
LONGER = {
    "usecases/tune.py": "a search decides by what its stored results come to, also those of a run that is resumed, "
    "judged again, or measured over hosts: both halves are one state",
}


def lines_of_code(path: Path) -> int:
    texts = {
        line
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    beside = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type not in (*beside, tokenize.ENDMARKER):
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - texts)


def test_only_modules_with_a_reason_are_longer_than_the_limit() -> None:
    every = [path for path in SOURCE.rglob("*.py") if path.stat().st_size > 20 * MOST]
    longer = {path.relative_to(SOURCE).as_posix() for path in every if lines_of_code(path) > MOST}
    assert longer == set(LONGER)

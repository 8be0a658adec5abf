"""The guest half: Python 3.7 syntax, the standard library only at import, and nothing of the host at all."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import velodrome.guest
from velodrome.model.errors import InterpreterNotFoundError
from velodrome.run.environments import interpreter

GUEST = Path(velodrome.guest.__path__[0])
FILES = sorted(GUEST.rglob("*.py"))
MODULES = sorted({
    "velodrome.guest." + ".".join(path.relative_to(GUEST).with_suffix("").parts).removesuffix(".__init__")
    for path in FILES
    if path != GUEST / "__init__.py"
})  # fmt: skip
OLDEST = (3, 7)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=OLDEST)


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "a relative import"
        return [node.module or ""]
    return []


def at_import(node: ast.AST) -> Iterator[str]:
    """Yield what is imported when the module is, so not what functions import when they are called."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from imported(child)
            yield from at_import(child)


def named(path: Path) -> str:
    return str(path.relative_to(GUEST))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_importing_a_guest_module_needs_the_standard_library_alone(path: Path) -> None:
    allowed = {*sys.stdlib_module_names, "velodrome"}
    assert [name for name in at_import(tree_of(path)) if name.split(".")[0] not in allowed] == []


@pytest.mark.parametrize("path", FILES, ids=named)
def test_no_guest_module_ever_imports_the_host(path: Path) -> None:
    names = [
        name
        for node in ast.walk(tree_of(path))
        for name in imported(node)
        if name.split(".")[0] == "velodrome"
    ]
    assert [name for name in names if not f"{name}.".startswith("velodrome.guest.")] == []


@pytest.mark.integration
def test_every_guest_module_is_imported_by_a_real_python_37(tmp_path: Path) -> None:
    try:
        python = interpreter.find_interpreter("3.7")
    except InterpreterNotFoundError:
        pytest.skip("there is no Python 3.7 here; install one with: uv python install 3.7")
    assert python.minor == OLDEST
    (tmp_path / "velodrome").mkdir()
    (tmp_path / "velodrome" / "guest").symlink_to(GUEST)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + "\n".join(
        f"import {name}" for name in MODULES
    )
    # -S: no site-packages. -B: no bytecode written into the source tree.
    command = [str(python.path), "-B", "-S", "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

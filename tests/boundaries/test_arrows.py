"""Imports go one way: cli, api -> usecases -> plan, run, judge -> model -> guest; report is beside them."""

import ast
from collections.abc import Container, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from tests.boundaries.sources import imported, named, parsed

import velodrome

ROOT = Path(velodrome.__file__).parent
TESTS = Path(__file__).parents[1]
MAY_IMPORT = {
    "guest": {"guest"},
    "model": {"model", "guest"},
    "plan": {"plan", "model", "guest"},
    "run": {"run", "model", "guest", "_native"},
    "judge": {"judge", "model", "guest"},
    "diagnoses": {"diagnoses", "model", "guest"},
    "report": {"report", "model", "guest"},
    "usecases": {"usecases", "plan", "run", "judge", "diagnoses", "model", "guest"},
    "api": {"api", "usecases", "plan", "run", "judge", "report", "model", "guest"},
    "cli": {"cli", "usecases", "plan", "run", "judge", "report", "model", "guest"},
}


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_module_imports_only_along_the_arrows(room: str) -> None:
    for path in sorted((ROOT / room).rglob("*.py")):
        rooms = {name.split(".")[1] for name in imported(path) if name.startswith("velodrome.")}
        assert rooms <= MAY_IMPORT[room], f"{path}: {room} may not import {sorted(rooms - MAY_IMPORT[room])}"


def test_nobody_imports_a_face() -> None:
    """The command line, the Python API and the pytest plugin parse, call use cases and render."""
    for room, others in MAY_IMPORT.items():
        assert {"cli", "api"} & others <= {room}
    assert "usecases" in MAY_IMPORT["cli"] & MAY_IMPORT["api"]
    plugin = set(imported(ROOT / "pytest_plugin.py"))
    assert not any(name.startswith("velodrome.cli") for name in plugin)


def test_every_room_of_the_package_has_its_arrows() -> None:
    rooms = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(MAY_IMPORT)


def test_the_rooms_of_run_lean_on_each_other_without_a_circle() -> None:
    leans: dict[str, set[str]] = {}
    for path in (ROOT / "run").rglob("*.py"):
        room = path.relative_to(ROOT / "run").parts[0].removesuffix(".py")
        named = (name.split(".") for name in imported(path))
        leans.setdefault(room, set()).update(
            parts[2] for parts in named if parts[:2] == ["velodrome", "run"] and len(parts) > 2
        )
        leans[room] -= {room}
    order = [*TopologicalSorter(leans).static_order()]  # raises CycleError, which shows the circle
    assert order.index("machine") < order.index("servers") < order.index("racing")


def test_no_imports_go_round_in_a_circle() -> None:
    """What a module imports when it is imported; what its functions import when they are called may lead back."""
    trees = {module_name(path): parsed(path) for path in ROOT.rglob("*.py")}
    leans = {name: set(needed(name, tree, trees)) for name, tree in trees.items()}
    TopologicalSorter(leans).prepare()  # raises CycleError, which shows the circle


def needed(name: str, tree: ast.AST, modules: Container[str]) -> Iterator[str]:
    """With a module come the packages it is in, but those that the importing one is in are there."""
    for other in at_once(tree):
        parts = other.split(".")
        brought = (".".join(parts[:many]) for many in range(1, len(parts) + 1))
        yield from (
            package for package in brought if package in modules and not f"{name}.".startswith(f"{package}.")
        )


def module_name(path: Path) -> str:
    parts = ("velodrome", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def at_once(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield from named(child)
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not for_types(child):
            yield from at_once(child)


def for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_every_folder_of_the_host_says_what_belongs_in_it() -> None:
    folders = [path for path in ROOT.rglob("__init__.py") if "guest" not in path.relative_to(ROOT).parts]
    assert [path for path in folders if not ast.get_docstring(parsed(path))] == []


def test_no_test_imports_another() -> None:
    """What two tests share is in a module that is no test: each can be moved and deleted by itself."""
    importers = [
        f"{path.relative_to(TESTS)} imports {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for name in imported(path)
        if name.startswith("tests.") and any(part.startswith("test_") for part in name.split("."))
    ]
    assert importers == []

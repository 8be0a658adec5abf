"""Where an app is that a caller holds as an object: the module a server process can import it from.

An object of a framework's class does not tell; so the modules that hold it are looked at. Whoever imported it holds it
as well, often a test or the program that runs, which a server process must not import: what a test names of velodrome's
is not there, and the program would run once more.
"""

import ast
import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType

from velodrome.model.errors import AppInProgramError, AppInTestError, AppNotFoundError

RUNNING = "__main__"
OURS = "velodrome"
OF_TESTS = ("pytest", "_pytest", OURS)
"""Packages whose names stand in tests, and not in apps."""
BLOCKS = (ast.If, ast.Try, ast.With, ast.For, ast.While)


@dataclass(frozen=True)
class Holder:
    """A module that holds an app, and by which name."""

    module: ModuleType
    attribute: str

    @property
    def file(self) -> Path:
        """Its source."""
        return Path(str(self.module.__file__)).resolve()

    @property
    def is_test(self) -> bool:
        """Whether it is a file of tests: by its name, because it runs, or by what it imports."""
        stem = self.file.stem
        running = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
        named = stem.startswith("test_") or stem.endswith("_test") or stem in ("conftest", "tests")
        if named or (running and self.file.match(running)):
            return True
        return any(_origin(value).partition(".")[0] in OF_TESTS for value in list(vars(self.module).values()))

    @property
    def names_ours(self) -> bool:
        """Whether it has names from within velodrome (`from velodrome import ms`): a server process has none."""
        return any(_origin(value).startswith(f"{OURS}.") for value in list(vars(self.module).values()))

    @property
    def defines(self) -> bool:
        """Whether its source makes the app, and does not import it."""
        try:
            tree = ast.parse(self.file.read_bytes())
        except (OSError, SyntaxError, ValueError):  # no source
            return False
        return self.attribute in _bound(tree.body)

    @property
    def importable(self) -> tuple[str, str]:
        """`module:attribute`, and the folder it is imported from; empty where it is installed."""
        file, name = self.file, self.module.__name__
        parts = name.split(".")
        is_package = file.name == "__init__.py"
        ends = [*file.parts[: -2 if is_package else -1], file.parent.name if is_package else file.stem]
        if ends[-len(parts) :] != parts:
            # Imported by a name of its own: its file is a module all the same.
            return f"{ends[-1]}:{self.attribute}", str(Path(*ends[:-1]))
        root = Path(*ends[: -len(parts)])
        return f"{name}:{self.attribute}", "" if root in _installed() else str(root)


def held(app: object) -> tuple[str, str]:
    """Return `module:attribute` of an app, and the folder that is imported from; empty where it is installed.

    Raises AppNotFoundError, AppInTestError or AppInProgramError, all UsageErrors.
    """
    holders = _holders(app)
    others = [one for one in holders if one.module.__name__ != RUNNING]
    apps = [one for one in others if not one.is_test]
    named = [getattr(app, "import_name", ""), getattr(app, "__module__", "")]
    # What says that it made it, then what does by its source, then what was imported first.
    apps.sort(key=lambda one: (one.module.__name__ not in named, not one.defines))
    alone = [one for one in others if not one.names_ours]
    if apps or alone:
        return (apps or alone)[0].importable
    if others:
        raise AppInTestError(_told(app), str(others[0].file), others[0].attribute)
    if holders:
        raise AppInProgramError(_told(app), str(holders[0].file), holders[0].attribute)
    raise AppNotFoundError(_told(app))


def _holders(app: object) -> list[Holder]:
    modules = [
        one for one in list(sys.modules.values()) if isinstance(one, ModuleType) and vars(one).get("__file__")
    ]
    return [
        Holder(module, name)
        for module in modules
        for name, value in list(vars(module).items())
        if value is app and not name.startswith("__")
    ]


def _told(app: object) -> str:
    return repr(app)[:80]


def _origin(value: object) -> str:
    """Return the module that a function or a class is from; of a module its own name."""
    if isinstance(value, ModuleType):
        return value.__name__
    name = getattr(value, "__module__", "") if isinstance(value, FunctionType | type) else ""
    return name if isinstance(name, str) else ""


def _bound(statements: list[ast.stmt]) -> set[str]:
    """Return the names that a module gives to what it makes, at its top level."""
    found = set()
    for one in statements:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(one.name)
        elif isinstance(one, BLOCKS):
            found |= _bound([child for child in _children(one) if isinstance(child, ast.stmt)])
        else:
            names = (node for node in ast.walk(one) if isinstance(node, ast.Name))
            found |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return found


def _children(block: ast.stmt) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(block):
        yield child
        if isinstance(child, ast.ExceptHandler):
            yield from child.body


def _installed() -> set[Path]:
    """Return the folders that any process of this interpreter imports from."""
    paths = sysconfig.get_paths()
    known = [paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages()]
    return {Path(one).resolve() for one in known}

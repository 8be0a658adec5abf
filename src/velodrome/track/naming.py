"""An app that is named by its file: the module it is, and the folder that is imported from.

    by_file("src/shop/wsgi.py:app", "/home/me")        # ("shop.wsgi:app", "src")

A module begins below the last folder without an `__init__.py`, as Python itself has it, unless it imports from the
packages above it (`from .. import models`), which are such then without one.
"""

import ast
import os
from pathlib import Path

from velodrome.model.errors import AppPathError


def by_file(app: str, cwd: str) -> tuple[str, str]:
    """Return `module:attribute` and the folder it is imported from beside `cwd`, if that is another.

    Raises AppPathError for a file that is not there.
    """
    name, colon, attribute = app.partition(":")
    if not name.endswith(".py"):
        return app, ""
    file = Path(name).expanduser()
    whole = Path(cwd, file)
    if not whole.is_file():
        raise AppPathError(app, f"there is no file {whole}")
    parts = [] if whole.name == "__init__.py" else [whole.stem]
    folder, above = file.parent, _above(whole)
    while (Path(cwd, folder) / "__init__.py").is_file() or len(parts) <= above:
        inside = Path(cwd, folder)
        if inside.parent == inside:
            break
        parts.insert(0, inside.resolve().name)
        folder = folder.parent if folder.name not in ("", "..") else folder / ".."
    module = ".".join(parts)
    if not all(part.isidentifier() for part in parts):
        raise AppPathError(app, f"'{module}' is no name of a module")
    same = os.path.realpath(Path(cwd, folder)) == os.path.realpath(cwd)
    return module + colon + attribute, "" if same else str(folder)


def _above(file: Path) -> int:
    """Return how many packages above it a file imports from: one for `from . import`, two for `from .. import`."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):  # it is told when it is imported
        return 0
    return max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)

"""Act on modules when they are imported: after their code has run, or on their source before it runs.

    finder = Finder()
    finder.after("socket", patch)               # now, if it is there already
    finder.rewrite("/srv/shop/pricing.py", change, {"helper": helper})
    finder.install()

A server imports what it likes when it likes: patching a module before others may have replaced parts of it (gevent), or
importing it only to patch it, would change what is measured.
"""

from __future__ import annotations

import ast
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, cast

Patch = Callable[[ModuleType], None]
Change = Callable[[ast.Module], ast.Module]


class Finder(MetaPathFinder):
    """Stands before the other finders, and asks them."""

    def __init__(self) -> None:
        self._after: Dict[str, List[Patch]] = {}
        self._rewritten: Dict[str, Rewriting] = {}

    def install(self) -> None:
        """Begin."""
        if self._after or self._rewritten:
            sys.meta_path.insert(0, self)

    def after(self, module: str, patch: Patch) -> None:
        """Call `patch` with a module once it is imported."""
        there = sys.modules.get(module)
        if there is not None:
            patch(there)
        else:
            self._after.setdefault(module, []).append(patch)

    def rewrite(self, file: str, change: Change, names: Mapping[str, Any]) -> None:
        """Have a file's source changed before it runs, with names that the change uses; several changes add up."""
        rewriting = self._rewritten.setdefault(os.path.realpath(file), Rewriting())
        rewriting.changes.append(change)
        rewriting.names.update(names)

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        """Return what the others find, with a loader that acts where it shall."""
        if fullname not in self._after and not self._rewritten:
            return (
                None  # an app may try in each request to import what is not there: it is not looked for twice
            )
        others = [finder for finder in sys.meta_path if finder is not self]
        spec = _find_by(others, fullname, path, target)
        if spec is None:
            return None
        rewriting = self._rewritten.get(os.path.realpath(spec.origin)) if spec.origin else None
        if rewriting is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Rewritten(spec.loader.name, spec.loader.path, rewriting)
        if fullname in self._after and spec.loader is not None:
            spec.loader = Patched(spec.loader, self._after[fullname])
        return spec


def _find_by(
    finders: Sequence[Any], fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType]
) -> Optional[ModuleSpec]:
    """Return what the first of these finders finds that finds something."""
    for finder in finders:
        find = getattr(finder, "find_spec", None)
        spec: Optional[ModuleSpec] = find(fullname, path, target) if find is not None else None
        if spec is not None:
            return spec
    return None


class Missing(MetaPathFinder):
    """Stands behind the other finders, and has what none of them finds no longer looked for after some times.

    `sys.modules[name] = None` says that a module is not there: `import` fails as before, and
    `importlib.util.find_spec` returns None as before, but no folder is searched.
    """

    TIMES = 3

    def __init__(self, on_remembered: Callable[[], None]) -> None:
        self._on_remembered = on_remembered
        self._times: Dict[str, int] = {}

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        """Return what finders behind this one find; count the rest."""
        behind = sys.meta_path[sys.meta_path.index(self) + 1 :]
        spec = _find_by(behind, fullname, path, target)
        if spec is not None:
            return spec
        self._times[fullname] = self._times.get(fullname, 0) + 1
        if self._times[fullname] >= self.TIMES and fullname not in sys.modules:
            sys.modules[fullname] = None  # type: ignore[assignment]
            self._on_remembered()
        return None


class Rewriting:
    """What is changed in one file."""

    def __init__(self) -> None:
        self.changes: List[Change] = []
        self.names: Dict[str, Any] = {}


class Rewritten(SourceFileLoader):
    """Loads a file changed. Bytecode of what was changed is neither read nor kept."""

    def __init__(self, fullname: str, path: str, rewriting: Rewriting) -> None:
        super().__init__(fullname, path)
        self._rewriting = rewriting

    def get_code(self, fullname: str) -> Optional[CodeType]:
        """Return the code of the changed source."""
        tree = ast.parse(self.get_data(self.path), self.path)
        for change in self._rewriting.changes:
            tree = change(tree)
        code = compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)
        assert isinstance(code, CodeType)
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Run it, with the names that the changes use."""
        module.__dict__.update(self._rewriting.names)
        super().exec_module(module)


class Patched(Loader):
    """Loads a module as another loader does, and calls patches once its code has run."""

    def __init__(self, loader: Any, patches: Sequence[Patch]) -> None:
        self._loader, self._patches = loader, patches

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        """Return what the other makes."""
        return cast(Optional[ModuleType], self._loader.create_module(spec))

    def exec_module(self, module: ModuleType) -> None:
        """Run its code, then the patches."""
        self._loader.exec_module(module)
        # Whoever asks a module for its own loader (resources, pickles) is to meet the one that made it.
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        for patch in self._patches:
            patch(module)

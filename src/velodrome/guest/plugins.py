"""Plugins: found by looking into a folder, behind entry points and in files named by path, never by a list.

    STACK = Kind("stack", Stack, "velodrome.guest.stacks", "velodrome.stacks")
    healthy(STACK)["uvicorn"]      one(STACK, "uvicorn")      entries(STACK, ["./mine.py"])

A plugin is a module-level value that has the name of its kind (`stack = Stack(…)`). The folder that ships comes first,
then the entry points of the kind's group, then extra files; of two with the same name the later one counts. Files
whose name begins with `_` are no plugins. One that cannot be loaded is an entry with its error, never an exception.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module, util
from pathlib import Path
from pkgutil import ModuleInfo, iter_modules
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Type


@dataclass(frozen=True)
class Kind:
    """A kind of plugin: its name in a module, its class, and the package and entry points it is found in."""

    noun: str
    cls: Type[Any]
    """`object` where plugins are of no common class."""
    package: str
    group: Optional[str] = None
    """Of the entry points; None: others cannot bring any."""
    mixed: bool = False
    """Whether the package has modules besides: those without such a name are then passed over."""


@dataclass(frozen=True)
class Entry:
    """One plugin: the thing itself, or why it could not be loaded."""

    name: str
    """Its own name; where it has none or could not be loaded, that of the file or entry point."""
    origin: str
    """Module, entry point or path it comes from."""
    thing: Any = None
    error: str = ""
    """One line; empty if all is well."""


class NoSuchNameError(KeyError):
    """Raised when no plugin of a kind has that name; the host offers the nearest of `known`."""

    def __init__(self, kind: str, name: str, known: Sequence[str], error: str = "") -> None:
        super().__init__(name)
        self.kind, self.name, self.known = kind, name, tuple(known)
        self.error = error
        """Why the plugin of that name could not be loaded, if there is one."""


def entries(kind: Kind, extra: Sequence[str] = ()) -> List[Entry]:
    """Return every plugin of a kind, the broken ones too, sorted by name; `extra` are paths of files."""
    found: Dict[str, Entry] = {}
    for entry in shipped_plugins(kind):
        found[entry.name] = entry
    for entry in _entry_points(kind):
        found[entry.name] = entry
    for path in extra:
        found_here = _from_file(kind, path)
        found[found_here.name] = found_here
    return [found[name] for name in sorted(found)]


def healthy(kind: Kind, extra: Sequence[str] = ()) -> Dict[str, Any]:
    """Return the plugins that could be loaded, by name, sorted; `extra` are paths of files."""
    return {entry.name: entry.thing for entry in entries(kind, extra) if not entry.error}


def find_plugin(kind: Kind, name: str, extra: Sequence[str] = ()) -> Any:
    """Return the plugin of that name. Raises NoSuchNameError (a KeyError)."""
    found = entries(kind, extra)
    for entry in found:
        if entry.name == name and not entry.error:
            return entry.thing
    error = next((entry.error for entry in found if entry.name == name), "")
    raise NoSuchNameError(kind.noun, name, [entry.name for entry in found if not entry.error], error)


@lru_cache(maxsize=None)
def shipped_plugins(kind: Kind) -> Tuple[Entry, ...]:
    """Return the plugins of a kind that come with velodrome: its folders are listed once in a process."""
    return tuple(_list_shipped(kind))


def _list_shipped(kind: Kind) -> Iterator[Entry]:
    package = import_module(kind.package)
    for found in iter_modules(package.__path__):
        if found.name.startswith("_"):
            continue
        module = kind.package + "." + found.name
        if kind.mixed and not _sets(found, kind.noun):
            continue
        yield _entry(kind, found.name.replace("_", "-"), module, partial(import_module, module))


def _sets(found: ModuleInfo, noun: str) -> bool:
    """Whether a module sets that name: its text is searched, since to import all of a package takes its time."""
    spec = found.module_finder.find_spec(found.name, None)
    source = getattr(spec.loader, "get_source", lambda _name: None)(spec.name) if spec else None
    if source is None:
        return True
    if not any(line.startswith((noun + " = ", noun + ": ")) for line in source.splitlines()):
        return False
    targets = [target for node in ast.parse(source).body for target in _targets(node)]
    return noun in targets  # not only in the example of a docstring


def _targets(node: ast.stmt) -> List[str]:
    """Return the names that a statement at the top of a module sets."""
    if isinstance(node, ast.AnnAssign):
        return [node.target.id] if isinstance(node.target, ast.Name) else []
    return [name.id for name in getattr(node, "targets", ()) if isinstance(name, ast.Name)]


def _entry_points(kind: Kind) -> Iterator[Entry]:
    if kind.group is None:
        return
    from importlib.metadata import entry_points  # Python 3.7 has none, and no host runs on it

    every: Any = entry_points()
    # Python 3.8 and 3.9 return a dictionary.
    chosen = every.select(group=kind.group) if hasattr(every, "select") else every.get(kind.group, ())
    for point in chosen:
        yield _entry(kind, point.name, "entry point " + point.value, point.load)


def _from_file(kind: Kind, path: str) -> Entry:
    file = Path(path)
    return _entry(kind, file.stem.replace("_", "-"), path, lambda: _module_of_file(kind, file))


def _module_of_file(kind: Kind, file: Path) -> ModuleType:
    # Named as the copy that the server process will see (`run/environments/guest_tree.py`), so that a stack can write
    # `-m` and its own `__name__`. It is not entered in sys.modules: two files may have one name.
    name = kind.package + "." + file.stem
    spec = util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # while it runs, because dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    finally:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
    return module


def _entry(kind: Kind, name: str, origin: str, load: Callable[[], Any]) -> Entry:
    try:
        loaded = load()
        thing = getattr(loaded, kind.noun) if isinstance(loaded, ModuleType) else loaded
    except AttributeError as error:
        if "has no attribute %r" % kind.noun in str(error):
            return Entry(name, origin, error="has no %s = %s(…)" % (kind.noun, kind.cls.__name__))
        return Entry(name, origin, error=_line(error))
    except (Exception, SystemExit) as error:  # whatever a plugin does at import must not stop the others
        return Entry(name, origin, error=_line(error))
    if not isinstance(thing, kind.cls):
        why = "%s is a %s, not a %s" % (kind.noun, type(thing).__name__, kind.cls.__name__)
        return Entry(name, origin, error=why)
    own = getattr(thing, "name", name)
    return Entry(own if isinstance(own, str) else name, origin, thing)


def _line(error: BaseException) -> str:
    return " ".join(("%s: %s" % (type(error).__name__, error)).split())

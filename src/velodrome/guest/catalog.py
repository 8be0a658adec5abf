"""The catalog: which stacks, recipes and interfaces there are, found by looking, never by a list.

    catalog.stacks()["uvicorn"]      catalog.stack("uvicorn")      catalog.broken()

Stacks and recipes are looked for in `guest/stacks/` and `guest/services/`, then behind the entry points
`velodrome.stacks` and `velodrome.services`, then in extra files named by path (`--stack ./mine.py`); of
two with the same name the later one counts. Files whose name begins with `_` are no plugins. A plugin
that cannot be loaded is an entry with its error, never an exception.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from importlib import import_module, util
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Type

from velodrome.guest import client
from velodrome.guest.interface import GRPCIO, GRPCLIB, Interface
from velodrome.guest.recipe import Query, Recipe, Write, kind_of
from velodrome.guest.stack import Stack


@dataclass(frozen=True)
class Kind:
    """A kind of plugin: its class, its name in a module, and the package and entry points it is found in."""

    noun: str
    cls: Type[Any]
    package: str
    group: Optional[str] = None


STACK = Kind("stack", Stack, "velodrome.guest.stacks", "velodrome.stacks")
RECIPE = Kind("recipe", Recipe, "velodrome.guest.services", "velodrome.services")
INTERFACE = Kind("interface", Interface, "velodrome.guest.interfaces")


@dataclass(frozen=True)
class Entry:
    """One plugin: the thing itself, or why it could not be loaded."""

    name: str
    """Its own name; where it could not be loaded, that of the file or entry point."""
    origin: str
    """Module, entry point or path it comes from."""
    thing: Any = None
    error: str = ""
    """One line; empty if all is well."""


class NoSuchNameError(KeyError):
    """Raised when nothing of that name is in the catalog; the host offers the nearest of `known`."""

    def __init__(self, kind: str, name: str, known: Sequence[str], error: str = "") -> None:
        super().__init__(name)
        self.kind, self.name, self.known = kind, name, tuple(known)
        self.error = error
        """Why the plugin of that name could not be loaded, if there is one."""


def stacks(extra: Sequence[str] = ()) -> Dict[str, Stack]:
    """Return all stacks that could be loaded, by name, sorted. `extra` are paths of files."""
    return _healthy(STACK, extra)


def recipes(extra: Sequence[str] = ()) -> Dict[str, Recipe]:
    """Return all recipes that could be loaded, by name."""
    return _healthy(RECIPE, extra)


def interfaces() -> Dict[str, Interface]:
    """Return all interfaces, by name."""
    return _healthy(INTERFACE, ())


def stack(name: str, extra: Sequence[str] = ()) -> Stack:
    """Return one stack. Raises NoSuchNameError (a KeyError)."""
    found: Stack = _one(STACK, name, extra)
    return found


def recipe(name: str, extra: Sequence[str] = ()) -> Recipe:
    """Return one recipe. Raises NoSuchNameError (a KeyError)."""
    found: Recipe = _one(RECIPE, name, extra)
    return found


def interface(name: str) -> Interface:
    """Return one interface. Raises NoSuchNameError (a KeyError)."""
    found: Interface = _one(INTERFACE, name, ())
    return found


def broken(extra: Sequence[str] = ()) -> List[Entry]:
    """Return the plugins of every kind that could not be loaded, each with its error."""
    every = entries(STACK, extra) + entries(RECIPE) + entries(INTERFACE)
    return [entry for entry in every if entry.error]


def requires(of: Stack, served: Optional[Recipe] = None) -> Tuple[str, ...]:
    """Return what has to be installed for a stack: its own requirements and its interface's, sorted.

    For a recipe that asks databases their clients come on top, so that a stack which serves none has none.
    Raises NoSuchNameError if there is no such interface, ValueError for a recipe it cannot serve.
    """
    called = interface(of.interface)
    clients = client.needed(served, called.awaits) if served else ()
    return tuple(
        sorted({*of.requires, *called.requires, *(line for one in clients for line in one.requires)})
    )


def serves(of: Stack, served: Recipe) -> Optional[str]:
    """Return why a stack cannot serve a recipe, or None if it can."""
    if served.chats and not interface(of.interface).chats:
        return "its interface '%s' has no WebSocket" % of.interface
    for step in (*served.steps, *served.every_step):
        if kind_of(step) in of.cannot:
            return of.cannot[kind_of(step)]
    if any(isinstance(step, (Query, Write)) for step in served.every_step):
        try:
            client.needed(served, interface(of.interface).awaits)
        except ValueError as why:
            return str(why)
    if served.to_room and interface(of.interface).protocol == "grpc":
        return "a room is held over WebSockets; over gRPC a message goes back to its sender alone"
    if served.calls_grpc and not _clients_of_grpc(of):
        return "it has no client of gRPC installed; stacks that have one require grpcio or grpclib"
    return None


def _clients_of_grpc(of: Stack) -> List[str]:
    clients = [package.partition("==")[0] for package in (*GRPCIO, *GRPCLIB)]
    return [line for line in requires(of) if line.partition("==")[0] in clients]


def entries(kind: Kind, extra: Sequence[str] = ()) -> List[Entry]:
    """Return every plugin of a kind, the broken ones too, sorted by name; `extra` are paths of files."""
    found: Dict[str, Entry] = {}
    for entry in shipped(kind):
        found[entry.name] = entry
    for entry in _entry_points(kind):
        found[entry.name] = entry
    for path in extra:
        found_here = _from_file(kind, path)
        found[found_here.name] = found_here
    return [found[name] for name in sorted(found)]


def _healthy(kind: Kind, extra: Sequence[str]) -> Dict[str, Any]:
    return {entry.name: entry.thing for entry in entries(kind, extra) if not entry.error}


def _one(kind: Kind, name: str, extra: Sequence[str]) -> Any:
    found = entries(kind, extra)
    for entry in found:
        if entry.name == name and not entry.error:
            return entry.thing
    error = next((entry.error for entry in found if entry.name == name), "")
    raise NoSuchNameError(kind.noun, name, [entry.name for entry in found if not entry.error], error)


def shipped(kind: Kind) -> Iterator[Entry]:
    """Yield the plugins of a kind that come with velodrome."""
    package = import_module(kind.package)
    for found in iter_modules(package.__path__):
        if not found.name.startswith("_"):
            module = kind.package + "." + found.name
            yield _entry(kind, found.name.replace("_", "-"), module, partial(import_module, module))


def _entry_points(kind: Kind) -> Iterator[Entry]:
    if kind.group is None:
        return
    from importlib.metadata import (
        entry_points,
    )  # the host's Python has it; one of 3.7, which has not, never asks

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
        told = "%s is a %s, not a %s" % (kind.noun, type(thing).__name__, kind.cls.__name__)
        return Entry(name, origin, error=told)
    return Entry(thing.name, origin, thing)


def _line(error: BaseException) -> str:
    return " ".join(("%s: %s" % (type(error).__name__, error)).split())

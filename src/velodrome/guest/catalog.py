"""The catalog: which stacks, recipes, interfaces and servers there are, and what a stack can serve.

    catalog.stacks()["uvicorn"]      catalog.stack("uvicorn")      catalog.broken_plugins()

They are plugins (`guest/plugins.py`) of `guest/stacks/`, `guest/services/` and `guest/interfaces/`, of the entry points
`velodrome.stacks` and `velodrome.services`, and of extra files that are named by path (`--stack ./mine.py`).
"""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

from velodrome.guest import client
from velodrome.guest.interface import GRPCIO, GRPCLIB, Interface
from velodrome.guest.plugins import Entry, Kind, NoSuchNameError, entries, find_plugin, healthy
from velodrome.guest.recipe import Query, Recipe, Write, kind_of
from velodrome.guest.stack import Server, Stack

STACK = Kind("stack", Stack, "velodrome.guest.stacks", "velodrome.stacks")
RECIPE = Kind("recipe", Recipe, "velodrome.guest.services", "velodrome.services")
INTERFACE = Kind("interface", Interface, "velodrome.guest.interfaces")


def stacks(extra: Sequence[str] = ()) -> Dict[str, Stack]:
    """Return all stacks that could be loaded, by name, sorted. `extra` are paths of files."""
    files: Dict[str, Stack] = healthy(STACK, extra)
    found = {variant.name: variant for stack in files.values() for variant in stack.every()}
    found.update(files)  # a file of a variant's name counts more
    return {name: found[name] for name in sorted(found)}


def recipes(extra: Sequence[str] = ()) -> Dict[str, Recipe]:
    """Return all recipes that could be loaded, by name."""
    return healthy(RECIPE, extra)


def interfaces() -> Dict[str, Interface]:
    """Return all interfaces, by name."""
    return healthy(INTERFACE, ())


def stack(name: str, extra: Sequence[str] = ()) -> Stack:
    """Return one stack. Raises NoSuchNameError (a KeyError)."""
    every = stacks(extra)
    if name in every:
        return every[name]
    try:
        found: Stack = find_plugin(STACK, name, extra)
    except NoSuchNameError as error:
        raise NoSuchNameError(error.kind, name, [*every], error.error) from None
    return found


def recipe(name: str, extra: Sequence[str] = ()) -> Recipe:
    """Return one recipe. Raises NoSuchNameError (a KeyError)."""
    found: Recipe = find_plugin(RECIPE, name, extra)
    return found


def interface(name: str) -> Interface:
    """Return one interface. Raises NoSuchNameError (a KeyError)."""
    found: Interface = find_plugin(INTERFACE, name, ())
    return found


def servers() -> Dict[str, Server]:
    """Return every server that a stack starts, by its module."""
    return {entry.server.module: entry.server for entry in stacks().values() if entry.server is not None}


def broken_plugins(extra: Sequence[str] = ()) -> List[Entry]:
    """Return the plugins of every kind that could not be loaded, each with its error."""
    every = entries(STACK, extra) + entries(RECIPE) + entries(INTERFACE)
    return [entry for entry in every if entry.error]


def requires(of: Stack, served: Optional[Recipe] = None) -> Tuple[str, ...]:
    """Return what has to be installed for a stack: its own requirements and its interface's, sorted.

    For a recipe that asks databases their clients come on top, so that a stack which serves none has none.
    Raises NoSuchNameError if there is no such interface, ValueError for a recipe it cannot serve.
    """
    called = interface(of.interface)
    clients = client.clients_of(served, called.awaits) if served else ()
    return tuple(
        sorted({*of.requires, *called.requires, *(line for entry in clients for line in entry.requires)})
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
            client.clients_of(served, interface(of.interface).awaits)
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

"""Looks at a user's app in its own interpreter: imports it and says what it is, in a file.

python -m velodrome.guest.apps.looking shop:app --out /tmp/what.json [--interface wsgi] [--within /home/me/shop]

Whatever the app does meanwhile (prints, forks, changes the folder, never returns) is the caller's to bound.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from contextlib import suppress
from types import ModuleType
from typing import Any, Dict, Optional, Sequence

from velodrome.guest.apps import asked_for, django_sites, finding, imported, kind, lacks, servicers, traces
from velodrome.guest.apps.surroundings import packages

Facts = Dict[str, Any]


def look(path: str, told: str, within: Sequence[str] = ()) -> Facts:
    """Return what an app is, or under `problem` why it cannot be told; `told` is the interface its user names.

    `within` are folders of which it is told what was imported from them.
    """
    folder = os.getcwd()  # before the app changes it
    try:
        facts = _looked(path, told)
        places = {"origin": imported.origin(path), "imported": imported.within(within)}
        return {**facts, **places, "packages": packages()}
    except finding.NotFoundError as error:
        return {"problem": "attribute", "module": error.module, "name": error.name, "known": error.known}
    except finding.UnreadableError as error:
        return {"problem": "unreadable", "attribute": str(error)}
    except kind.UnfitError as error:
        return {"problem": "unfit", "told": error.told, "needs": error.needs, "awaited": error.awaited}
    except SystemExit as error:
        return {"problem": "exit", "code": str(error.code), "lines": traces.short(error, folder)[:-1]}
    except BaseException as error:  # whatever an app raises, KeyboardInterrupt too
        return {"problem": "raises", "lines": traces.short(error, folder), **lacks.told(error)}


def _looked(path: str, told: str) -> Facts:
    whole, thing, called = finding.found(path)
    if isinstance(thing, ModuleType) and finding.is_settings(thing):
        served = django_sites.applications(whole, thing)
        return _facts(whole, "wsgi", "django", "the settings of a Django site", served)
    if told:
        return _as_told(whole, thing, called, told)
    found = kind.kind_of(thing, make=not called)
    if found.form == "servicer":
        return _facts(whole, found.interface, found.form, found.told, {found.interface: found.adder or whole})
    form = "factory" if called and found.form == "application" else found.form
    return _facts(whole, found.interface, form, found.told)


def _as_told(path: str, thing: Any, called: bool, interface: str) -> Facts:
    """Return what the user says it is; a factory is one all the same, and what is served by gRPC adds to a server.

    Raises UnfitError where it has to be awaited and servers of that interface do not.
    """
    if interface.startswith("grpc"):
        served = {interface: servicers.adder(thing) or path}
        return _facts(path, interface, "servicer", kind.name_of(thing), served)
    told = kind.name_of(thing)
    form = _form(thing, called, interface)
    if form == "coroutine" and interface not in kind.AWAITED:
        raise kind.UnfitError(told, [], awaited=True)
    return _facts(path, interface, form, told)


def _form(thing: Any, called: bool, interface: str) -> str:
    """Return how what the user says it is has to be had."""
    try:
        form = kind.kind_of(thing, make=not called).form
    except kind.UnfitError as error:
        form = "coroutine" if error.awaited else "factory" if kind.is_factory(thing) else "application"
    if form == "asgi2" and interface != "asgi":
        form = "application"
    return "factory" if called and form == "application" else form


def _facts(path: str, interface: str, form: str, told: str, served: Optional[Dict[str, str]] = None) -> Facts:
    return {"path": path, "interface": interface, "form": form, "told": told, "served": served or {}}


def main() -> None:
    """Run the program; ends at once, whatever threads the app has started."""
    parser = ArgumentParser(prog="python -m velodrome.guest.apps.looking")
    parser.add_argument("app")
    parser.add_argument("--out", required=True)
    parser.add_argument("--interface", default="")
    parser.add_argument("--within", action="append", default=[])
    options = parser.parse_args()
    sys.argv = [options.app]  # an app that reads its own arguments must not read these
    me = os.getpid()
    asked_for.watch()
    facts = look(options.app, options.interface, options.within)
    if os.getpid() == me:  # what an app forks comes back here too
        partly = options.out + ".partly"
        with open(partly, "w", encoding="utf-8") as out:
            json.dump(facts, out)
        os.rename(partly, options.out)
    with suppress(Exception):  # it may have closed or replaced them
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

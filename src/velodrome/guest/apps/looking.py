"""Looks at a user's app in its own interpreter: imports it and says what it is, in a file.

python -m velodrome.guest.apps.looking shop:app --out /tmp/what.json [--interface wsgi]

Whatever the app does meanwhile (prints, forks, changes the folder, never returns) is the caller's to bound.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from contextlib import suppress
from types import ModuleType
from typing import Any, Dict, Optional

from velodrome.guest.apps import django_sites, finding, kind, lacks, servicers, traces
from velodrome.guest.apps.surroundings import packages

Facts = Dict[str, Any]


def look(path: str, told: str) -> Facts:
    """Return what an app is, or under `problem` why it cannot be told; `told` is the interface its user names."""
    folder = os.getcwd()  # before the app changes it
    try:
        return {**_looked(path, told), "packages": packages()}
    except finding.NotFoundError as error:
        return {"problem": "attribute", "module": error.module, "name": error.name, "known": error.known}
    except finding.UnreadableError as error:
        return {"problem": "unreadable", "attribute": str(error)}
    except kind.UnfitError as error:
        return {"problem": "unfit", "told": error.told, "needs": error.needs}
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
    return _facts(whole, found.interface, "factory" if called else found.form, found.told)


def _as_told(path: str, thing: Any, called: bool, interface: str) -> Facts:
    """Return what the user says it is; a factory is one all the same, and what is served by gRPC adds to a server."""
    if interface.startswith("grpc"):
        served = {interface: servicers.adder(thing) or path}
        return _facts(path, interface, "servicer", kind.name_of(thing), served)
    is_factory = called
    if not called and callable(thing):
        try:
            is_factory = kind.kind_of(thing).form == "factory"
        except kind.UnfitError:
            is_factory = False
    return _facts(path, interface, "factory" if is_factory else "application", kind.name_of(thing))


def _facts(path: str, interface: str, form: str, told: str, served: Optional[Dict[str, str]] = None) -> Facts:
    return {"path": path, "interface": interface, "form": form, "told": told, "served": served or {}}


def main() -> None:
    """Run the program; ends at once, whatever threads the app has started."""
    parser = ArgumentParser(prog="python -m velodrome.guest.apps.looking")
    parser.add_argument("app")
    parser.add_argument("--out", required=True)
    parser.add_argument("--interface", default="")
    options = parser.parse_args()
    sys.argv = [options.app]  # an app that reads its own arguments must not read these
    me = os.getpid()
    facts = look(options.app, options.interface)
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

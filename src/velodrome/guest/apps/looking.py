"""Looks at a user's app in its own interpreter: imports it and writes down what it is, or why it does not import.

python -m velodrome.guest.apps.looking shop:app --out /tmp/what.json [--interface wsgi] [--within /home/me/shop]

Whatever the app does meanwhile (prints, forks, changes the folder, never returns) is the caller's to bound.
"""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
import traceback
from argparse import ArgumentParser
from contextlib import suppress
from types import ModuleType
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence

from velodrome.guest.apps import finding, surroundings
from velodrome.guest.apps.surroundings import packages

Facts = Dict[str, Any]


def look(path: str, interface: str, within: Sequence[str] = ()) -> Facts:
    """Return what an app is, or under `problem` why that is unknown; `interface` is the one its user names, or empty.

    `within` are folders whose imported files are listed.
    """
    folder = os.getcwd()  # before the app changes it
    try:
        facts = _look(path, interface)
        places = {"origin": origin(path), "imported": imported_files(within)}
        return {**facts, **places, "packages": packages()}
    except finding.NotFoundError as error:
        return {
            "problem": "attribute",
            "module": error.module,
            "name": error.name,
            "known": error.known,
            "holder": error.holder,
        }
    except finding.UnreadableError as error:
        return {"problem": "unreadable", "attribute": str(error)}
    except finding.UnfitError as error:
        return {
            "problem": "unfit",
            "described": error.described,
            "needs": error.needs,
            "awaited": error.awaited,
        }
    except SystemExit as error:
        return {"problem": "exit", "code": str(error.code), "lines": short_trace(error, folder)[:-1]}
    except BaseException as error:  # whatever an app raises, KeyboardInterrupt too
        return {"problem": "raises", "lines": short_trace(error, folder), **missing_from(error)}


def _look(path: str, interface: str) -> Facts:
    whole, thing, called = finding.find(path)
    if isinstance(thing, ModuleType) and finding.is_settings(thing):
        served = finding.applications(whole, thing)
        return _facts(whole, "wsgi", "django", "the settings of a Django site", served, framework="django")
    if interface:
        return _as_named(whole, thing, called, interface)
    found = finding.kind_of(thing, make=not called)
    if found.form == "servicer":
        return _facts(
            whole, found.interface, found.form, found.described, {found.interface: found.adder or whole}
        )
    form = "factory" if called and found.form == "application" else found.form
    both = dict.fromkeys((found.interface, *found.also), whole) if found.also else None
    return _facts(whole, found.interface, form, found.described, both, framework=found.framework)


def _as_named(path: str, thing: Any, called: bool, interface: str) -> Facts:
    """Return what the user says it is; a factory is one all the same, and what is served by gRPC adds to a server.

    Raises UnfitError where it has to be awaited and servers of that interface do not.
    """
    if interface.startswith("grpc"):
        served = {interface: finding.adder(thing) or path}
        return _facts(path, interface, "servicer", finding.name_of(thing), served)
    described = finding.name_of(thing)
    form = _form(thing, called, interface)
    if form == "coroutine" and interface not in finding.AWAITED:
        raise finding.UnfitError(described, [], awaited=True)
    return _facts(path, interface, form, described, framework=finding.framework_of(thing))


def _form(thing: Any, called: bool, interface: str) -> str:
    """Return how what the user says it is has to be had."""
    try:
        form = finding.kind_of(thing, make=not called).form
    except finding.UnfitError as error:
        form = "coroutine" if error.awaited else "factory" if finding.is_factory(thing) else "application"
    if form == "asgi2" and interface != "asgi":
        form = "application"
    return "factory" if called and form == "application" else form


def _facts(
    path: str,
    interface: str,
    form: str,
    described: str,
    served: Optional[Dict[str, str]] = None,
    *,
    framework: str = "",
) -> Facts:
    facts = {
        "path": path,
        "interface": interface,
        "form": form,
        "described": described,
        "served": served or {},
    }
    return {**facts, "framework": framework}


MOST_FILES = 1000
"""Files listed. One that is at the wrong place is enough."""
INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")


def origin(path: str) -> str:
    """Return the file, or the folder, of the package that `module:attribute` begins with; empty: it has none."""
    module = sys.modules.get(path.partition(":")[0].partition(".")[0])
    return next(_places(module), "") if module is not None else ""


def imported_files(folders: Sequence[str]) -> List[str]:
    """Return the files in these folders that were imported, but for what is installed there, and velodrome's own."""
    if not folders:
        return []
    roots = [os.path.join(os.path.realpath(folder), "") for folder in folders]
    installed = [os.path.join(os.path.realpath(path), "") for path in _library_folders()]
    found = set()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("velodrome", "__main__") or not isinstance(module, ModuleType):
            continue
        for place in _places(module):
            if _below(place, roots) and not _below(place, installed):
                found.add(place)
    return sorted(found)[:MOST_FILES]


def _places(module: ModuleType) -> Iterator[str]:
    """Yield the file of a module; of a package without one its folders."""
    file = getattr(module, "__file__", None)
    if isinstance(file, str):
        yield os.path.realpath(file)
        return
    try:
        folders = [str(part) for part in getattr(module, "__path__", ())]
    except Exception:  # computed by whoever made it
        return
    for folder in folders:
        if os.path.isdir(folder):  # finders of editable installations put a mark there
            yield os.path.realpath(folder)


def _library_folders() -> List[str]:
    """Return where an interpreter has its library and what was installed for it."""
    known = sysconfig.get_paths()
    return [*surroundings.folders(), *(known[name] for name in INSTALLED if name in known)]


def _below(place: str, roots: Sequence[str]) -> bool:
    return any(place.startswith(root) for root in roots)


MOST_FRAMES = 4
"""Of the user's own, the last ones."""


def short_trace(error: BaseException, folder: str) -> List[str]:
    """Return the lines of a traceback: frames of files in `folder` alone, then the error.

    Where none is, the last frame there is. `folder` is the one the app runs in.
    """
    trace = traceback.TracebackException.from_exception(error)
    if isinstance(error, SyntaxError):
        return _lines(trace.format_exception_only())
    every = [frame for frame in trace.stack if not _is_machinery(frame.filename)]
    root = os.path.realpath(folder) + os.sep
    mine = [number for number, frame in enumerate(every) if _is_own(frame.filename, root)]
    # A module that cannot even be found has no frame at all.
    kept = [every[number] for number in mine[-MOST_FRAMES:]] or every[-1:]
    below = len(every) - 1 - mine[-1] if mine else 0
    lines = []
    for frame in kept:
        path = os.path.realpath(frame.filename)
        name = path[len(root) :] if path.startswith(root) else path
        lines.append("%s, line %s, in %s" % (name, frame.lineno, frame.name))
        if frame.line:
            lines.append("    " + frame.line)
    if below:
        lines.append("… and %d more in %s" % (below, _package(every[-1].filename)))
    return [*lines, *_lines(trace.format_exception_only())]


def _lines(pieces: Iterable[str]) -> List[str]:
    return [line for piece in pieces for line in piece.rstrip().splitlines()]


def _is_own(filename: str, root: str) -> bool:
    path = os.path.realpath(filename)
    return path.startswith(root) and "site-packages" not in path[len(root) :]


def _is_machinery(filename: str) -> bool:
    """Return whether a frame is of what imports and looks, not of what is imported."""
    folder = os.path.dirname(os.path.abspath(__file__))
    return filename.startswith(("<frozen ", folder)) or filename.endswith("importlib/__init__.py")


def _package(filename: str) -> str:
    """Return whose file it is: the name behind `site-packages`, else that of the file."""
    _, found, rest = filename.replace(os.sep, "/").rpartition("-packages/")
    return rest.partition("/")[0] if found else os.path.basename(filename)


missing_variables: Dict[str, None] = {}
"""Names of environment variables that the app looked up and did not find, in the order of the first time."""


class _Asked(type(os.environ)):  # type: ignore[misc]
    """`os.environ`, which notes what it does not have. `get`, `in` and `os.getenv` all come by here."""

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except KeyError:
            if isinstance(key, str):
                missing_variables.setdefault(key)
            raise


def watch() -> None:
    """Note from now on what is looked up in vain."""
    # The object stays the same: who has imported it has it.
    os.environ.__class__ = _Asked


UNANSWERED = re.compile(
    r"refused|cannot connect|can't connect|could not connect|failed to connect|unreachable", re.I
)
"""What clients of databases say, each in an error of its own."""
VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\b")
"""What a name of a variable looks like in a sentence: «Set the DATABASE_URL environment variable»."""
MOST_NAMES = 50


def missing_from(error: BaseException) -> Dict[str, Any]:
    """Return what is lacking, each empty where it is something else.

    What may be variables: `named`, of which the error speaks; `fields` of settings without a value; `asked_for` in
    vain, whatever the error is.
    """
    chain = [*_chain(error)]
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    variable = next((name for name in map(_variable, chain) if name), None)
    unanswered = any(isinstance(cause, ConnectionError) or UNANSWERED.search(str(cause)) for cause in chain)
    named = [name for cause in chain for name in VARIABLE.findall(str(cause))]
    return {
        "missing": missing,
        "variable": variable,
        "unanswered": unanswered,
        "named": list(dict.fromkeys(named))[:MOST_NAMES],
        "fields": list(dict.fromkeys(name for cause in chain for name in _fields(cause)))[:MOST_NAMES],
        "asked_for": list(missing_variables)[:MOST_NAMES],
    }


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those it came of."""
    seen = set()
    found: Optional[BaseException] = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def _variable(error: BaseException) -> Optional[str]:
    """Return the name of the variable that was looked up in `os.environ`."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    # Its code may be frozen, which has no file.
    inside = trace is not None and trace.tb_frame.f_globals.get("__name__") == "os"
    if isinstance(error, KeyError) and error.args and inside:
        return str(error.args[0])
    return None


def _fields(error: BaseException) -> List[str]:
    """Return the fields of settings that have no value, as pydantic tells them: variables, however they are written."""
    errors = getattr(error, "errors", None)
    if type(error).__name__ != "ValidationError" or not callable(errors):
        return []
    try:
        problems = errors()
        return [
            str(problem["loc"][0])
            for problem in problems
            if "missing" in str(problem["type"]) and problem["loc"]
        ]
    except Exception:  # of another library's class, which is called the same
        return []


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
    watch()
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

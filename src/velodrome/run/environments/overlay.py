"""Overlays: a server beside a user's own packages, which stay as they are and whose versions win.

    <cache>/overlays/<hash>/bin/python         made from the interpreter their environment was made from
        …/site-packages/                       only what their environment lacks
        …/site-packages/velodrome_overlay.pth  adds their folders, in front of it

A package they have is never installed again, also where a stack pins another version. What is missing is resolved
with their versions as constraints. A server of the pinned version that needs others is tried in a version that goes
with theirs; where there is none, it cannot be had beside the app, and that is said. What is installed is ready-made
unless building is allowed, and held to the hashes of the locks that ship, where these have that version.
"""

import hashlib
import json
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from velodrome.guest.stack import Stack, before
from velodrome.model.app import App
from velodrome.model.errors import EnvironmentFailedError
from velodrome.run import cache
from velodrome.run.environments import guest_tree, lock, record
from velodrome.run.environments.environment import Environment
from velodrome.run.environments.installing import FORBIDDEN, SOURCES, Site, kept, tell, unsolvable
from velodrome.run.environments.requirements import name_of, unpinned
from velodrome.run.environments.theirs import Theirs, theirs

LAYOUT = 2
"""Raised when overlays made by an older velodrome must not be used any more."""
_VERSION = re.compile(r"[0-9]+([.!+_-]?[0-9A-Za-z]+)*")
PTH = "import velodrome_overlay\n"
MODULE = '''"""Adds the folders that this environment lies over, and what their own .pth files name, in front of it."""

import os
import site
import sys

FOLDERS = {folders!r}
ours = os.path.dirname(os.path.abspath(__file__))
before = list(sys.path)
for folder in FOLDERS:
    site.addsitedir(folder)
added = [path for path in sys.path if path not in before]
sys.path[:] = [path for path in sys.path if path not in added]
at = next((number for number, path in enumerate(sys.path) if os.path.abspath(path) == ours), len(sys.path))
sys.path[at:at] = added
'''


def overlay_for(stack: Stack, app: App, allow_sdist: bool = False) -> Environment:
    """Return an interpreter that has the app's packages and the stack's server, made if need be.

    `allow_sdist`: what is missing may be built from source, which runs its build code; else it has to be ready-made.
    Safe to be called by many processes and threads at once. Raises EnvironmentFailedError, InterpreterNotFoundError
    or UvMissingError.
    """
    has = theirs(app.python, guest_tree.export())
    _refuse_too_old(stack, has)
    missing = _missing(stack, has)
    return kept(
        cache.folder("overlays") / _key(missing, has, allow_sdist),
        stack.name,
        lambda home: _ready(home, has),
        lambda site: _make(stack, site, missing, has),
        builds=allow_sdist,
        beside=app.path,
    )


def _refuse_too_old(stack: Stack, has: Theirs) -> None:
    for package, version in stack.needs.items():
        if before(has.packages, package, version):
            oldest = ".".join(map(str, version))
            reason = f"it needs {package} {oldest} or newer, and {has.packages[package]} is installed beside the app"
            raise EnvironmentFailedError(
                stack.name, reason, f"upgrade {package} there, or race the other stacks"
            )


def _missing(stack: Stack, has: Theirs) -> tuple[str, ...]:
    """Return what has to be installed: pinned, but for an interpreter that the pinned versions are too new for."""
    lacking = [line for line in stack.requires if name_of(line) not in has.packages]
    if has.interpreter.minor < stack.python:
        lacking = [unpinned(line) for line in lacking]
    return tuple(sorted(lacking))


def _key(missing: Sequence[str], has: Theirs, allow_sdist: bool) -> str:
    interpreter = has.interpreter
    facts = [
        LAYOUT,
        allow_sdist,
        missing,
        str(interpreter.path),
        interpreter.version,
        has.folders,
        sorted(has.packages.items()),
        platform.machine(),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _ready(home: Path, has: Theirs) -> Environment | None:
    told = record.read(home)
    if told is None:
        return None
    packages = {**told["installed"], **has.packages}
    return Environment(
        record.python(home), has.interpreter.version, dict(sorted(packages.items())), locked=False
    )


def _make(stack: Stack, site: Site, missing: Sequence[str], has: Theirs) -> Mapping[str, Any]:
    site.venv(has.interpreter)
    installed = _install(stack, site, missing, has) if missing else {}
    _lay_over(site.folder, has)
    known = lock.hashes()
    unhashed = [f"{name}=={version}" for name, version in installed.items() if (name, version) not in known]
    if unhashed:
        tell(f"{stack.name}: installed without a hash to compare with: {', '.join(unhashed)}")
    return {"version": has.interpreter.version, "installed": installed, "unhashed": unhashed}


def _install(stack: Stack, site: Site, missing: Sequence[str], has: Theirs) -> dict[str, str]:
    """Install what is missing, and return the versions of it. Raises EnvironmentFailedError."""
    resolved = _resolved(stack, site, missing, has)
    lines = [line for line in resolved.splitlines() if name_of(line) and name_of(line) not in has.packages]
    chosen = {name_of(line): line.partition("==")[2].partition(";")[0].strip() for line in lines}
    known = lock.hashes()
    file = site.folder / "chosen.txt"
    file.write_text(
        "".join(
            " ".join([line, *(f"--hash={one}" for one in known.get((name, version), ()))]) + "\n"
            for line, (name, version) in zip(lines, chosen.items(), strict=True)
        )
    )
    # Hashes that are there are compared in any case; so none may be missing.
    strictly = ("--require-hashes",) if all(one in known for one in chosen.items()) else ()
    how = (site.python, "--compile-bytecode", "--no-deps", *_ready_made(site), *strictly)
    site.uv("pip", "install", *how, "--requirements", str(file))
    return chosen


def _ready_made(site: Site) -> tuple[str, ...]:
    return () if site.builds else ("--only-binary=:all:",)


def _resolved(stack: Stack, site: Site, missing: Sequence[str], has: Theirs) -> str:
    """Return what is missing with all it needs, a version each: those that are pinned, or where these do not go with
    what is there, others that do. Raises EnvironmentFailedError.
    """
    theirs = [f"{name}=={version}" for name, version in has.packages.items() if _VERSION.fullmatch(version)]
    try:
        return _compiled(site, missing, theirs, _ready_made(site))
    except EnvironmentFailedError as error:
        if not unsolvable(error):
            raise
        least = [f"{name}>={'.'.join(map(str, version))}" for name, version in stack.needs.items()]
        # What is pinned stays where it can: uv prefers versions that the file has already. Ready-made only: an old
        # release without a wheel for this interpreter is built for minutes, if at all.
        preferred = site.folder / "fitting.txt"
        preferred.write_text("".join(f"{line}\n" for line in missing))
        how = ("--only-binary=:all:", f"--output-file={preferred}")
        try:
            _compiled(site, [unpinned(line) for line in missing], [*theirs, *least], how)
            return preferred.read_text()
        except EnvironmentFailedError as also:
            if not unsolvable(also):
                raise
        if error.cure in (SOURCES, FORBIDDEN):
            reason = "its server, or what this needs, is to be had as source only"
            raise EnvironmentFailedError(stack.name, reason, error.cure, error.last_lines) from error
        reason = "its server needs other versions than are installed beside the app"
        cure = "change what uv names in the app's environment, or race the other stacks"
        raise EnvironmentFailedError(stack.name, reason, cure, error.last_lines) from error


def _compiled(site: Site, wanted: Sequence[str], bounds: Sequence[str], how: Sequence[str]) -> str:
    # From files: a requirement that begins with a dash must not become an option.
    asked, bound = site.folder / "wanted.txt", site.folder / "bounds.txt"
    asked.write_text("".join(f"{line}\n" for line in wanted))
    bound.write_text("".join(f"{line}\n" for line in bounds))
    plain = ("--no-header", "--no-annotate")
    return site.uv("pip", "compile", *plain, site.python, *how, f"--constraints={bound}", str(asked))


def _lay_over(home: Path, has: Theirs) -> None:
    packages = next((home / "lib").glob("*/site-packages"))
    (packages / "velodrome_overlay.py").write_text(MODULE.format(folders=list(has.folders)))
    (packages / "velodrome_overlay.pth").write_text(PTH)

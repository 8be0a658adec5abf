"""Overlays: a server beside a user's own packages, which stay as they are and whose versions win.

    <cache>/overlays/<hash>/bin/python         made from the interpreter their environment was made from
        …/site-packages/                       only what their environment lacks
        …/site-packages/velodrome_overlay.pth  adds their folders, in front of it

A package they have is never installed again, also where a stack pins another version. What is missing is resolved
with their versions as constraints. A server of the pinned version that needs others is tried in a version that goes
with theirs; where there is none, it cannot be had beside the app, and that is said.
"""

import hashlib
import json
import platform
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from velodrome.guest.stack import Stack, before
from velodrome.model.app import App
from velodrome.model.errors import EnvironmentFailedError
from velodrome.run import cache
from velodrome.run.environments import guest_tree, record
from velodrome.run.environments.environment import Environment
from velodrome.run.environments.installing import held, unsolvable, uv
from velodrome.run.environments.requirements import name_of, unpinned
from velodrome.run.environments.theirs import Theirs, theirs

LAYOUT = 1
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


def overlay_for(stack: Stack, app: App) -> Environment:
    """Return an interpreter that has the app's packages and the stack's server, made if need be.

    Safe to be called by many processes and threads at once. Raises EnvironmentFailedError, InterpreterNotFoundError
    or UvMissingError.
    """
    has = theirs(app.python, guest_tree.export())
    _refuse_too_old(stack, has)
    missing = _missing(stack, has)
    home = cache.folder("overlays") / _key(missing, has)
    ready = _ready(home, has)
    if ready is None:
        with held(home.with_suffix(".lock")):
            ready = _ready(home, has) or _make(stack, home, missing, has)
    return ready


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


def _key(missing: Sequence[str], has: Theirs) -> str:
    interpreter = has.interpreter
    facts = [
        LAYOUT,
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


def _make(stack: Stack, home: Path, missing: Sequence[str], has: Theirs) -> Environment:
    shutil.rmtree(home, ignore_errors=True)  # a half-made one
    try:
        uv(stack.name, home, "venv", "--no-project", f"--python={has.interpreter.path}", str(home))
        installed = _install(stack, home, missing, has) if missing else {}
        _lay_over(home, has)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    record.write(home, {"version": has.interpreter.version, "installed": installed})
    ready = _ready(home, has)
    assert ready is not None
    return ready


def _install(stack: Stack, home: Path, missing: Sequence[str], has: Theirs) -> dict[str, str]:
    """Install what is missing, and return the versions of it. Raises EnvironmentFailedError."""
    resolved = _resolved(stack, home, missing, has)
    lines = [line for line in resolved.splitlines() if name_of(line) and name_of(line) not in has.packages]
    chosen = home / "chosen.txt"
    chosen.write_text("".join(f"{line}\n" for line in lines))
    uv(
        stack.name,
        home,
        "pip",
        "install",
        _python(home),
        "--compile-bytecode",
        "--no-deps",
        "--requirements",
        str(chosen),
    )
    return {name_of(line): line.partition("==")[2].partition(";")[0].strip() for line in lines}


def _resolved(stack: Stack, home: Path, missing: Sequence[str], has: Theirs) -> str:
    """Return what is missing with all it needs, a version each: those that are pinned, or where these do not go with
    what is there, others that do. Raises EnvironmentFailedError.
    """
    theirs = [f"{name}=={version}" for name, version in has.packages.items() if _VERSION.fullmatch(version)]
    try:
        return _compiled(stack, home, missing, theirs)
    except EnvironmentFailedError as error:
        if not unsolvable(error):
            raise
        least = [f"{name}>={'.'.join(map(str, version))}" for name, version in stack.needs.items()]
        # What is pinned stays where it can: uv prefers versions that the file has already. Ready-made only: an old
        # release without a wheel for this interpreter is built for minutes, if at all.
        preferred = home / "fitting.txt"
        preferred.write_text("".join(f"{line}\n" for line in missing))
        how = ("--only-binary=:all:", f"--output-file={preferred}")
        try:
            _compiled(stack, home, [unpinned(line) for line in missing], [*theirs, *least], *how)
            return preferred.read_text()
        except EnvironmentFailedError as also:
            if not unsolvable(also):
                raise
        reason = "its server needs other versions than are installed beside the app"
        cure = "change what uv names in the app's environment, or race the other stacks"
        raise EnvironmentFailedError(stack.name, reason, cure, error.last_lines) from error


def _compiled(stack: Stack, home: Path, wanted: Sequence[str], bounds: Sequence[str], *how: str) -> str:
    # From files: a requirement that begins with a dash must not become an option.
    asked, bound = home / "wanted.txt", home / "bounds.txt"
    asked.write_text("".join(f"{line}\n" for line in wanted))
    bound.write_text("".join(f"{line}\n" for line in bounds))
    quiet = ("--quiet", "--no-header", "--no-annotate")
    constraints = f"--constraints={bound}"
    return uv(stack.name, home, "pip", "compile", *quiet, _python(home), *how, constraints, str(asked))


def _python(home: Path) -> str:
    return f"--python={record.python(home)}"


def _lay_over(home: Path, has: Theirs) -> None:
    packages = next((home / "lib").glob("*/site-packages"))
    (packages / "velodrome_overlay.py").write_text(MODULE.format(folders=list(has.folders)))
    (packages / "velodrome_overlay.pth").write_text(PTH)

"""Environments: for each set of requirements and interpreter an environment of its own, made once by uv.

    <cache>/envs/<hash>/bin/python        velodrome.json beside it says what is in it, and that it is whole
    <cache>/envs/<hash>.failed            why it could not be made the last time

Stacks with the same requirements share an environment. What the hashed locks (`locks/`) cover is installed from
them, the rest (third parties' stacks, older interpreters) is resolved anew from the pinned requirements.

A user's own app gets an overlay: a server beside the user's packages, which stay as they are and whose versions win.

    <cache>/overlays/<hash>/bin/python         made from the interpreter their environment was made from
        …/site-packages/                       only what their environment lacks
        …/site-packages/velodrome_overlay.pth  adds their folders, in front of it

A package they have is never installed again, also where a stack pins another version. What is missing is resolved
with their versions as constraints. A server of the pinned version that needs others is tried in a version that goes
with theirs; where there is none, it cannot be had beside the app, and velodrome reports that. What is installed is
ready-made unless building is allowed, and held to the hashes of the locks that ship, where these have that version.
"""

import functools
import hashlib
import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from velodrome.guest import catalog, client, plugins
from velodrome.guest.client import Client
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack, before
from velodrome.model.app import App
from velodrome.model.errors import CalibrationError, EnvironmentFailedError, NoHomeError, UvMissingError
from velodrome.run import cache
from velodrome.run.environments import guest_tree, installing
from velodrome.run.environments.installing import FORBIDDEN, SOURCES, Site, keep, run_uv, tell, unsolvable
from velodrome.run.environments.interpreter import Interpreter, Theirs, find_interpreter, find_uv, theirs
from velodrome.run.machine import facts
from velodrome.run.supervision import python

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?[^;]*(;.*)?")


def with_versions(requires: Sequence[str], packages: Mapping[str, str]) -> tuple[str, ...]:
    """Return requirements in which each of `packages` has that version; a package they do not name is added.

    Names are compared as installers do: without regard to case, and with `-`, `_` and `.` alike (PEP 503).
    """
    left = {_normal(name): (name, version) for name, version in packages.items()}
    found = []
    for line in requires:
        match = _NAME.fullmatch(line)
        named = left.pop(_normal(match[1]), None) if match else None
        if match is None or named is None:
            found.append(line)
            continue
        marker = f" {match[3]}" if match[3] else ""
        found.append(f"{match[1]}{match[2] or ''}=={named[1]}{marker}")
    found += [f"{name}=={version}" for name, version in left.values()]
    return tuple(sorted(found))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(line: str) -> str:
    """Return the normalized name of the package that a requirement is about; empty for what is none."""
    match = _NAME.fullmatch(line)
    return _normal(match[1]) if match else ""


def without_pin(line: str) -> str:
    """Return a requirement for any version, its extras and markers kept."""
    match = _NAME.fullmatch(line)
    if match is None:
        return line
    return f"{match[1]}{match[2] or ''}{' ' + match[3] if match[3] else ''}"


FOLDER = Path(__file__).parent / "locks"
OLDEST = (3, 11)
"""The oldest Python the locks are resolved for; that of velodrome itself."""
_PINNED = re.compile(r"([a-z0-9][a-z0-9-]*)==([^ ;\\]+)")
_HASH = re.compile(r"\s+--hash=(sha256:[0-9a-f]{64})")


def path_of(requires: tuple[str, ...]) -> Path:
    """Return where the lock of a set of requirements is, whether it is there or not."""
    names = "+".join(re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0].lower() for line in requires)
    digest = hashlib.sha256("\n".join(requires).encode()).hexdigest()[:8]
    return FOLDER / f"{names[:80]}-{digest}.txt"


def covering(requires: tuple[str, ...], python: tuple[int, int]) -> Path | None:
    """Return the lock for a set of requirements on a Python, or None: it has to be resolved anew."""
    path = path_of(requires)
    return path if requires and python >= OLDEST and path.is_file() else None


@functools.cache
def hashes() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return the hashes of all files of every package and version that any lock which ships names."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for path in FOLDER.glob("*.txt"):
        package = ("", "")
        for line in path.read_text().splitlines():
            if match := _PINNED.match(line):
                package = (match[1], match[2])
            elif match := _HASH.match(line):
                found.setdefault(package, {})[match[1]] = None
    return {package: tuple(every) for package, every in found.items()}


def requirement_sets(raced: Iterable[tuple[Stack, Recipe]] = ()) -> list[tuple[str, ...]]:
    """Return the distinct sets of requirements of what ships, sorted.

    That is the stacks, the clients that make databases ready, and the stacks that are `raced` on recipes.
    """
    shipped = [entry.thing for entry in plugins.shipped_plugins(catalog.STACK) if not entry.error]
    preparers = [tuple(sorted(entry.requires)) for entry in client.clients().values() if entry.prepare]
    stacks = [catalog.requires(stack) for stack in shipped]
    return sorted({*stacks, *preparers, *(catalog.requires(*pair) for pair in raced)} - {()})


def renew(sets: Iterable[tuple[str, ...]], folder: Path = FOLDER) -> list[str]:
    """Write the lock of each set, remove those nobody wants, and return uv's message where it failed."""
    every = list(sets)
    problems = write(every, folder)
    for old in set(folder.glob("*.txt")) - {folder / path_of(requires).name for requires in every}:
        old.unlink()
    return problems


def write(sets: Iterable[tuple[str, ...]], folder: Path = FOLDER) -> list[str]:
    """Write the lock of each set, and return uv's message where it failed."""
    folder.mkdir(exist_ok=True)
    problems = [_compile(requires, folder / path_of(requires).name) for requires in sets]
    return [problem for problem in problems if problem]


def _compile(requires: tuple[str, ...], target: Path) -> str:
    source = target.with_suffix(".in")
    source.write_text("".join(f"{line}\n" for line in requires))
    try:
        ended = run_uv(
            (
                "pip",
                "compile",
                "--quiet",
                "--universal",
                f"--python-version={OLDEST[0]}.{OLDEST[1]}",
                "--generate-hashes",
                "--no-header",
                "--no-annotate",
                "--upgrade",
                f"--output-file={target}",
                str(source),
            ),
            target.parent,
        )
    finally:
        source.unlink()
    return f"{' '.join(requires)}: {' '.join(ended.last_lines)}" if ended.returncode else ""


AS_PINNED: Mapping[str, str] = MappingProxyType({})
GUEST_PYTHON = (3, 7)
"""The oldest Python that guest code can be imported by."""
LAYOUT = 2
"""Raised when environments made by an older velodrome must not be used any more."""


@dataclass(frozen=True)
class Environment:
    """What a stack's server runs in."""

    python: Path
    """Its interpreter; nothing else of it needs to be known to start a server."""
    version: str
    """Full version of that Python, e.g. `3.11.7`."""
    packages: Mapping[str, str]
    """Version of every installed package, by name."""
    locked: bool
    """Whether every package was checked against the hashes of a lock that ships."""


def environment_for(
    stack: Stack,
    wanted_python: str | None = None,
    packages: Mapping[str, str] = AS_PINNED,
    served: Recipe | None = None,
) -> Environment:
    """Return the environment of a stack on an interpreter (None: velodrome's own), made if need be.

    `packages` are versions instead of those that stack and interface pin. For a recipe that asks databases the
    clients are in it as well. Where no lock covers the result, it is resolved anew. Safe to be called by many
    processes and threads at once. Raises EnvironmentFailedError, InterpreterNotFoundError or UvMissingError.
    """
    why = _cannot(stack, wanted_python, packages)
    if why is not None:
        raise EnvironmentFailedError(stack.name, *why)
    return _of(
        stack.name, with_versions(catalog.requires(stack, served), packages), find_interpreter(wanted_python)
    )


def for_client(client: Client) -> Environment:
    """Return the environment in which velodrome itself asks a database through a client, made if need be.

    Raises EnvironmentFailedError or UvMissingError.
    """
    return _of(f"the client {client.name}", tuple(sorted(client.requires)), find_interpreter(None))


def _of(whose: str, requires: tuple[str, ...], interpreter: Interpreter) -> Environment:
    locked = covering(requires, interpreter.minor)
    home = cache.folder("envs") / _key(requires, locked, interpreter)
    return keep(
        home,
        whose,
        _find_ready,
        lambda site: _make(site, home, requires, locked, interpreter),
    )


def available(stack: Stack, wanted_python: str | None = None) -> str | None:
    """Return why a stack cannot run here, with the cure, or None if it can. Installs nothing.

    None is no promise for a stack that has no environment yet: its packages may not be had.
    Raises InterpreterNotFoundError.
    """
    try:
        find_uv()
    except UvMissingError as error:
        return str(error)
    return cannot_run(stack, wanted_python) or _sentence(_failed_before(stack, wanted_python))


def cannot_run(stack: Stack, wanted_python: str | None = None) -> str | None:
    """Return why a stack cannot run on this system and interpreter, whatever is tried, or None.

    Raises InterpreterNotFoundError.
    """
    return _sentence(_cannot(stack, wanted_python))


def _sentence(why: tuple[str, str] | None) -> str | None:
    return f"{why[0]}. Cure: {why[1]}" if why else None


def _cannot(
    stack: Stack, wanted_python: str | None, packages: Mapping[str, str] = AS_PINNED
) -> tuple[str, str] | None:
    if sys.platform not in stack.systems:
        return f"it runs on {' and '.join(stack.systems)}, not on {sys.platform}", "another machine"
    there = facts.cpu_features()
    lacking = [feature for feature in stack.cpu_features if there is not None and feature not in there]
    if lacking:
        return f"its packages are compiled for CPUs with {' and '.join(lacking)}", "another machine"
    try:
        catalog.requires(stack)
    except plugins.NoSuchNameError as error:
        reason = f"cannot be loaded ({error.error})" if error.error else "does not exist"
        return f"its interface '{stack.interface}' {reason}", f"one of: {', '.join(error.known)}"
    interpreter = find_interpreter(wanted_python)
    # What a stack says is for the versions it pins; older versions ran on older interpreters.
    needed = GUEST_PYTHON if packages else stack.python
    if interpreter.minor < needed:
        oldest = ".".join(map(str, needed))
        return f"it needs Python {oldest} or newer, not {interpreter.version}", f"--python {oldest}"
    return None


def _failed_before(stack: Stack, wanted_python: str | None) -> tuple[str, str] | None:
    interpreter = find_interpreter(wanted_python)
    requires = catalog.requires(stack)
    key = _key(requires, covering(requires, interpreter.minor), interpreter)
    try:
        reason, cure = json.loads((cache.root() / "envs" / f"{key}.failed").read_text())
    except (NoHomeError, OSError, ValueError):
        return None
    return f"the last time, {reason}", f"{cure}. The next run tries again"


def _key(requires: tuple[str, ...], locked: Path | None, interpreter: Interpreter) -> str:
    text = locked.read_text() if locked else ""
    facts = [LAYOUT, requires, text, str(interpreter.path), interpreter.version, platform.machine()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _find_ready(home: Path) -> Environment | None:
    record = installing.read_record(home)
    if record is None:
        return None
    return Environment(installing.python_of(home), record["version"], record["packages"], record["locked"])


def _make(
    site: Site, home: Path, requires: tuple[str, ...], locked: Path | None, interpreter: Interpreter
) -> Mapping[str, Any]:
    failed = home.with_suffix(".failed")
    try:
        site.venv(interpreter)
        _install(site, requires, locked)
        packages = site.packages()
    except EnvironmentFailedError as error:
        with suppress(OSError):  # only a note for `velodrome stacks`; the disk may be what is full
            failed.write_text(json.dumps([error.reason, error.cure]))
        raise
    failed.unlink(missing_ok=True)
    return {
        "version": interpreter.version,
        "packages": packages,
        "locked": locked is not None,
        "requires": requires,
    }


def _install(site: Site, requires: tuple[str, ...], locked: Path | None) -> None:
    if not requires:
        return
    into = (site.python, "--compile-bytecode")
    if locked is not None:
        site.uv("pip", "sync", *into, "--require-hashes", str(locked))
        return
    # From a file: a requirement that begins with a dash must not become an option.
    wanted = site.folder / "requirements.txt"
    wanted.write_text("".join(f"{line}\n" for line in requires))
    site.uv("pip", "install", *into, "--requirements", str(wanted))


TURN_MODULE = "velodrome.guest.codegen.steps"
TIMES = 3
"""The fastest of so many processes counts: noise only adds."""
TURN_PATIENCE_S = 30.0


def turn_ns(environment: Environment, guest_tree: Path) -> str:
    """Return the nanoseconds of one turn, as text. Takes about half a second. Raises CalibrationError."""
    return min((_once(environment, guest_tree) for _ in range(TIMES)), key=float)


def _once(environment: Environment, guest_tree: Path) -> str:
    try:
        begun = python.guest(environment.python, guest_tree, TURN_MODULE, env={"PYTHONNOUSERSITE": "1"})
        answered = python.guest_answer(begun, TURN_PATIENCE_S)
        answered.check_returncode()
        printed = answered.stdout.strip()
        float(printed)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise CalibrationError(str(environment.python), str(error)) from error
    return printed


OVERLAY_LAYOUT = 2
"""Raised when overlays made by an older velodrome must not be used any more."""
_VERSION = re.compile(r"[0-9]+([.!+_-]?[0-9A-Za-z]+)*")
PTH = "import velodrome_overlay\n"
OVERLAY = '''"""Adds the folders that this environment lies over, and what their own .pth files name, in front of it."""

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
    missing = _missing_packages(stack, has)
    return keep(
        cache.folder("overlays") / _key_overlay(missing, has, allow_sdist),
        stack.name,
        lambda home: _find_overlay(home, has),
        lambda site: _make_overlay(stack, site, missing, has),
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


def _missing_packages(stack: Stack, has: Theirs) -> tuple[str, ...]:
    """Return what has to be installed: pinned, but for an interpreter that the pinned versions are too new for."""
    lacking = [line for line in stack.requires if name_of(line) not in has.packages]
    if has.interpreter.minor < stack.python:
        lacking = [without_pin(line) for line in lacking]
    return tuple(sorted(lacking))


def _key_overlay(missing: Sequence[str], has: Theirs, allow_sdist: bool) -> str:
    interpreter = has.interpreter
    facts = [
        OVERLAY_LAYOUT,
        allow_sdist,
        missing,
        str(interpreter.path),
        interpreter.version,
        has.folders,
        sorted(has.packages.items()),
        platform.machine(),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _find_overlay(home: Path, has: Theirs) -> Environment | None:
    record = installing.read_record(home)
    if record is None:
        return None
    packages = {**record["installed"], **has.packages}
    return Environment(
        installing.python_of(home), has.interpreter.version, dict(sorted(packages.items())), locked=False
    )


def _make_overlay(stack: Stack, site: Site, missing: Sequence[str], has: Theirs) -> Mapping[str, Any]:
    site.venv(has.interpreter)
    installed = _install_overlay(stack, site, missing, has) if missing else {}
    _lay_over(site.folder, has)
    known = hashes()
    unhashed = [f"{name}=={version}" for name, version in installed.items() if (name, version) not in known]
    if unhashed:
        tell(f"{stack.name}: installed without a hash to compare with: {', '.join(unhashed)}")
    return {"version": has.interpreter.version, "installed": installed, "unhashed": unhashed}


def _install_overlay(stack: Stack, site: Site, missing: Sequence[str], has: Theirs) -> dict[str, str]:
    """Install what is missing, and return the versions of it. Raises EnvironmentFailedError."""
    resolved = _resolve(stack, site, missing, has)
    lines = [line for line in resolved.splitlines() if name_of(line) and name_of(line) not in has.packages]
    chosen = {name_of(line): line.partition("==")[2].partition(";")[0].strip() for line in lines}
    known = hashes()
    file = site.folder / "chosen.txt"
    file.write_text(
        "".join(
            " ".join([line, *(f"--hash={digest}" for digest in known.get((name, version), ()))]) + "\n"
            for line, (name, version) in zip(lines, chosen.items(), strict=True)
        )
    )
    # Hashes that are there are compared in any case; so none may be missing.
    strictly = ("--require-hashes",) if all(pin in known for pin in chosen.items()) else ()
    how = (site.python, "--compile-bytecode", "--no-deps", *_ready_made(site), *strictly)
    site.uv("pip", "install", *how, "--requirements", str(file))
    return chosen


def _ready_made(site: Site) -> tuple[str, ...]:
    return () if site.builds else ("--only-binary=:all:",)


def _resolve(stack: Stack, site: Site, missing: Sequence[str], has: Theirs) -> str:
    """Return what is missing with all it needs, a version each: those that are pinned, or where these do not go with
    what is there, others that do. Raises EnvironmentFailedError.
    """
    theirs = [f"{name}=={version}" for name, version in has.packages.items() if _VERSION.fullmatch(version)]
    try:
        return _compile_requirements(site, missing, theirs, _ready_made(site))
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
            _compile_requirements(site, [without_pin(line) for line in missing], [*theirs, *least], how)
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


def _compile_requirements(
    site: Site, wanted: Sequence[str], bounds: Sequence[str], how: Sequence[str]
) -> str:
    # From files: a requirement that begins with a dash must not become an option.
    requirements, bound = site.folder / "wanted.txt", site.folder / "bounds.txt"
    requirements.write_text("".join(f"{line}\n" for line in wanted))
    bound.write_text("".join(f"{line}\n" for line in bounds))
    plain = ("--no-header", "--no-annotate")
    return site.uv("pip", "compile", *plain, site.python, *how, f"--constraints={bound}", str(requirements))


def _lay_over(home: Path, has: Theirs) -> None:
    packages = next((home / "lib").glob("*/site-packages"))
    (packages / "velodrome_overlay.py").write_text(OVERLAY.format(folders=list(has.folders)))
    (packages / "velodrome_overlay.pth").write_text(PTH)

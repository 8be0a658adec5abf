"""Environments: for each set of requirements and interpreter an environment of its own, made once by uv.

    <cache>/envs/<hash>/bin/python        velodrome.json beside it says what is in it, and that it is whole
    <cache>/envs/<hash>.failed            why it could not be made the last time

Stacks with the same requirements share one. What the hashed locks (`locks/`) cover is installed from
them, the rest (third parties' stacks, older interpreters) is resolved anew from the pinned requirements.
"""

import hashlib
import json
import platform
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from velodrome.guest import catalog, plugins
from velodrome.guest.client import Client
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack
from velodrome.model.errors import EnvironmentFailedError, NoHomeError, UvMissingError
from velodrome.run import cache
from velodrome.run.environments import lock, record
from velodrome.run.environments.installing import Site, kept
from velodrome.run.environments.interpreter import Interpreter, find
from velodrome.run.environments.requirements import with_versions
from velodrome.run.environments.uv import find_uv

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
    asked: str | None = None,
    packages: Mapping[str, str] = AS_PINNED,
    served: Recipe | None = None,
) -> Environment:
    """Return the environment of a stack on an interpreter (None: velodrome's own), made if need be.

    `packages` are versions instead of those that stack and interface pin. For a recipe that asks databases the
    clients are in it as well. Where no lock covers the result, it is resolved anew. Safe to be called by many
    processes and threads at once. Raises EnvironmentFailedError, InterpreterNotFoundError or UvMissingError.
    """
    why = _cannot(stack, asked, packages)
    if why is not None:
        raise EnvironmentFailedError(stack.name, *why)
    return _of(stack.name, with_versions(catalog.requires(stack, served), packages), find(asked))


def for_client(client: Client) -> Environment:
    """Return the environment in which velodrome itself asks a database through a client, made if need be.

    Raises EnvironmentFailedError or UvMissingError.
    """
    return _of(f"the client {client.name}", tuple(sorted(client.requires)), find(None))


def _of(whose: str, requires: tuple[str, ...], interpreter: Interpreter) -> Environment:
    locked = lock.covering(requires, interpreter.minor)
    home = cache.folder("envs") / _key(requires, locked, interpreter)
    return kept(
        home,
        whose,
        _ready,
        lambda site: _make(site, home, requires, locked, interpreter),
    )


def available(stack: Stack, asked: str | None = None) -> str | None:
    """Return why a stack cannot run here, with the cure, or None if it can. Installs nothing.

    None is no promise for a stack that has no environment yet: its packages may not be had.
    Raises InterpreterNotFoundError.
    """
    try:
        find_uv()
    except UvMissingError as error:
        return str(error)
    return cannot_run(stack, asked) or _sentence(_failed_before(stack, asked))


def cannot_run(stack: Stack, asked: str | None = None) -> str | None:
    """Return why a stack cannot run on this system and interpreter, whatever is tried, or None.

    Raises InterpreterNotFoundError.
    """
    return _sentence(_cannot(stack, asked))


def _sentence(why: tuple[str, str] | None) -> str | None:
    return f"{why[0]}. Cure: {why[1]}" if why else None


def _cannot(
    stack: Stack, asked: str | None, packages: Mapping[str, str] = AS_PINNED
) -> tuple[str, str] | None:
    if sys.platform not in stack.systems:
        return f"it runs on {' and '.join(stack.systems)}, not on {sys.platform}", "another machine"
    try:
        catalog.requires(stack)
    except plugins.NoSuchNameError as error:
        reason = f"cannot be loaded ({error.error})" if error.error else "does not exist"
        return f"its interface '{stack.interface}' {reason}", f"one of: {', '.join(error.known)}"
    interpreter = find(asked)
    # What a stack says is for the versions it pins; older ones ran on older interpreters.
    needed = GUEST_PYTHON if packages else stack.python
    if interpreter.minor < needed:
        oldest = ".".join(map(str, needed))
        return f"it needs Python {oldest} or newer, not {interpreter.version}", f"--python {oldest}"
    return None


def _failed_before(stack: Stack, asked: str | None) -> tuple[str, str] | None:
    interpreter = find(asked)
    requires = catalog.requires(stack)
    key = _key(requires, lock.covering(requires, interpreter.minor), interpreter)
    try:
        reason, cure = json.loads((cache.root() / "envs" / f"{key}.failed").read_text())
    except (NoHomeError, OSError, ValueError):
        return None
    return f"the last time, {reason}", f"{cure}. The next run tries again"


def _key(requires: tuple[str, ...], locked: Path | None, interpreter: Interpreter) -> str:
    text = locked.read_text() if locked else ""
    facts = [LAYOUT, requires, text, str(interpreter.path), interpreter.version, platform.machine()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _ready(home: Path) -> Environment | None:
    told = record.read(home)
    if told is None:
        return None
    return Environment(record.python(home), told["version"], told["packages"], told["locked"])


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

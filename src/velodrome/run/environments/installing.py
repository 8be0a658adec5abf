"""Environments made by uv: each by one velodrome at a time, beside its place, and put there when it is whole.

    <cache>/envs/<hash>                    an environment: there and whole, or not there
    <cache>/envs/.building-<hash>-…        one that is being made, or was when its velodrome was killed
    <cache>/envs/<hash>.lock               held by whoever makes it, and by its uv; others wait

The lock goes to uv and all that uv starts, so it outlives a velodrome that is killed for as long as they live.
"""

import json
import os
import pwd
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from velodrome.model import quantity
from velodrome.model.errors import EnvironmentFailedError
from velodrome.run import cache
from velodrome.run.account import hand_over, take_back
from velodrome.run.environments import record
from velodrome.run.environments.interpreter import Interpreter
from velodrome.run.environments.uv import LIMIT, limit_s, run_uv

POLL_S = 0.05
SOON_S = 0.25
"""Of a wait that is not worth saying: somebody looks whether the lock is held."""
Found = TypeVar("Found")
Tell = Callable[[str], None]


def _on_stderr(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


_tell: ContextVar[Tell] = ContextVar("tell", default=_on_stderr)


@contextmanager
def telling(whom: Tell) -> Iterator[None]:
    """Have what takes time here told to someone in this thread, instead of on standard error."""
    token = _tell.set(whom)
    try:
        yield
    finally:
        _tell.reset(token)


def tell(sentence: str) -> None:
    """Say something to whoever is told in this thread what takes time."""
    _tell.get()(sentence)


@dataclass(frozen=True)
class Site:
    """Where one environment is being made."""

    whose: str
    folder: Path
    lock: int
    """File descriptor of the lock."""
    builds: bool = True
    """Whether packages may be built from source."""

    def venv(self, interpreter: Interpreter) -> None:
        """Make an empty environment of it, which can be moved. Raises EnvironmentFailedError."""
        how = ("--no-project", "--relocatable", "--clear", f"--python={interpreter.path}")
        self.uv("venv", *how, str(self.folder))

    @property
    def python(self) -> str:
        """The option that tells uv which environment is meant."""
        return f"--python={record.python(self.folder)}"

    def uv(self, *arguments: str) -> str:
        """Run uv and return what it said. Raises EnvironmentFailedError with its last lines and a cure."""
        said = run_uv(arguments, self.folder.parent, builds=self.builds, keeps=(self.lock,))
        if said.returncode is None:
            at = f"building {' and '.join(said.built)}" if said.built else "at work on its packages"
            reason = f"uv was still {at} after {quantity.duration(limit_s())}, its limit, and was ended"
            cure = f"see what it waits for, or give it more time: {LIMIT}=2h"
            raise EnvironmentFailedError(self.whose, reason, cure, said.last_lines)
        if said.returncode != 0:
            reason = "its packages could not be installed"
            cure = _cure(said.stderr)
            if cure == SOURCES and self.builds:
                cure = FORBIDDEN
            raise EnvironmentFailedError(self.whose, reason, cure, said.last_lines)
        return said.stdout

    def packages(self) -> dict[str, str]:
        """Return the version of every package in it, by name. Raises EnvironmentFailedError."""
        said = self.uv("pip", "list", "--format=json", self.python)
        return {package["name"]: package["version"] for package in json.loads(said)}


def kept(
    home: Path,
    whose: str,
    ready: Callable[[Path], Found | None],
    make: Callable[[Site], Mapping[str, Any]],
    *,
    builds: bool = True,
    beside: str = "",
) -> Found:
    """Return what is `ready` at `home`, made if need be, and kept from being pruned while this process lives.

    `whose` names the stack or client, `beside` the app that it is made for. `make` fills the folder of a site and
    returns what its record says. Of many that want it one makes it, in any process or thread. Raises
    EnvironmentFailedError.
    """
    cache.use(home, f"{whose} beside {beside}" if beside else whose)
    found = ready(home)
    if found is not None:
        return found
    try:
        with _held(home.with_suffix(".lock"), whose) as lock:
            found = ready(home)
            if found is not None:
                return found
            if why := record.damage(home):
                tell(f"{whose} is installed again: {why}")
            _make(home, whose, lock, make, builds)
    except OSError as error:
        reason = f"its environment could not be written: {error.strerror or error} ({error.filename or home.parent})"
        cure = f"free some space, or set {cache.VARIABLE} to a folder you may write to"
        raise EnvironmentFailedError(whose, reason, cure) from error
    found = ready(home)
    if found is None:  # somebody writes to it
        reason = f"its environment does not stay as it was made: {record.damage(home) or 'it was removed'}"
        raise EnvironmentFailedError(whose, reason, f"see who else writes to {home.parent}")
    return found


def _make(home: Path, whose: str, lock: int, make: Callable[[Site], Mapping[str, Any]], builds: bool) -> None:
    for left in (*home.parent.glob(f".building-{home.name}-*"), *home.parent.glob(f".old-{home.name}-*")):
        shutil.rmtree(left, ignore_errors=True)  # of one that was killed: nobody else makes this now
    site = Site(whose, home.with_name(f".building-{home.name}-{secrets.token_hex(4)}"), lock, builds)
    site.folder.mkdir()
    hand_over(site.folder)
    try:
        told = make(site)
        take_back(site.folder)  # what it was recorded with, no app changes
        record.write(site.folder, {**told, "whose": whose})
        if home.exists():
            old = home.with_name(f".old-{home.name}-{secrets.token_hex(4)}")
            home.rename(old)
            site.folder.rename(home)
            shutil.rmtree(old, ignore_errors=True)
        else:
            site.folder.rename(home)
        record.sync_folder(home.parent)
    finally:
        shutil.rmtree(site.folder, ignore_errors=True)


@contextmanager
def _held(path: Path, whose: str) -> Iterator[int]:
    """Keep others from making the same environment; wait for one that does, and say for whom."""
    began = time.monotonic()
    told = ""
    while (number := cache.locked(path)) is None:
        holder = _holder(path)
        waited = time.monotonic() - began
        if holder and holder != told and waited > SOON_S:
            told = holder
            tell(f"waiting for {holder}")
        if waited > limit_s():
            reason = (
                f"after {quantity.duration(waited)} it is still waiting for {holder or 'another velodrome'}"
            )
            cure = f"end that process, or give it more time: {LIMIT}=2h"
            raise EnvironmentFailedError(whose, reason, cure)
        time.sleep(POLL_S)
    try:
        os.ftruncate(number, 0)
        os.pwrite(number, json.dumps([os.getpid(), _user(), whose]).encode(), 0)
        yield number
        os.ftruncate(number, 0)
    finally:
        os.close(number)


def _holder(path: Path) -> str:
    try:
        process, user, whose = json.loads(path.read_bytes())
    except (OSError, ValueError, TypeError):
        return ""  # it has just begun
    return f"process {process} of {user}, which installs what {whose} needs"


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"


def unsolvable(error: EnvironmentFailedError) -> bool:
    """Return whether there are no versions that go together: the words that say so may be far from uv's last."""
    return error.cure in (UNSOLVABLE, SOURCES, FORBIDDEN)


UNSOLVABLE = "correct the stack's requires, or choose another interpreter"
SOURCES = "--allow-sdist, which runs the build code of these packages on this machine"
"""Where a package, or the version asked for, is to be had as source only."""
FORBIDDEN = "let uv build packages: its own settings forbid it (no-build)"
_INDEX = "see that the package index can be reached; uv's own settings name another one (UV_DEFAULT_INDEX)"
CURES = (
    (
        "MYSQLCLIENT_CFLAGS",
        "install what it is built with (Debian: apt install libmariadb-dev pkg-config gcc)",
    ),
    ("No space left on device", f"free some space, or set {cache.VARIABLE} to a folder elsewhere"),
    ("Resource temporarily unavailable", "allow more processes and threads (ulimit -u)"),
    ("Too many open files", "allow more open files (ulimit -n 4096)"),
    ("Permission denied", f"set {cache.VARIABLE} to a folder you may write to"),
    ("error sending request", _INDEX),
    ("Failed to fetch", _INDEX),
    ("building from source is disabled", SOURCES),
    ("No solution found", UNSOLVABLE),
    (
        "Hash mismatch",
        "the package index offers other files than velodrome's lock names; use an index that has those of PyPI",
    ),
    (
        "Failed to build",
        "install what the package needs to be built, or choose an interpreter it has a wheel for",
    ),
)


def _cure(said: str) -> str:
    for sign, cure in CURES:
        if sign in said:
            return cure
    return "what uv says above; then run again"

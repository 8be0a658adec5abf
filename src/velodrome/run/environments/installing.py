"""How uv makes environments: each by one velodrome at a time, beside its place, and put there when it is whole.

    <cache>/envs/<hash>                    an environment: there and whole, or not there
    <cache>/envs/<hash>/velodrome.json     its record, written last, when all else is on the disk
    <cache>/envs/.building-<hash>-…        an environment that is being made, or was when its velodrome was killed
    <cache>/envs/<hash>.lock               held by whoever makes it, and by its uv; others wait

The lock goes to uv and all that uv starts, so it outlives a velodrome that is killed for as long as they live. uv sees
nothing of the user's environment but what it needs.

The record lists every file with size, time of change and hash. Sizes and times are compared at each use (4 to 10 µs a
file); `velodrome cache verify` compares the hashes too. Files that came later, such as bytecode of another
optimization, are no damage.
"""

import ctypes
import hashlib
import json
import os
import pwd
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar

from velodrome.model import amounts, quantity
from velodrome.model.errors import AccountError, BadOptionError, EnvironmentFailedError
from velodrome.run import cache
from velodrome.run.account import acting, hand_over, take_back
from velodrome.run.environments.interpreter import Interpreter, find_uv
from velodrome.run.supervision.ward import Order, Ward

LAST_LINES = 200
"""Of what uv says on standard error: more than it ever tells about one failure."""
SHOWN_LINES = 6
LOG = "uv_distribution::source=debug"
"""What uv is to log: which source package it is at. A build tells its name else only in its second half."""
LOGGED = "DEBUG "
BEGINS = ("Preparing metadata for:", "Building:", "Building")
ENDS = ("Prepared metadata for:", "Finished building:", "Built")
LIMIT = "VELODROME_INSTALL_LIMIT"
"""Environment variable: how long one run of uv may take, such as `45m`."""
LONGEST_S = 1800.0
"""The limit where none is set. Large packages are built from source for ten minutes; a build that asks a question
on its terminal waits for ever.
"""

SEEN = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "TZ", "LANG", "LANGUAGE", "TMPDIR", "TMP", "TEMP", "NETRC"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"),
        *("NIX_LD", "NIX_LD_LIBRARY_PATH", "NIX_SSL_CERT_FILE"),
    }
)
"""What uv is given of our environment, with all of `SEEN_BEGIN`: where things are, how to reach the index, and uv's
own settings, which may hold the credentials of an index.
"""
SEEN_BEGIN = ("LC_", "XDG_", "UV_")
UNSEEN = frozenset(
    {
        *("UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_PROJECT", "UV_PROJECT_ENVIRONMENT", "UV_WORKING_DIR"),
        *("UV_WORKING_DIRECTORY", "UV_ENV_FILE", "UV_TARGET", "UV_PREFIX"),
        *("UV_NO_VERIFY_HASHES", "UV_VENV_SEED", "UV_VENV_CLEAR", "UV_PUBLISH_TOKEN"),
        *("UV_PUBLISH_PASSWORD", "UV_PUBLISH_USERNAME"),
    }
)
"""Settings of uv that would lead it to other environments than ours, or that are for something else."""
BUILDS = frozenset(
    {
        *("CC", "CXX", "CPP", "AR", "AS", "LD", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "ARCHFLAGS"),
        *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "PKG_CONFIG", "MAKEFLAGS"),
        *("CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "CARGO_BUILD_JOBS"),
        *("MACOSX_DEPLOYMENT_TARGET", "SDKROOT", "DEVELOPER_DIR", "SOURCE_DATE_EPOCH"),
        *("MYSQLCLIENT_CFLAGS", "MYSQLCLIENT_LDFLAGS"),
    }
)
"""What compilers read, with all of `BUILDS_BEGIN`: given where packages may be built."""
BUILDS_BEGIN = ("PKG_CONFIG_", "CMAKE_")


@dataclass(frozen=True)
class UvResult:
    """How uv ended, and what it printed."""

    returncode: int | None
    """None: it did not end in time, and was ended."""
    stdout: str
    stderr: str
    """Its last lines."""

    @property
    def built(self) -> tuple[str, ...]:
        """What it was building when it ended, as `mysqlclient==2.2.8`."""
        at: dict[str, None] = {}
        for line in self.stderr.splitlines():
            verb, _, package = line.strip().removeprefix(LOGGED).rpartition(" ")
            if verb in BEGINS:
                at[package] = None
            elif verb in ENDS:
                at.pop(package, None)
        return tuple(at)

    @property
    def last_lines(self) -> tuple[str, ...]:
        """What a person is to read of it."""
        lines = [line for line in self.stderr.splitlines() if line.strip() and not line.startswith(LOGGED)]
        return tuple(lines[-SHOWN_LINES:])


def installer_environment(builds: bool) -> dict[str, str]:
    """Return what uv sees of this process's environment: no variable that is not for it, which may be a secret.

    `builds`: whether it may build packages, whose build code sees the same.
    """
    names = SEEN | BUILDS if builds else SEEN
    begin = (*SEEN_BEGIN, *BUILDS_BEGIN) if builds else SEEN_BEGIN
    found = {
        key: value
        for key, value in os.environ.items()
        if (key in names or key.startswith(begin)) and key not in UNSEEN
    }
    account = acting()
    if account is None:
        return found
    # Folders of root's own are closed to them; a copy can become root's, a link into their cache cannot.
    theirs = {key: value for key, value in found.items() if not key.startswith(("XDG_", "UV_CACHE_DIR"))}
    cache = {} if os.path.isdir(account.home) else {"UV_NO_CACHE": "1"}
    return {**theirs, **account.variables, "UV_LINK_MODE": "copy", **cache}


def limit_s() -> float:
    """Return how long one run of uv may take. Raises BadOptionError for a limit that cannot be read."""
    text = os.environ.get(LIMIT)
    if not text:
        return LONGEST_S
    try:
        return amounts.seconds(text)
    except ValueError as error:
        raise BadOptionError(LIMIT, text, str(error)) from error


def run_uv(
    arguments: Sequence[str], cwd: Path, *, builds: bool = True, keeps: Sequence[int] = ()
) -> UvResult:
    """Run uv and return what it printed; the caller judges the exit status. Ends when velodrome does.

    `cwd` is a folder of velodrome's own, so that no project file near the user's decides what uv does;
    the user's own configuration of uv (mirrors, certificates) counts. `builds`: whether packages may be built.
    `keeps` are file descriptors that stay open as long as anything of it lives. Raises BadOptionError.
    """
    longest_s = limit_s()
    program, account = find_uv(), acting()
    if account is not None and (closed := account.first_closed(program)):
        cure = "install velodrome where that user can read it, or name another user with --user"
        raise AccountError(
            account.name, f"{program}, which installs servers, lies in {closed}, closed to them", cure
        )
    argv = (program, "--no-progress", "--color=never", *arguments)
    order = Order(argv, installer_environment(builds) | {"RUST_LOG": LOG}, str(cwd), user=account)
    with TemporaryFile() as output, Ward(order, output.fileno(), keeps) as ward:
        ended = ward.wait(longest_s)
        ward.stop(0.0 if ended is None else 10.0)
        output.seek(0)
        out = output.read().decode(errors="replace")
        return UvResult(ended.code if ended else None, out, "\n".join(ward.tail.lines(LAST_LINES)))


RECORD = "velodrome.json"
FILES = "files"
Files = dict[str, list[Any]]
"""Path in the environment to size in bytes, time of change in ns and SHA-256; of a link, to where it leads."""


def python_of(home: Path) -> Path:
    """Return the interpreter of an environment."""
    return home / "bin" / "python"


def read_record(home: Path) -> dict[str, Any] | None:
    """Return the record of a whole environment; None: it is not there, not whole, or its interpreter is gone."""
    record = record_of(home)
    if record is None or not os.access(python_of(home), os.X_OK):
        return None
    return record if next(differences(home, record), None) is None else None


def record_of(home: Path) -> dict[str, Any] | None:
    """Return what an environment says of itself, whether that is still so or not."""
    try:
        record = json.loads((home / RECORD).read_bytes())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get(FILES), dict) else None


def damage(home: Path) -> str:
    """Return why an environment that is there cannot be used; empty: it can, or there is none."""
    record = record_of(home)
    if record is None:
        return f"it has no readable {RECORD}" if home.exists() else ""
    if not os.access(python_of(home), os.X_OK):
        return "the interpreter it was made of is gone"
    return next(differences(home, record), "")


def differences(home: Path, record: Mapping[str, Any], hashes: bool = False) -> Iterator[str]:
    """Yield each file that is not as the record says, with what differs; `hashes`: read them all."""
    for name, was in record[FILES].items():
        path = f"{home}/{name}"
        try:
            found = os.lstat(path)
            if len(was) == 1:
                if not stat.S_ISLNK(found.st_mode) or os.readlink(path) != was[0] or not os.path.exists(path):
                    yield f"{name} does not lead to {was[0]} any more"
            elif found.st_size != was[0]:
                yield f"{name} has {found.st_size} bytes instead of {was[0]}"
            elif found.st_mtime_ns != was[1]:
                yield f"{name} was changed"
            elif hashes and _hash(path) != was[2]:
                yield f"{name} has other content"
        except FileNotFoundError:
            yield f"{name} is missing"
        except OSError as error:
            yield f"{name} cannot be read: {error.strerror}"


def write_record(home: Path, record: Mapping[str, Any]) -> None:
    """Call an environment whole, and say what is in it: after this, a power cut takes nothing of it. Raises OSError."""
    whole = json.dumps({**record, FILES: _files(home)})
    sync(home)  # before there is a record that says they are whole
    with open(home / RECORD, "w", encoding="utf-8") as file:
        file.write(whole)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(home)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk. Raises OSError."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sync(folder: Path) -> None:
    """Have all that was written to a folder's file system on its disk: a sync of each of 6 000 files may take minutes.

    Raises OSError.
    """
    if sys.platform != "linux":
        os.sync()
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(number) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(number)


def _files(home: Path) -> Files:
    found: Files = {}
    folders = [""]
    while folders:
        folder = folders.pop()
        with os.scandir(home / folder) as entries:
            for entry in entries:
                name = f"{folder}{entry.name}"
                if entry.is_symlink():
                    found[name] = [os.readlink(entry.path)]
                elif entry.is_dir():
                    folders.append(f"{name}/")
                elif name != RECORD:
                    seen = entry.stat()
                    found[name] = [seen.st_size, seen.st_mtime_ns, _hash(entry.path)]
    return found


def _hash(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    """Have notices of what takes time here sent to `whom` in this thread, instead of on standard error."""
    token = _tell.set(whom)
    try:
        yield
    finally:
        _tell.reset(token)


def tell(sentence: str) -> None:
    """Say something to whoever follows in this thread what takes time."""
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
        return f"--python={python_of(self.folder)}"

    def uv(self, *arguments: str) -> str:
        """Run uv and return what it printed. Raises EnvironmentFailedError with its last lines and a cure."""
        ended = run_uv(arguments, self.folder.parent, builds=self.builds, keeps=(self.lock,))
        if ended.returncode is None:
            at = f"building {' and '.join(ended.built)}" if ended.built else "at work on its packages"
            reason = f"uv was still {at} after {quantity.duration(limit_s())}, its limit, and was ended"
            cure = f"see what it waits for, or give it more time: {LIMIT}=2h"
            raise EnvironmentFailedError(self.whose, reason, cure, ended.last_lines)
        if ended.returncode != 0:
            reason = "its packages could not be installed"
            cure = _cure(ended.stderr)
            if cure == SOURCES and self.builds:
                cure = FORBIDDEN
            raise EnvironmentFailedError(self.whose, reason, cure, ended.last_lines)
        return ended.stdout

    def packages(self) -> dict[str, str]:
        """Return the version of every package in it, by name. Raises EnvironmentFailedError."""
        listing = self.uv("pip", "list", "--format=json", self.python)
        return {package["name"]: package["version"] for package in json.loads(listing)}


def keep(
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
    returns what its record says. Of many that want it a single one makes it, in any process or thread. Raises
    EnvironmentFailedError.
    """
    cache.use(home, f"{whose} beside {beside}" if beside else whose)
    found = ready(home)
    if found is not None:
        return found
    try:
        with _lock_environment(home.with_suffix(".lock"), whose) as lock:
            found = ready(home)
            if found is not None:
                return found
            if why := damage(home):
                tell(f"{whose} is installed again: {why}")
            _make(home, whose, lock, make, builds)
    except OSError as error:
        reason = f"its environment could not be written: {error.strerror or error} ({error.filename or home.parent})"
        cure = f"free some space, or set {cache.VARIABLE} to a folder you may write to"
        raise EnvironmentFailedError(whose, reason, cure) from error
    found = ready(home)
    if found is None:  # somebody writes to it
        reason = f"its environment does not stay as it was made: {damage(home) or 'it was removed'}"
        raise EnvironmentFailedError(whose, reason, f"see who else writes to {home.parent}")
    return found


def _make(home: Path, whose: str, lock: int, make: Callable[[Site], Mapping[str, Any]], builds: bool) -> None:
    for left in (*home.parent.glob(f".building-{home.name}-*"), *home.parent.glob(f".old-{home.name}-*")):
        shutil.rmtree(left, ignore_errors=True)  # of a velodrome that was killed: nobody else makes this now
    site = Site(whose, home.with_name(f".building-{home.name}-{secrets.token_hex(4)}"), lock, builds)
    site.folder.mkdir()
    hand_over(site.folder)
    try:
        facts = make(site)
        take_back(site.folder)  # what it was recorded with, no app changes
        write_record(site.folder, {**facts, "whose": whose})
        if home.exists():
            old = home.with_name(f".old-{home.name}-{secrets.token_hex(4)}")
            home.rename(old)
            site.folder.rename(home)
            shutil.rmtree(old, ignore_errors=True)
        else:
            site.folder.rename(home)
        sync_folder(home.parent)
    finally:
        shutil.rmtree(site.folder, ignore_errors=True)


@contextmanager
def _lock_environment(path: Path, whose: str) -> Iterator[int]:
    """Keep others from making the same environment; wait for a process that does, and say for whom."""
    began = time.monotonic()
    named = ""
    while (number := cache.lock_file(path)) is None:
        holder = _holder(path)
        waited = time.monotonic() - began
        if holder and holder != named and waited > SOON_S:
            named = holder
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
"""Where a package, or the requested version, is to be had as source only."""
FORBIDDEN = "let uv build packages: its own settings forbid it (no-build)"
_INDEX = "see that the package index can be reached; uv's own settings name another index (UV_DEFAULT_INDEX)"
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


def _cure(errors: str) -> str:
    for sign, cure in CURES:
        if sign in errors:
            return cure
    return "what uv says above; then run again"

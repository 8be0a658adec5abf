"""What a study may name on this installation, and what the user has allowed it to name.

What was allowed is remembered by its hash: whatever changes is asked for again.
"""

import fcntl
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.model.files import Deed, Named
from velodrome.model.study import Study
from velodrome.plan import untrusted
from velodrome.run import cache
from velodrome.run.drivers import driver
from velodrome.run.experiments import experiment as experiments

if TYPE_CHECKING:
    from velodrome.plan.findings import Known


def list_known(stacks: Mapping[str, Stack] | None = None) -> "Known":
    """Return all there is: stacks (those given, else those that ship), recipes, drivers, kinds of experiment."""
    from velodrome.plan.findings import Known  # noqa: PLC0415 - see load_study

    every = catalog.stacks() if stacks is None else stacks
    return Known(every, catalog.recipes(), driver.driver_names(), experiments.settings())


def load_study(name: str, *, quick: bool, stacks: Mapping[str, Stack] | None = None) -> Study:
    """Read a study that ships, or a file at a path, in its full or quick form.

    Raises UnknownNameError, StudyFileError.
    """
    # Most commands lay a study out themselves, and to import what reads its file takes a tenth of their start.
    from velodrome.plan import study_file  # noqa: PLC0415

    return study_file.load_study(name, list_known(stacks), quick=quick)


Ask = Callable[[str, Sequence[Named]], bool]
"""Asks the user about what the file at a path names; returns whether it is allowed."""


class Trust:
    """Decides; `given`: the user has allowed all that is named. Without `ask` nobody can decide."""

    def __init__(self, *, given: bool, ask: Ask | None, say: Callable[[str], None]) -> None:
        self._given, self._ask = given, ask
        self._trusted = Trusted(say)

    def see(self, path: str, things: Sequence[Named]) -> None:
        """Return when all that the file at `path` names is allowed. Raises UntrustedError, CacheError."""
        unknown = self._trusted.unknown(things, path)
        if not unknown:
            return
        if not self._given and (self._ask is None or not self._ask(path, unknown)):
            untrusted.refuse(path, unknown)
        self._trusted.remember(unknown, path)

    def see_study(self, name: str, study: Study) -> None:
        """Do so with what a study names that was found by a name or a path: a study that ships is trusted."""
        from velodrome.plan import study_file  # noqa: PLC0415 - see load_study

        path = study_file.find_study(name)
        if not path.resolve().is_relative_to(study_file.studies_folder().resolve()):
            self.see(str(path), untrusted.of_study(study))


NAME = "trusted.json"
SCHEMA = "velodrome-trusted/1"
MOST = 1_000
"""Hashes; the oldest go first."""
MOST_BYTES = 200_000
RUN_AT_START = ("*.pth", "sitecustomize.py", "usercustomize.py")
"""Files of an environment that its interpreter runs whatever it was started for."""


class Trusted:
    """The hashes of what was allowed. `say` is called with why they cannot be read or written, where that is so."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._now: set[str] = set()
        """Allowed by this process; holds also where nothing can be written."""

    def unknown(self, named: Sequence[Named], by: str) -> tuple[Named, ...]:
        """Return what of the things that the file `by` names was not allowed yet. Raises CacheError."""
        if not named:
            return ()
        known = self._now.union(self._stored())
        return tuple(thing for thing in named if fingerprint(thing, by) not in known)

    def remember(self, named: Sequence[Named], by: str) -> None:
        """Note what was allowed. Where that cannot be written it holds for this process. Raises CacheError."""
        found = [mark for thing in named if (mark := fingerprint(thing, by)) is not None]
        self._now.update(found)
        folder = cache.folder("trust")
        try:
            with _alone(folder):
                kept = [stored for stored in self._stored() if stored not in found]
                self._write(folder, [*kept, *found][-MOST:])
        except OSError as error:
            self._say(f"{folder / NAME} cannot be written ({error.strerror}), so velodrome will ask again")

    def _stored(self) -> list[str]:
        """Return the hashes of the file, the oldest first; none where it is not what velodrome wrote for this user."""
        path = cache.folder("trust") / NAME
        try:
            number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        except OSError as error:
            self._say(f"{path} cannot be read ({error.strerror}), so nothing counts as allowed before")
            return []
        with open(number, "rb") as file:
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
                self._say(f"{path} could be written by others, so nothing counts as allowed before")
                return []
            text = file.read(MOST_BYTES + 1)
        try:
            plain = json.loads(text) if len(text) <= MOST_BYTES else None
        except (ValueError, RecursionError):
            plain = None
        found = plain.get("trusted") if isinstance(plain, dict) and plain.get("schema") == SCHEMA else None
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            self._say(f"{path} is damaged, so nothing counts as allowed before")
            return []
        return found

    def _write(self, folder: Path, hashes: Sequence[str]) -> None:
        """Write them in the place of those before; a reader sees the old or the new. Raises OSError."""
        beside = folder / f"{NAME}.new"
        beside.unlink(missing_ok=True)
        number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(number, "w") as file:
            file.write(json.dumps({"schema": SCHEMA, "trusted": hashes}, indent=0))
            file.flush()
            os.fsync(number)
        beside.rename(folder / NAME)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep others from writing meanwhile. Raises OSError."""
    number = os.open(folder / f"{NAME}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def fingerprint(thing: Named, by: str) -> str | None:
    """Return the hash of a thing that the file `by` names; None for a file that has no contents to be known by."""
    digest = hashlib.sha256(f"{SCHEMA} {thing.deed}".encode())
    if thing.deed is Deed.INSTALLS:
        parts: list[bytes] = [thing.what.lower().encode()]
    elif thing.deed is Deed.READS:
        # To whom it is sent is for whoever names it to say.
        parts = [os.fsencode(Path(by).resolve()), *_file(Path(by).resolve().parent / thing.what)]
    else:
        # A bare word may be that of a folder here, or of a program.
        found = thing.what if os.sep in thing.what or os.path.exists(thing.what) else shutil.which(thing.what)
        parts = [*_executable(Path(found or thing.what))]
    if not all(parts):
        return None
    for part in parts:
        digest.update(b"%d\0" % len(part))
        digest.update(part)
    return digest.hexdigest()


def _executable(path: Path) -> Iterator[bytes]:
    """Yield what tells an executable from another, with the environment that it may be of."""
    path = path / "bin" / "python" if path.is_dir() else path
    yield from _file(path)
    home = Path(os.path.abspath(path)).parent.parent
    if (home / "pyvenv.cfg").is_file():
        yield from _file(home / "pyvenv.cfg")
        for pattern in RUN_AT_START:
            for file in sorted(home.glob(f"lib*/python*/site-packages/{pattern}")):
                yield from _file(file)


def _file(path: Path) -> Iterator[bytes]:
    """Yield a file's path and the hash of its contents; an empty hash where it is no file that can be read."""
    yield os.fsencode(os.path.abspath(path))
    try:
        if not path.is_file():
            yield b""
            return
        with path.open("rb") as file:
            yield hashlib.file_digest(file, "sha256").digest()
    except OSError:
        yield b""

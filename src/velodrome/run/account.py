"""The ordinary user that foreign code runs as where velodrome is root: servers, apps, commands, third parties.

    with acting_as(account_for("", "/home/shop/app")):
        ...                             # every Order, interpreter and installer runs as that user

Root is needed for links, control groups and profiles alone. These stay with velodrome and its wardens, which give it up
in the child before anything of the user's is executed. Processes of velodrome's own that take bytes from a server
(engine, relay, third party) give it up themselves. Without root there is nothing to give up.
"""

import os
import pwd
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from velodrome.model.errors import AccountError

SUDO = "SUDO_UID"
"""Environment variable in which sudo says who called it."""
ROOT = 0
UNUSED = range(61184, 65520)
"""User ids of services that have none in the user database (systemd's DynamicUser)."""
READABLE = 0o022
"""A umask."""
NOWHERE = "/nonexistent"
"""Home of a user id without an entry in the user database, as Debian has it for `nobody`."""


class Process(TypedDict, total=False):
    """Arguments of `subprocess`."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Account:
    """A user of this machine, not root."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    """Supplementary groups, as a log-in would give them."""
    home: str

    @property
    def variables(self) -> Mapping[str, str]:
        """What a log-in sets in the environment."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}

    @property
    def process(self) -> Process:
        """Arguments of `subprocess` that start a process as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": list(self.groups)}

    @property
    def identity(self) -> str:
        """For the command line of a process of ours, see `supervision/own_process.py`."""
        return ":".join(map(str, (self.uid, self.gid, *self.groups)))

    def first_closed(self, path: str | os.PathLike[str]) -> str:
        """Return the first folder on the way to a path that this user may not enter; empty: none.

        By the mode alone: access control lists are not looked at.
        """
        for folder in reversed(Path(os.path.abspath(path)).parents):
            if not self._may_enter(folder):
                return str(folder)
        return ""

    def _may_enter(self, folder: Path) -> bool:
        try:
            found = folder.stat()
        except OSError:
            return False
        if found.st_uid == self.uid:
            return bool(found.st_mode & stat.S_IXUSR)
        if found.st_gid in (self.gid, *self.groups):
            return bool(found.st_mode & stat.S_IXGRP)
        return bool(found.st_mode & stat.S_IXOTH)


_acting: list[Account | None] = []
"""Whom foreign code runs as now, the innermost last. Of the process, as its user is: threads share it."""


def account_for(named: str, folder: str = "") -> Account | None:
    """Return whom foreign code is to run as; None: as whom velodrome itself runs.

    Where velodrome is root that is the user `named`, else who called sudo, else the owner of the app's `folder`, unless
    that is root. `root` by name means root. Raises AccountError for a user that does not exist, and for another user
    than its own where velodrome is not root.
    """
    if os.geteuid() != ROOT:
        if named and _find_account(named).uid != os.geteuid():
            raise AccountError(
                named, "only root may start processes as another user", "run velodrome with sudo"
            )
        return None
    if named:
        found = _find_account(named)
        return None if found.uid == ROOT else found
    caller = os.environ.get(SUDO, "")
    owner = os.stat(folder).st_uid if folder and os.path.isdir(folder) else ROOT
    for uid in (int(caller) if caller.isascii() and caller.isdecimal() else ROOT, owner):
        if uid != ROOT:
            return _find_account(str(uid))
    return None


def unused_account(*others: int) -> Account:
    """Return a user that nobody is: without a name, a home or a process, and none of `others`.

    Of the numbers that systemd, too, gives to services for as long as they run. Raises AccountError.
    """
    import random  # noqa: PLC0415

    import psutil  # noqa: PLC0415 - for root alone

    taken = {entry.pw_uid for entry in pwd.getpwall()} | set(others)
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            taken |= set(process.uids())
    if not (free := [uid for uid in UNUSED if uid not in taken]):
        raise AccountError(
            str(UNUSED[0]), "every user id up to " + str(UNUSED[-1]) + " is in use", "name another user"
        )
    uid = random.choice(free)
    return Account(str(uid), uid, uid, (), NOWHERE)


def as_root_unnamed(named: str, account: Account | None) -> bool:
    """Return whether foreign code runs as root although nobody chose that."""
    return os.geteuid() == ROOT and account is None and not named


def _find_account(named: str) -> Account:
    """Return a user by name, or by a number that need not be in the user database. Raises AccountError."""
    try:
        entry = pwd.getpwuid(int(named)) if named.isascii() and named.isdecimal() else pwd.getpwnam(named)
    except KeyError:
        if not (named.isascii() and named.isdecimal()):
            raise AccountError(named, "there is no such user on this machine", "see: getent passwd") from None
        return Account(named, int(named), int(named), (), NOWHERE)
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, groups, entry.pw_dir)


def acting() -> Account | None:
    """Return whom foreign code runs as; None: as whom velodrome itself runs."""
    return _acting[-1] if _acting else None


@contextmanager
def acting_as(account: Account | None) -> Iterator[None]:
    """Start foreign code as this user until the block has ended; what is made for it meanwhile can be read by it."""
    before = os.umask(READABLE) if account is not None else None
    _acting.append(account)
    try:
        yield
    finally:
        _acting.remove(account)
        if before is not None:
            os.umask(before)


def hand_over(path: str | os.PathLike[str]) -> None:
    """Give a file or folder of ours, not what is in it, to whom foreign code runs as."""
    if (account := acting()) is not None:
        os.chown(path, account.uid, account.gid, follow_symlinks=False)


def take_back(folder: str | os.PathLike[str]) -> None:
    """Make a folder and all in it root's own again, so that only root changes it from now on. Raises OSError."""
    if (account := acting()) is not None:
        _change_owner(folder, account.uid, (ROOT, ROOT))


@contextmanager
def giving(folder: Path) -> Iterator[None]:
    """Give what velodrome writes into a folder of results until the block has ended to whom foreign code runs as.

    A user who has root for a measurement reads, moves and removes its results without.
    """
    account = acting()
    new = next((parent for parent in reversed((folder, *folder.parents)) if not parent.exists()), folder)
    try:
        yield
    finally:
        if account is not None and new.is_dir():
            _change_owner(new, ROOT, (account.uid, account.gid))


def _change_owner(folder: str | os.PathLike[str], from_uid: int, to: tuple[int, int]) -> None:
    """Change the owner of what is a user's in a folder. Follows no symbolic link.

    A file that has other names stays its owner's: it may be somebody else's as well.
    """
    for _, _, files, number in os.fwalk(folder, follow_symlinks=False):
        for name in files:
            found = os.stat(name, dir_fd=number, follow_symlinks=False)
            if found.st_uid == from_uid and found.st_nlink == 1:
                os.chown(name, *to, dir_fd=number, follow_symlinks=False)
        if os.fstat(number).st_uid == from_uid:
            os.fchown(number, *to)


def current_variables() -> Mapping[str, str]:
    """Return what a log-in of whom foreign code runs as would set; empty: our own environment says it."""
    account = acting()
    return account.variables if account else {}


def current_process() -> Process:
    """Return arguments of `subprocess` that start a process as whom foreign code runs as."""
    account = acting()
    return account.process if account else {}

"""The folder of an app, sent to the hosts that serve it: packed by content here, unpacked in a private folder there.

    data = pack("/home/me/shop")               # what git does not ignore; raises SendingError
    unpack(data, scratch.make_folder("app"))          # there; nothing of it lies outside of that folder

What git ignores stays here, and so secrets do that lie in such files. Outside of a git repository hidden files and
folders stay, and what is made anew anywhere.
"""

import base64
import gzip
import io
import os
import posixpath
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

from velodrome.model.errors import SendingError
from velodrome.run.account import hand_over
from velodrome.run.apps import revisions
from velodrome.run.supervision import scratch

MOST_PACKED = 64 << 20
"""Bytes: what is sent goes through the memory of each process on the way."""
MOST_UNPACKED = 512 << 20
MOST_FILES = 20_000
MADE_ANEW = frozenset({"__pycache__", "node_modules", "venv", "env"})
"""Folders that are not sent from where there is no git; those that begin with a dot neither."""


def pack(folder: str) -> bytes:
    """Return what is to be sent of a folder: the same bytes for the same content. Raises SendingError, GitError."""
    names = sorted(_names(folder))
    if not names:
        raise SendingError(
            folder, "there is nothing in it that git does not ignore", "Name another with --cwd"
        )
    if len(names) > MOST_FILES:
        raise SendingError(folder, f"it has {len(names):,} files, and {MOST_FILES:,} is the limit", LARGE)
    out, size = io.BytesIO(), 0
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for name in names:
            member, data = _member(folder, name)
            size += member.size
            if size > MOST_UNPACKED or out.tell() > MOST_PACKED:
                raise _too_large(folder)
            tar.addfile(member, io.BytesIO(data))
    if out.tell() > MOST_PACKED:
        raise _too_large(folder)
    return out.getvalue()


LARGE = (
    "Have git ignore what the app does not need, name its own folder with --cwd, or copy it to the host yourself and "
    "leave --send out"
)


def _too_large(folder: str) -> SendingError:
    limits = f"{MOST_PACKED >> 20} MB packed, {MOST_UNPACKED >> 20} MB unpacked"
    return SendingError(folder, f"it is larger than what is sent at most ({limits})", LARGE)


def _member(folder: str, name: str) -> tuple[tarfile.TarInfo, bytes]:
    """Return a file or link, without what differs between two copies of it."""
    path, member = os.path.join(folder, name), tarfile.TarInfo(name)
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            member.type, member.linkname = tarfile.SYMTYPE, os.readlink(path)
            if not _inside(name, member.linkname):
                why = f"{name} is a link to {member.linkname}, outside of it"
                raise SendingError(
                    folder, why, "Put what it leads to into the folder, or have git ignore the link"
                )
            return member, b""
        if not stat.S_ISREG(found.st_mode):
            raise SendingError(
                folder, f"{name} is neither file nor link", "Have git ignore it, or take it away"
            )
        if found.st_size > MOST_UNPACKED:
            raise _too_large(folder)
        data = Path(path).read_bytes()
    except OSError as error:
        raise SendingError(
            folder, f"{name} cannot be read: {error.strerror}", "Let this user read it, or have git ignore it"
        ) from error
    member.size, member.mode = len(data), 0o755 if found.st_mode & stat.S_IXUSR else 0o644
    return member, data


def _inside(name: str, leads_to: str) -> bool:
    """Return whether a link called `name` leads to something within the folder."""
    if not leads_to or posixpath.isabs(leads_to):
        return False
    return _fine(posixpath.normpath(posixpath.join(posixpath.dirname(name), leads_to)), whole=True)


def _fine(name: str, *, whole: bool = False) -> bool:
    """Return whether a name lies within a folder; `whole`: the folder itself does, too."""
    parts = name.split("/")
    return (whole and name == ".") or (
        not posixpath.isabs(name) and all(part not in ("", ".", "..") for part in parts) and "\0" not in name
    )


def _names(folder: str) -> Iterator[str]:
    """Yield what is sent of a folder, by its path within it."""
    listed = revisions.not_ignored(folder)
    if listed is None:
        yield from _walk(folder)
        return
    for name in listed:
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):  # a repository in it
            yield from (f"{name.rstrip('/')}/{inner}" for inner in _names(path))
        elif os.path.lexists(path):  # what was removed is known until it is committed
            yield name


def _walk(folder: str) -> Iterator[str]:
    for above, folders, files in os.walk(folder):
        folders[:] = [one for one in folders if one not in MADE_ANEW and not one.startswith(".")]
        linked = [one for one in folders if os.path.islink(os.path.join(above, one))]
        for name in (*files, *linked):
            if not name.startswith("."):
                yield os.path.relpath(os.path.join(above, name), folder)


def receive(files: str) -> str:
    """Unpack a folder that was sent, in base64, into one that ends with this process; return its path.

    Raises what `unpack` does.
    """
    folder = scratch.make_folder("app")
    unpack(base64.b64decode(files), folder)
    return str(folder)


def inside(path: str, sent: str, folder: str) -> str:
    """Return where a path is once the folder `sent` was unpacked into `folder`; one that is outside stays as it is."""
    within = bool(path) and Path(path).is_relative_to(sent)
    return str(Path(folder, Path(path).relative_to(sent))) if within else path


def unpack(data: bytes, folder: Path) -> None:
    """Write what was packed into a new folder, for whom foreign code runs as.

    Nothing is written through a link, nor outside of the folder. Raises SendingError for what `pack` did not make.
    """
    links: list[tuple[str, str]] = []
    left, count = MOST_UNPACKED, 0
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
            for member in tar:
                count += 1
                left -= member.size
                odd = not _fine(member.name) or not (member.isreg() or member.issym())
                if (
                    odd
                    or left < 0
                    or count > MOST_FILES
                    or (member.issym() and not _inside(member.name, member.linkname))
                ):
                    raise SendingError(
                        str(folder), f"{member.name} in it is nothing that is sent", "Nothing was run"
                    )
                if member.issym():
                    links.append((member.name, member.linkname))
                    continue
                source = tar.extractfile(member)
                assert source is not None
                _write(folder, member.name, source.read(), 0o755 if member.mode & 0o100 else 0o644)
        for name, leads_to in links:  # last, so that no file goes through one
            _above(folder, name)
            os.symlink(leads_to, folder / name)
            hand_over(folder / name)
    except (OSError, tarfile.TarError, EOFError) as error:
        raise SendingError(
            str(folder), f"it cannot be unpacked: {error}", "Is there room on that host?"
        ) from error
    hand_over(folder)


def _write(folder: Path, name: str, data: bytes, mode: int) -> None:
    _above(folder, name)
    number = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(number, "wb") as file:
        file.write(data)
    hand_over(folder / name)


def _above(folder: Path, name: str) -> None:
    """Make the folders that a file lies in."""
    for parent in reversed(Path(name).parents[:-1]):
        path = folder / parent
        if not path.is_dir():
            path.mkdir(0o755)
            hand_over(path)

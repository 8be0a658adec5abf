"""Two revisions of an app's source beside each other: each in a worktree of git, taken away again however it ends.

    with checked_out("/home/me/shop", ("HEAD~1", "HEAD")) as (before, after):
        before.folder, before.name        # /tmp/velodrome-…/revisions-…/before/…, HEAD~1 (4f1c2aa)

Killed outright, it leaves worktrees behind; the next one takes these away.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from velodrome.model.errors import GitError, RevisionError
from velodrome.run.supervision import scratch
from velodrome.run.supervision.undisturbed import undisturbed

KIND = "revisions"
"""Of their temporary folders."""
SIDES = ("before", "after")
LONGEST_S = 120.0
"""Of a command of git: large repositories take a while to check out."""


@dataclass(frozen=True)
class Revision:
    """One of them, checked out."""

    name: str
    """As it was asked for, and its commit: `HEAD~1 (4f1c2aa)`."""
    commit: str
    root: Path
    """Where it is checked out."""
    folder: str
    """The folder of the app in it."""
    elsewhere: tuple[str, ...]
    """Where the repository is checked out for its user: what is imported from there is of no revision."""


@contextmanager
def checked_out(cwd: str, asked: Sequence[str]) -> Iterator[tuple[Revision, ...]]:
    """Check revisions out, whose app is in the folder `cwd` of its repository.

    Raises GitError where there is no repository or no git, RevisionError for what is none.
    """
    top = Path(_git(cwd, "rev-parse", "--show-toplevel"))
    inside = Path(os.path.realpath(cwd)).relative_to(os.path.realpath(top))
    commits = [_commit(cwd, one) for one in asked]
    _sweep(top)
    elsewhere = tuple(map(os.path.realpath, (top, *_worktrees(top))))
    folder_of_both = scratch.made(KIND)
    try:
        found = []
        for name, commit, side in zip(asked, commits, SIDES, strict=True):
            # --force: the same commit may be checked out twice, as in a diff of equals.
            _git(cwd, "worktree", "add", "--quiet", "--force", "--detach", str(folder_of_both / side), commit)
            folder = folder_of_both / side / inside
            if not folder.is_dir():
                raise RevisionError(name, f"it has no folder {inside}")
            found.append(
                Revision(f"{name} ({commit[:7]})", commit, folder_of_both / side, str(folder), elsewhere)
            )
        yield tuple(found)
    finally:
        with undisturbed():
            _remove(top, folder_of_both)


def _commit(cwd: str, revision: str) -> str:
    try:
        return _git(cwd, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except GitError as error:
        raise RevisionError(revision, "the repository has no such commit, branch or tag") from error


def _remove(top: Path, folder: Path) -> None:
    """Take worktrees away, also where git does not want to: what is in them is of no use to anybody."""
    for side in SIDES:
        with suppress(GitError):
            _git(str(top), "worktree", "remove", "--force", "--force", str(folder / side))
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(GitError):
        _git(str(top), "worktree", "prune")


def _sweep(top: Path) -> None:
    """Take away what a process that was killed outright has left, wherever its temporary files were."""
    for place in {one.parents[2] for one in _worktrees(top) if one.parent.name.startswith(KIND)}:
        scratch.sweep(place)
    with suppress(GitError):
        _git(str(top), "worktree", "prune")


def _worktrees(top: Path) -> list[Path]:
    """Return where the repository is checked out."""
    listed = _git(str(top), "worktree", "list", "--porcelain").splitlines()
    return [Path(line.removeprefix("worktree ")) for line in listed if line.startswith("worktree ")]


def _git(cwd: str, *arguments: str) -> str:
    """Return what git says, without its last line end. Raises GitError."""
    try:
        ran = subprocess.run(
            ["git", "-C", cwd, *arguments],
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
            stdin=subprocess.DEVNULL,
            # Ctrl-C is for us: git is to end what it does.
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise GitError(arguments[0], "git is not installed here") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(arguments[0], f"it did not end within {LONGEST_S:g} s") from error
    if ran.returncode:
        said = ran.stderr.strip().splitlines()
        raise GitError(arguments[0], said[-1].removeprefix("fatal: ") if said else f"exit {ran.returncode}")
    return ran.stdout.strip("\n")

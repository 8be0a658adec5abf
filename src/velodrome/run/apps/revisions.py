"""Revisions of an app's source, one or two beside each other, in a temporary folder that is taken away however it ends.

    with check_out("/home/me/shop", ("HEAD~1", "HEAD")) as (before, after):
        before.folder, before.name        # /tmp/velodrome-…/revisions-…/before/…, HEAD~1 (4f1c2aa)

The user's repository is only read, whether this is called by hand or by one of its hooks: no index, worktree, branch
or list of worktrees of theirs changes, and no hook of theirs runs. Each folder gets a small repository of its own that
borrows their objects, so that an app which asks git for its version is answered (docs/decisions/0004).

Killed outright, it leaves a folder behind; the next run takes it away.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from velodrome.model.errors import GitError, NotFromRevisionError, RevisionError
from velodrome.run.account import current_process, current_variables, hand_over
from velodrome.run.supervision import scratch
from velodrome.run.supervision.undisturbed import undisturbed

KIND = "revisions"
"""Of their temporary folders."""
SIDES = ("before", "after")
LONGEST_S = 120.0
"""Of a command of git: large repositories take a while to check out."""

KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_LFS_SKIP_SMUDGE")
"""Of git's variables those that say where the user's settings lie, and whether files of git-lfs are wanted. The others
would lead it to another repository or index, as those do that git exports to hooks, or say how to log in, which
nothing here has to.
"""
DROPPED = ("SSH_ASKPASS",)
SETTINGS = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.splitIndex", "false"),  # it would write beside the user's index
    ("index.sparse", "false"),  # the small repository could not read it
    ("init.defaultRefFormat", "files"),
    ("core.askPass", ""),
    ("protocol.allow", "never"),  # what a partial clone lacks is not fetched unasked
)
"""Over the user's: nothing runs but git and the filters that files need, and nothing is kept up for another time."""


@dataclass(frozen=True)
class Revision:
    """A revision, checked out."""

    name: str
    """As the user names it, and its commit: `HEAD~1 (4f1c2aa)`."""
    commit: str
    root: Path
    """Where it is checked out."""
    folder: str
    """The folder of the app in it."""
    elsewhere: tuple[str, ...]
    """Where the repository is checked out for its user: what is imported from there is of no revision."""

    def refuse_others(self, app: str, files: Iterable[str]) -> None:
        """Raise NotFromRevisionError for a file that an app imports from elsewhere; empty: it is unknown."""
        for file in filter(None, files):
            if self.root not in Path(file).parents:
                raise NotFromRevisionError(app, self.name, file)


@contextmanager
def check_out(cwd: str, revisions: Sequence[str]) -> Iterator[tuple[Revision, ...]]:
    """Check one revision or two out, whose app is in the folder `cwd` of its repository.

    Raises GitError where there is no repository or no git, RevisionError for what is none.
    """
    top = os.path.realpath(_git(cwd, "rev-parse", "--show-toplevel"))
    inside = os.path.relpath(os.path.realpath(cwd), top)
    if inside.split(os.sep)[0] == os.pardir:
        raise GitError("rev-parse", f"the repository of {cwd} has its files elsewhere, in {top}")
    commits = [_commit(cwd, revision) for revision in revisions]
    elsewhere = tuple(map(os.path.realpath, (top, *_worktrees(top))))
    both = scratch.make_folder(KIND)
    hand_over(both)
    try:
        found = []
        for name, commit, side in zip(revisions, commits, SIDES[: len(commits)], strict=True):
            root = both / side
            _borrow(top, root, commit)
            _write_files(top, root, name, commit)
            folder = root / inside
            if not folder.is_dir():
                raise RevisionError(name, f"it has no folder {inside}")
            found.append(Revision(f"{name} ({commit[:7]})", commit, root, str(folder), elsewhere))
        yield tuple(found)
    finally:
        with undisturbed():
            shutil.rmtree(both, ignore_errors=True)


def not_ignored(cwd: str) -> list[str] | None:
    """Return the files in a folder that git does not ignore, by their paths in it; None: it is in no repository.

    What was removed is among them until that is committed, and so is the folder of a repository in it. Raises GitError
    where git does not say: what it ignores may be secret.
    """
    place = Path(os.path.realpath(cwd))
    if not any((path / ".git").exists() for path in (place, *place.parents)):
        return None
    sentence = _git(cwd, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return list(dict.fromkeys(filter(None, sentence.split("\0"))))


def _commit(cwd: str, revision: str) -> str:
    try:
        return _git(cwd, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except GitError as error:
        raise RevisionError(revision, "the repository has no such commit, branch or tag") from error


def _borrow(top: str, root: Path, commit: str) -> None:
    """Make a repository at `root` that stands at a commit, with the objects, branches and tags of the user's."""
    form = _git(top, "rev-parse", "--show-object-format")
    objects, shallow = (
        os.path.join(top, _git(top, "rev-parse", "--git-path", name)) for name in ("objects", "shallow")
    )
    _git(str(root.parent), "init", "--quiet", "--template=", f"--object-format={form}", str(root))
    own = root / ".git"
    (own / "objects" / "info").mkdir(exist_ok=True)
    (own / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")
    if os.path.exists(shallow):
        shutil.copyfile(shallow, own / "shallow")
    refs = _git(top, "for-each-ref", "--format=%(objectname) %(refname)")
    (own / "packed-refs").write_bytes(os.fsencode(f"{refs}\n" if refs else ""))
    (own / "HEAD").write_text(f"{commit}\n")


def _write_files(top: str, root: Path, name: str, commit: str) -> None:
    """Write a commit's files to `root` as a checkout would: with the user's settings, attributes, filters (such as
    those of git-lfs) and sparse patterns. The user's repository is read; the index that is written is that of `root`.

    Raises RevisionError.
    """
    where = {
        "GIT_DIR": _git(top, "rev-parse", "--absolute-git-dir"),
        "GIT_WORK_TREE": str(root),
        "GIT_INDEX_FILE": str(root / ".git" / "index"),
    }
    try:
        _git(str(root), "read-tree", "--reset", "-u", "--no-recurse-submodules", commit, variables=where)
    except GitError as error:
        cure = (
            "What a partial clone lacks is not fetched unasked; this fetches it: "
            f"git archive --output={os.devnull} {name}"
        )
        raise RevisionError(name, f"its files cannot be written: {error.reason}", cure) from error


def _worktrees(top: str) -> list[str]:
    """Return where the repository is checked out."""
    listed = _git(top, "worktree", "list", "--porcelain").splitlines()
    return [line.removeprefix("worktree ") for line in listed if line.startswith("worktree ")]


def environment() -> dict[str, str]:
    """Return this process's environment without what leads git elsewhere or lets it ask a person.

    SUDO_UID stays: by it git knows that root may read the repository of whoever called sudo.
    """
    own = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT or not (name.startswith("GIT_") or name in DROPPED)
    }
    return {**own, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}


def _program() -> str:
    """Return where git is, by the absolute entries of PATH: a git in the current folder is not meant. Raises
    GitError."""
    found = shutil.which("git", path=os.pathsep.join(filter(os.path.isabs, os.get_exec_path())))
    if found is None:
        raise GitError("rev-parse", "git is not installed here")
    return found


def _git(cwd: str, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
    """Return what git says, without its last line end. Raises GitError."""
    settings = [word for name, value in SETTINGS for word in ("-c", f"{name}={value}")]
    try:
        ran = subprocess.run(
            [_program(), *settings, "-C", cwd, *arguments],
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=LONGEST_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**environment(), **current_variables(), **(variables or {})},
            **current_process(),
            # Ctrl-C is for us: git is to end what it does.
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as error:
        raise GitError(arguments[0], f"it did not end within {LONGEST_S:g} s") from error
    if ran.returncode:
        # From the last thing that was fatal on: the cure may follow.
        reason = " ".join(ran.stderr.rpartition("fatal: ")[2].split())
        raise GitError(arguments[0], reason or f"exit {ran.returncode}")
    return ran.stdout.strip("\n")

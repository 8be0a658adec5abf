"""Revisions are checked out by hand and from hooks of git, and the user's repository is as it was, byte by byte."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.run.apps.in_a_hook import picture
from tests.run.apps.repository import git
from tests.shop_repository import SHOP

from velodrome.model.errors import GitError, RevisionError
from velodrome.run.apps.revisions import check_out, environment

HOOKED = Path(__file__).with_name("in_a_hook.py")
CHECKING_OUT = """
from pathlib import Path
from velodrome.run.apps.revisions import check_out
with check_out(".", ("HEAD~1", "HEAD")) as found:
    print([(Path(revision.folder) / "shop.py").read_text() for revision in found])
"""
PROGRAM = (sys.executable, "-P", "-c", CHECKING_OUT)
COMMAND = (sys.executable, "-P", "-m", "velodrome", "diff", "HEAD~1", "HEAD", "--app", "shop:nothing")
"""Both revisions are checked out and the first is looked at, which has no such attribute: nothing is measured."""
BOTH = "['NUMBER = 1\\n', 'NUMBER = 2\\n']"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with two commits, and then something staged, something changed and something untracked."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for number in ("1", "2"):
        (folder / "shop.py").write_text(f"NUMBER = {number}\n")
        (folder / "beside.txt").write_text(f"{number}\n")
        (folder / "serving.py").write_text(SHOP.format(seconds=0.001))
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", number)
    unfinished(folder)
    return folder


def unfinished(folder: Path) -> None:
    (folder / "staged.py").write_text("STAGED = 1\n")
    git(folder, "add", "staged.py")
    (folder / "beside.txt").write_text("changed\n")
    (folder / "untracked.txt").write_text("mine\n")


@dataclass(frozen=True)
class Hook:
    """A hook of a repository, and what came of it."""

    out: Path
    runs: tuple[str, ...]

    def variables(self) -> dict[str, str]:
        runs = json.dumps(self.runs)
        return {
            "IN_A_HOOK": str(self.out),
            "IN_A_HOOK_RUNS": runs,
            "VELODROME_CACHE": str(self.out.parent / "cache"),
        }

    def report(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out.read_text())
        return document


def hook(shop: Path, name: str, out: Path, runs: tuple[str, ...] = PROGRAM) -> Hook:
    place = shop / ".git" / "hooks" / name
    place.parent.mkdir(exist_ok=True)
    place.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P "{HOOKED}"\n')
    place.chmod(0o755)
    return Hook(out, runs)


def run(folder: Path, made: Hook, *words: str, **variables: str) -> dict[str, Any]:
    """Run git there, which runs the hook; return what the hook reports."""
    ran = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, **made.variables(), **variables},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return made.report()


def unchanged(report: dict[str, Any]) -> None:
    assert report["after"] == report["before"]
    assert len(report["before"]) > 20


@pytest.mark.parametrize(
    ("words", "committed"),
    [
        (("commit", "-m", "3"), "staged.py"),
        (("commit", "-a", "-m", "3"), "beside.txt\nstaged.py"),
        (("commit", "-m", "3", "beside.txt"), "beside.txt"),  # git makes an index for this commit alone
    ],
    ids=["what is staged", "all", "one file"],
)
def test_a_pre_commit_hook_commits_what_it_would_have(
    shop: Path, tmp_path: Path, words: tuple[str, ...], committed: str
) -> None:
    report = run(shop, hook(shop, "pre-commit", tmp_path / "report.json"), *words)
    assert "GIT_INDEX_FILE" in report["exported"]
    assert (report["code"], report["output"].strip()) == (0, BOTH)
    unchanged(report)
    assert git(shop, "diff-tree", "--no-commit-id", "--name-only", "-r", "HEAD") == committed


def test_a_post_commit_and_a_pre_push_hook_leave_what_is_staged(shop: Path, tmp_path: Path) -> None:
    made = hook(shop, "post-commit", tmp_path / "report.json")
    unchanged(run(shop, made, "commit", "-m", "3"))
    (shop / "next.py").write_text("")
    git(shop, "add", "next.py")
    (shop / ".git" / "hooks" / "post-commit").unlink()
    git(tmp_path, "init", "--quiet", "--bare", "elsewhere")
    report = run(
        shop,
        hook(shop, "pre-push", tmp_path / "pushed.json"),
        "push",
        str(tmp_path / "elsewhere"),
        "HEAD:refs/heads/x",
    )
    assert report["code"] == 0, report["output"]
    unchanged(report)
    assert git(shop, "diff", "--cached", "--name-only") == "next.py"


def test_the_command_from_a_pre_commit_hook_leaves_all_as_it_was(shop: Path, tmp_path: Path) -> None:
    report = run(shop, hook(shop, "pre-commit", tmp_path / "report.json", COMMAND), "commit", "-m", "3")
    assert report["code"] == 2, report["output"]
    assert "nothing" in report["output"]  # the attribute: so the revision was there to be looked at
    unchanged(report)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["pre-commit", "pre-push"])
def test_a_whole_race_from_a_hook_leaves_all_as_it_was(shop: Path, tmp_path: Path, name: str) -> None:
    of_app = (
        "--app",
        "serving:app",
        "--stack",
        "waitress",
        "--blocks",
        "1",
        "-z",
        "0.5s",
        "--run",
        str(tmp_path / "run"),
    )
    made = hook(shop, name, tmp_path / "report.json", (*COMMAND[:-2], *of_app))
    git(tmp_path, "init", "--quiet", "--bare", "elsewhere")
    words = {
        "pre-commit": ("commit", "-m", "3"),
        "pre-push": ("push", str(tmp_path / "elsewhere"), "HEAD:refs/heads/x"),
    }
    report = run(shop, made, *words[name], VELODROME_LOCK=str(tmp_path / "lock"))
    assert report["code"] == 0, report["output"]
    assert '"kind":"measurement"' in (tmp_path / "run" / "results.jsonl").read_text()
    unchanged(report)


def test_a_hook_in_a_linked_worktree_leaves_that_and_the_first_as_they_were(
    shop: Path, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    git(shop, "worktree", "add", "--quiet", "-b", "other", str(linked))
    unfinished(linked)
    first = picture(str(shop))
    report = run(linked, hook(shop, "pre-commit", tmp_path / "report.json"), "commit", "-m", "3")
    assert (report["code"], report["output"].strip()) == (0, BOTH)
    unchanged(report)
    commands = ("status --porcelain=v2 --branch --untracked-files=all --ignored", "diff --cached", "diff")
    assert [picture(str(shop))[command] for command in commands] == [first[command] for command in commands]


def test_a_submodule_is_left_as_it_was_and_so_is_what_it_is_in(shop: Path, tmp_path: Path) -> None:
    git(shop, "reset", "--quiet", "--hard")
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "--quiet")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(shop), "inner")
    unfinished(outer / "inner")
    before = picture(str(outer)), picture(str(outer / "inner"))
    with check_out(str(outer / "inner"), ("HEAD~1", "HEAD")) as (revision, other):
        assert [(Path(side.folder) / "shop.py").read_text() for side in (revision, other)] == [
            "NUMBER = 1\n",
            "NUMBER = 2\n",
        ]
    assert (picture(str(outer)), picture(str(outer / "inner"))) == before


@pytest.mark.parametrize(
    "exported", [{"GIT_DIR": ".git"}, {"GIT_INDEX_FILE": ".git/index"}, {"GIT_WORK_TREE": "/"}]
)
def test_what_a_hook_exports_leads_nowhere(shop: Path, exported: dict[str, str]) -> None:
    before = picture(str(shop))
    env = {**os.environ, **exported}
    ran = subprocess.run(PROGRAM, capture_output=True, text=True, cwd=shop, env=env, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, BOTH), ran.stderr
    assert picture(str(shop)) == before


def test_no_hook_runs_not_even_one_of_the_revision_that_is_check_out(shop: Path, tmp_path: Path) -> None:
    hooks = shop / ".githooks"
    hooks.mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor"):
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/ran\n")
        (hooks / name).chmod(0o755)
    git(shop, "add", ".")
    git(shop, "commit", "--quiet", "-m", "3")
    git(shop, "config", "core.hooksPath", ".githooks")
    git(shop, "config", "core.fsmonitor", str(hooks / "fsmonitor"))
    subprocess.run(
        ["git", "-C", str(shop), "checkout", "--quiet", "-b", "other"], check=True, capture_output=True
    )
    assert (tmp_path / "ran").read_text().splitlines().count(
        "post-checkout"
    ) == 1  # they do run, for the user
    (tmp_path / "ran").unlink()
    with check_out(str(shop), ("HEAD~1", "HEAD")) as (_, after):
        assert (after.root / ".githooks" / "post-checkout").exists()
    assert not (tmp_path / "ran").exists()


def test_files_are_written_as_the_users_settings_and_attributes_say(shop: Path) -> None:
    (shop / ".gitattributes").write_text("*.txt filter=loud\nshop.py eol=crlf\n")
    git(shop, "add", ".gitattributes")
    git(shop, "commit", "--quiet", "-m", "3")
    (shop / ".git" / "info").mkdir(exist_ok=True)
    (shop / ".git" / "info" / "attributes").write_text("staged.py filter=loud\n")
    git(shop, "config", "filter.loud.smudge", "tr a-z A-Z")
    (shop / "beside.txt").write_text("quiet\n")
    git(shop, "commit", "--quiet", "-a", "-m", "4")
    before = picture(str(shop))
    with check_out(str(shop), ("HEAD~1", "HEAD")) as (_, after):
        assert (after.root / "beside.txt").read_text() == "QUIET\n"
        assert (after.root / "staged.py").read_text() == "STAGED = 1\n"
        assert (after.root / "shop.py").read_bytes() == b"NUMBER = 2\r\n"
    assert picture(str(shop)) == before


def test_a_sparse_worktree_stays_sparse(shop: Path) -> None:
    for name in ("site", "assets"):
        (shop / name).mkdir()
        (shop / name / "file").write_text("")
    git(shop, "add", ".")
    git(shop, "commit", "--quiet", "-m", "3")
    git(shop, "stash", "--quiet", "--include-untracked")
    git(shop, "sparse-checkout", "set", "site")
    before = picture(str(shop))
    with check_out(str(shop / "site"), ("HEAD", "HEAD")) as (revision, _):
        assert sorted(path.name for path in revision.root.iterdir() if path.is_dir()) == [".git", "site"]
        assert git(revision.root, "status", "--porcelain") == ""
    assert picture(str(shop)) == before


def test_an_app_that_calls_git_is_answered_by_a_repository_of_its_own(shop: Path) -> None:
    git(shop, "tag", "v1", "HEAD~1")
    commits = [git(shop, "rev-parse", name) for name in ("HEAD~1", "HEAD")]
    before = picture(str(shop))
    with check_out(str(shop), ("HEAD~1", "HEAD")) as found:
        assert [git(revision.root, "rev-parse", "HEAD") for revision in found] == commits
        assert [git(revision.root, "describe", "--tags", "--dirty").split("-")[0] for revision in found] == [
            "v1",
            "v1",
        ]
        assert [git(revision.root, "status", "--porcelain") for revision in found] == ["", ""]
        git(found[1].root, "commit", "--quiet", "--allow-empty", "-m", "an app's own doing")
        git(found[1].root, "tag", "v2")
    assert picture(str(shop)) == before


def test_a_shallow_clone_can_be_check_out(shop: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=2", shop.as_uri(), "shallow")
    (tmp_path / "shallow" / "shop.py").write_text("NUMBER = 3\n")
    git(tmp_path / "shallow", "commit", "--quiet", "-a", "-m", "3")
    with check_out(str(tmp_path / "shallow"), ("HEAD~1", "HEAD")) as (_, after):
        assert git(after.root, "log", "--format=%s") == "3\n2\n1"


def test_what_a_partial_clone_lacks_is_reported_and_not_fetched(shop: Path, tmp_path: Path) -> None:
    git(shop, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", shop.as_uri(), "partial")
    before = picture(str(tmp_path / "partial"))
    with pytest.raises(RevisionError, match="git archive --output=/dev/null HEAD~1"):
        _check_out(tmp_path / "partial")
    assert picture(str(tmp_path / "partial")) == before
    git(tmp_path / "partial", "archive", f"--output={os.devnull}", "HEAD~1")
    _check_out(tmp_path / "partial")


def test_a_repository_whose_files_lie_elsewhere_is_reported(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    git(shop, "config", "core.worktree", str(tmp_path / "elsewhere"))
    with pytest.raises(GitError, match="elsewhere"):
        _check_out(shop)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look at the repository of who called sudo")
def test_under_sudo_the_repository_of_who_called_it_is_read(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (shop, *shop.rglob("*")):
        os.chown(path, 65534, 65534)
    monkeypatch.delenv("SUDO_UID", raising=False)
    with pytest.raises(GitError, match="dubious ownership"):
        _check_out(shop)
    monkeypatch.setenv("SUDO_UID", "65534")
    before = {str(path): path.lstat().st_uid for path in shop.rglob("*")}
    _check_out(shop)
    assert {str(path): path.lstat().st_uid for path in shop.rglob("*")} == before


def test_a_git_in_the_current_folder_is_not_meant(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (shop / "git").chmod(0o755)
    monkeypatch.chdir(shop)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", os.environ["PATH"]]))
    _check_out(shop)
    assert not (tmp_path / "ran").exists()


def test_of_gits_variables_only_those_that_name_settings_are_handed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {"GIT_CONFIG_GLOBAL": "/home/me/.gitconfig", "GIT_LFS_SKIP_SMUDGE": "1", "SUDO_UID": "1000"}
    leading = (
        "GIT_DIR",
        "GIT_SSH_COMMAND",
        "GIT_ASKPASS",
        "GIT_CONFIG_PARAMETERS",
        "GIT_EXTERNAL_DIFF",
        "SSH_ASKPASS",
    )
    for name, value in {**settings, **dict.fromkeys(leading, "x")}.items():
        monkeypatch.setenv(name, value)
    variables = environment()
    assert {name: variables[name] for name in settings} == settings
    assert [name for name in leading if name in variables] == []


def _check_out(folder: Path) -> None:
    with check_out(str(folder), ("HEAD~1", "HEAD")):
        pass

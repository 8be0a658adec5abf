"""Revisions of a real repository beside each other, gone afterwards whatever happened."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.run.apps.repository import git

from velodrome.model.errors import GitError, RevisionError
from velodrome.run.apps.revisions import KIND, check_out
from velodrome.run.supervision import scratch as temporary

HOLDING = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where the tests run in the background
from velodrome.run.apps.revisions import check_out
from velodrome.run.racing.opening import stoppable
with stoppable(), check_out(sys.argv[1], ("HEAD~1", "HEAD")) as found:
    print(found[0].root, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with the app in a folder of its own, and two commits."""
    folder = tmp_path / "repository" / "site"
    folder.mkdir(parents=True)
    git(folder.parent, "init", "--quiet")
    for number in ("1", "2"):
        (folder / "shop.py").write_text(f"NUMBER = {number}\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", number)
    return folder


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made: nobody else's are there."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(temporary, "_home", [])  # this process has one elsewhere
    return folder


def left(scratch: Path) -> list[Path]:
    return [*scratch.glob(f"velodrome-*/{KIND}-*")]


def test_both_revisions_are_there_side_by_side_and_gone_afterwards(shop: Path, scratch: Path) -> None:
    with check_out(str(shop), ("HEAD~1", "HEAD")) as (before, after):
        texts = [(Path(revision.folder) / "shop.py").read_text() for revision in (before, after)]
        assert texts == ["NUMBER = 1\n", "NUMBER = 2\n"]
        assert before.name == f"HEAD~1 ({git(shop, 'rev-parse', 'HEAD~1')[:7]})"
        assert len(left(scratch)) == 1
    assert left(scratch) == []
    assert not before.root.parent.exists()


def test_the_same_commit_can_be_both(shop: Path) -> None:
    with check_out(str(shop), ("HEAD", "HEAD")) as (before, after):
        assert before.commit == after.commit


def test_files_that_an_app_wrote_there_do_not_keep_a_folder(shop: Path, scratch: Path) -> None:
    def use() -> None:
        with check_out(str(shop), ("HEAD~1", "HEAD")) as (before, _):
            (Path(before.folder) / "shop.py").write_text("changed")
            (Path(before.folder) / "new.db").write_text("new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    assert left(scratch) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_they_are_gone_after_a_signal(shop: Path, scratch: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(shop)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        root = Path(process.stdout.readline().strip())
        assert root.exists()
        process.send_signal(number)
        process.wait(20)
    assert not root.parent.exists()
    assert left(scratch) == []


def test_what_one_killed_outright_left_the_next_takes_away(shop: Path, scratch: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(shop)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        root = Path(process.stdout.readline().strip())
        process.kill()
    assert left(scratch) == [root.parent]
    with check_out(str(shop), ("HEAD~1", "HEAD")):
        assert len(left(scratch)) == 1
        assert not root.exists()
    assert left(scratch) == []


def test_what_is_no_revision_or_no_repository_is_reported_and_leaves_nothing(
    shop: Path, tmp_path: Path, scratch: Path
) -> None:
    with pytest.raises(RevisionError, match="nowhere: the repository has no such commit, branch or tag"):
        _check_out(shop, "nowhere", "HEAD")
    with pytest.raises(RevisionError, match="--help: the repository has no such"):
        _check_out(shop, "--help", "HEAD")
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(GitError, match="not a git repository"):
        _check_out(plain, "HEAD~1", "HEAD")
    assert left(scratch) == []


def test_a_folder_that_a_revision_does_not_have_is_reported(shop: Path, scratch: Path) -> None:
    (shop / "later").mkdir()
    (shop / "later" / "app.py").write_text("")
    git(shop, "add", ".")
    git(shop, "commit", "--quiet", "-m", "later")
    with pytest.raises(RevisionError, match="HEAD~1: it has no folder site/later"):
        _check_out(shop / "later", "HEAD~1", "HEAD")
    assert left(scratch) == []


def _check_out(folder: Path, *revisions: str) -> None:
    with check_out(str(folder), revisions):
        pass

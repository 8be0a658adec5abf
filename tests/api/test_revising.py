"""`velodrome.diff` races two revisions of an app, as `velodrome diff HEAD~1 HEAD --app` does."""

import os
import subprocess
from pathlib import Path

import pytest

import velodrome as vd
from velodrome.model.errors import GitError, RevisionError

SHOP = """
import time

def app(environ, start_response):
    time.sleep({seconds})
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]
"""
ME = {f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, env=os.environ | ME)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository whose last commit made the app wait 20 ms instead of 2."""
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for seconds in (0.002, 0.02):
        (folder / "shop.py").write_text(SHOP.format(seconds=seconds))
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", f"wait {seconds}")
    return folder


@pytest.mark.exhaustive
@pytest.mark.measured
def test_a_slower_commit_is_a_regression(shop: Path, tmp_path: Path) -> None:
    for number in range(2):  # other programs may have taken the CPUs, and then nothing may be told
        found = vd.diff(
            "HEAD~1",
            "HEAD",
            app="shop:app",
            cwd=str(shop),
            stacks=["gunicorn-gthread"],
            connections=4,
            duration=0.5,
            blocks=4,
            metrics=["throughput", "p50"],
            out=tmp_path / f"run-{number}",
            wait=True,
        )
        if not any("Other programs" in note for note in found.diff.notes):
            break
    else:
        pytest.skip("other programs took the CPUs")
    assert found.change.value == "regression", found.sentence
    assert {row["metric"] for row in found.rows()} <= {"throughput", "p50"}
    assert vd.diff(tmp_path / f"run-{number}", metrics=["throughput", "p50"]).sentence == found.sentence


def test_what_is_no_revision_or_no_repository_is_told(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(RevisionError, match="no such commit, branch or tag"):
        vd.diff("v99", "HEAD", app="shop:app", cwd=str(shop))
    with pytest.raises(GitError):
        vd.diff("HEAD~1", "HEAD", app="shop:app", cwd=str(tmp_path))

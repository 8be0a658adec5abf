"""`velodrome.diff` races two revisions of an app, as `velodrome diff HEAD~1 HEAD --app` does."""

from pathlib import Path

import pytest
from tests.shop_repository import slower

import velodrome as vd
from velodrome.model.errors import GitError, RevisionError


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository whose last commit made the app wait 20 ms instead of 2."""
    return slower(tmp_path / "shop")


@pytest.mark.exhaustive
@pytest.mark.measured
def test_a_slower_commit_is_a_regression(shop: Path, tmp_path: Path) -> None:
    for number in range(2):  # other programs may have taken the CPUs, and then it may be undecided
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


def test_what_is_no_revision_or_no_repository_is_reported(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(RevisionError, match="no such commit, branch or tag"):
        vd.diff("v99", "HEAD", app="shop:app", cwd=str(shop))
    with pytest.raises(GitError):
        vd.diff("HEAD~1", "HEAD", app="shop:app", cwd=str(tmp_path))

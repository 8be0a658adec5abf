"""Two revisions of an app, raced against each other as a user runs it."""

import sys
import venv
from pathlib import Path

import pytest
from tests.shop_repository import SHOP, git, slower

from velodrome.cli.main import main
from velodrome.judge.statistics import next_look
from velodrome.run.apps.revisions import KIND


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository whose last commit made the app wait 20 ms instead of 2."""
    return slower(tmp_path / "shop")


def velodrome(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["velodrome", "diff", *arguments])
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


@pytest.mark.measured
def test_a_slower_commit_is_a_regression_and_its_worktrees_are_gone(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of_app = ["--app", "shop:app", "--cwd", str(shop), "--stack", "gunicorn-gthread"]
    loads = ["--connections", "4", "-z", "0.5s", "--blocks", "4", "--wait"]
    gates = ["--fail-on", "regression", "--metrics", "throughput,p50"]
    for number in range(2):  # other programs may have taken the CPUs, and then it may be undecided
        run = tmp_path / f"run-{number}"
        ended = velodrome(monkeypatch, "HEAD~1", "HEAD", *of_app, *loads, "--run", str(run), *gates)
        printed = capsys.readouterr()
        if "Other programs" not in printed.out:
            break
    spoilt = "Other programs" in printed.out
    assert ended == (4 if spoilt else 1)
    assert ("Insufficient data" if spoilt else "✗ Regression") in printed.out
    assert f"HEAD ({git(shop, 'rev-parse', 'HEAD')[:7]})" in printed.out
    assert "block 4  after" in printed.err
    assert f"/{KIND}-" not in git(shop, "worktree", "list")
    # What was measured is reported again without a new run.
    assert velodrome(monkeypatch, str(run), "--metrics", "throughput,p50") == 0
    assert capsys.readouterr().out == printed.out


def test_an_app_that_is_not_imported_from_its_revision_is_refused(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "installed.py").write_text(SHOP.format(seconds=0))
    words = ["--app", "installed:app", "--cwd", str(shop), "--env", f"PYTHONPATH={elsewhere}"]
    assert velodrome(monkeypatch, "HEAD~1", "HEAD", *words) == 2
    assert f"{elsewhere}/installed.py, which is not part of the revision" in capsys.readouterr().err
    assert f"/{KIND}-" not in git(shop, "worktree", "list")


@pytest.mark.parametrize("cured", [False, True])
def test_a_package_that_is_installed_from_the_working_tree_is_refused_though_the_named_module_is_not(
    cured: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after `pip install -e .`, with the environment in the repository as it often is."""
    top = tmp_path / "project"
    (top / "src" / "shop").mkdir(parents=True)
    git(top, "init", "--quiet")
    (top / "src" / "shop" / "__init__.py").write_text(SHOP.format(seconds=0))
    (top / "wsgi.py").write_text("import third_party\nfrom shop import app\n")
    (top / ".gitignore").write_text(".venv\n")
    for message in ("one", "two"):
        (top / "NOTES").write_text(message)
        git(top, "add", ".")
        git(top, "commit", "--quiet", "-m", message)
    venv.create(top / ".venv", symlinks=True, with_pip=False)
    (packages,) = (top / ".venv" / "lib").glob("python*/site-packages")
    (packages / "__editable__.shop.pth").write_text(f"{top}/src\n")
    (packages / "third_party.py").write_text("")  # what is installed there is of both, and no revision's
    (top / "wsgi.py").write_text("not = what is committed")
    words = ["--app", "wsgi:app", "--cwd", str(top), "--python", str(top / ".venv"), "--stack", "waitress"]
    if cured:  # as is reported
        words += ["--env", "PYTHONPATH=src", "--connections", "2", "-z", "0.5s", "--blocks", "1"]
        words += ["--run", str(tmp_path / "run"), "--wait"]
        assert velodrome(monkeypatch, "HEAD~1", "HEAD", *words) in (0, 4)
        return
    assert velodrome(monkeypatch, "HEAD~1", "HEAD", *words) == 2
    sentence = capsys.readouterr().err
    assert f"{top}/src/shop/__init__.py, which is not part of the revision" in sentence
    assert "--env PYTHONPATH=src" in sentence
    assert f"/{KIND}-" not in git(top, "worktree", "list")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["HEAD", "--app", "shop:app"], "name two revisions"),
        (["HEAD~1", "HEAD", "--app", "shop:app", "--rate", "0"], "give requests a second, above 0"),
        (["HEAD~1", "HEAD", "--app", "shop:app", "-z", "0s"], "measure for 0.5 s at least"),
        (["HEAD~1", "HEAD", "--app", "shop:app", "--link", "rtt=7"], "write 160ms, 1.5ms or 1s"),
        (["HEAD~1", "HEAD", "--app", "shop:app", "--memory", "lots"], "write 512MB"),
        (["HEAD~1", "HEAD", "--app", "shop:app", "--stack", "./no.py"], "could not be loaded"),
        (["HEAD~1", "HEAD", "--app", "shop:app", "--budget", "soon"], "'soon' is not a span of time"),
        (["HEAD~1", "HEAD", "--app", "shop:app", "--run", "/dev/null/run"], "/dev/null is a file"),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert velodrome(monkeypatch, *arguments) == 2
    assert sentence in capsys.readouterr().err


def test_a_setup_that_fails_ends_it_before_anything(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--app", "shop:app", "--cwd", str(shop), "--setup", "echo no database; false"]
    assert velodrome(monkeypatch, "HEAD~1", "HEAD", *words) == 3
    assert "no database" in capsys.readouterr().err
    assert f"/{KIND}-" not in git(shop, "worktree", "list")


@pytest.mark.parametrize(("blocks", "after"), [(1, 4), (4, 8), (7, 8), (8, 16), (64, 64)])
def test_it_looks_each_time_there_are_twice_as_many_blocks(blocks: int, after: int) -> None:
    assert next_look(blocks) == after

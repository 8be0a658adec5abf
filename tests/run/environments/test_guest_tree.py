"""The guest tree holds guest/ and nothing of the host, and never changes under a server."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from velodrome.run.environments import guest_tree


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VELODROME_CACHE", str(tmp_path / "cache"))


def imports(tree: Path, module: str, *beside: str) -> bool:
    """Whether an interpreter without its site-packages can import a module from the tree, or else from beside it."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import {module}"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tree), *beside]),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        cwd=tree,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def test_a_server_sees_guest_code_and_no_host_code() -> None:
    tree = guest_tree.export()
    assert imports(tree, "velodrome.guest.catalog")
    assert not imports(tree, "velodrome.run")
    assert not imports(tree, "velodrome.model")


def test_a_velodrome_that_is_installed_beside_it_is_not_seen() -> None:
    host = guest_tree.SOURCE.parents[1]  # as an editable installation names it
    tree = guest_tree.export()
    assert imports(tree, "velodrome.guest.catalog", str(host))
    assert not imports(tree, "velodrome.model", str(host))


def test_the_same_content_is_copied_once() -> None:
    first = guest_tree.export()
    before = first.stat().st_ino
    assert guest_tree.export() == first
    assert first.stat().st_ino == before
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_a_file_of_the_user_s_lies_among_those_that_ship_in_a_tree_of_its_own(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("A = 1\n")
    path = guest_tree.export([mine])
    assert (path / "velodrome" / "guest" / "stacks" / "mine.py").read_text() == "A = 1\n"
    assert imports(path, "velodrome.guest.stacks.mine")
    mine.write_text("A = 2\n")
    two = guest_tree.export([mine])
    assert len({guest_tree.export(), path, two}) == 3
    assert (path / "velodrome" / "guest" / "stacks" / "mine.py").read_text() == "A = 1\n"


def test_one_of_which_a_power_cut_took_something_is_made_anew() -> None:
    tree = guest_tree.export()
    file = tree / "velodrome" / "guest" / "catalog.py"
    whole = file.read_bytes()
    for harm in (lambda: file.write_bytes(b""), file.unlink):
        harm()
        assert guest_tree.tree_changed(tree)
        assert guest_tree.export() == tree
        assert file.read_bytes() == whole
        assert not guest_tree.tree_changed(tree)
    assert [path.name for path in tree.parent.iterdir()] == [tree.name]


def test_many_at_once_get_one_whole_tree() -> None:
    with ThreadPoolExecutor(8) as pool:
        trees = set(pool.map(lambda _: guest_tree.export(), range(16)))
    assert len(trees) == 1
    tree = trees.pop()
    copied = {
        path.relative_to(tree / "velodrome" / "guest")
        for path in (tree / "velodrome" / "guest").rglob("*.py")
    }
    assert copied == {path.relative_to(guest_tree.SOURCE) for path in guest_tree.SOURCE.rglob("*.py")}
    assert [path.name for path in tree.parent.iterdir()] == [tree.name]

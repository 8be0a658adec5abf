"""Temporary folders go with whom they belong to; a sweep takes those of the dead and no others."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from velodrome.model.errors import ScratchError
from velodrome.run.environments.interpreter import bytecode
from velodrome.run.supervision import scratch
from velodrome.run.supervision.warden import LOCK

HOLDING = """
import sys, time
from velodrome.run.supervision import scratch
folder = scratch.make_folder("run")
(folder / "file").write_text("dear")
print(folder, flush=True)
sys.stdin.readline()
"""


def begun(place: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start somebody who makes a folder, and return it."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING],
        env={**os.environ, "TMPDIR": str(place)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def folder_of(place: Path, *, lock: bool = True, age_s: float = 0.0, pid: int = 1) -> Path:
    folder = place / f"velodrome-{pid}-{os.urandom(8).hex()}"
    folder.mkdir()
    if lock:
        (folder / LOCK).touch()
    os.utime(folder, (time.time() - age_s,) * 2)
    return folder


def test_what_is_held_is_gone_after_the_block_and_what_is_made_after_the_process(tmp_path: Path) -> None:
    with scratch.hold_folder("look") as held:
        assert held.parent == scratch.home().folder
        assert held.stat().st_mode & 0o777 == 0o700
        assert held.parent.stat().st_mode & 0o777 == 0o711
    assert not held.exists()
    process, made = begun(tmp_path)
    with process:
        assert (made / "file").read_text() == "dear"
        assert scratch.sweep(tmp_path) == 0
        assert made.exists()
        process.communicate("\n", timeout=20)
    assert list(tmp_path.iterdir()) == []


def test_what_one_killed_outright_left_is_swept_and_not_before(tmp_path: Path) -> None:
    process, made = begun(tmp_path)
    with process:
        process.kill()
    assert made.exists()
    assert scratch.sweep(tmp_path) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_next_velodrome_sweeps_by_itself(tmp_path: Path) -> None:
    process, left = begun(tmp_path)
    with process:
        process.kill()
    process, made = begun(tmp_path)
    with process:
        assert not left.exists()
        assert made.exists()
        process.communicate("\n", timeout=20)


def test_a_lock_that_anybody_holds_is_respected_whatever_the_number_in_the_name(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, pid=4194399)  # nobody's number here, and somebody's in another container
    with (folder / LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert scratch.sweep(tmp_path) == 0
        assert folder.exists()
    assert scratch.sweep(tmp_path) == 1


def test_what_is_no_folder_of_ours_is_left_alone(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    (kept / "deep").mkdir(parents=True)
    (kept / "deep" / "file").write_text("dear")
    (kept / LOCK).touch()
    (tmp_path / f"velodrome-1-{'0' * 16}").symlink_to(kept)
    (tmp_path / f"velodrome-2-{'0' * 16}").write_text("a file")
    (tmp_path / "velodrome-runs").mkdir()
    full = folder_of(tmp_path, lock=False, age_s=1e6)
    (full / "file").touch()  # of an older velodrome, which had no locks
    fresh = folder_of(tmp_path, lock=False)  # just being made
    linked = folder_of(tmp_path, lock=False)
    (linked / LOCK).symlink_to(kept / LOCK)
    before = sorted(tmp_path.rglob("*"))
    assert scratch.sweep(tmp_path) == 0
    assert sorted(tmp_path.rglob("*")) == before
    assert fresh.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_folders_of_other_users_are_left_alone_also_by_root(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    os.chown(folder, 65534, 65534)
    assert scratch.sweep(tmp_path) == 0
    assert folder.exists()


def test_links_in_a_swept_folder_are_removed_and_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("dear")
    folder = folder_of(tmp_path)
    (folder / "link").symlink_to(kept)
    (folder / "deep").mkdir()
    (folder / "deep" / "link").symlink_to(kept)
    assert scratch.sweep(tmp_path) == 1
    assert not folder.exists()
    assert (kept / "file").read_text() == "dear"


def test_an_empty_folder_without_a_lock_goes_when_it_is_old(tmp_path: Path) -> None:
    old = folder_of(tmp_path, lock=False, age_s=scratch.UNLOCKED_S + 60)
    scratch.sweep(tmp_path)
    assert not old.exists()


def test_a_fork_has_a_folder_of_its_own_and_leaves_ours(tmp_path: Path) -> None:
    code = """
import os
from velodrome.run.supervision import scratch
ours = scratch.make_folder("run")
if os.fork() == 0:
    theirs = scratch.make_folder("run")
    assert theirs.parent != ours.parent
    scratch._end()
    os._exit(theirs.exists())
_, status = os.wait()
assert status == 0
assert ours.exists()
"""
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)}, check=True)
    assert list(tmp_path.iterdir()) == []


def test_what_is_compiled_of_an_app_in_such_a_folder_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VELODROME_CACHE", str(tmp_path / "cache"))
    with scratch.hold_folder("revisions") as folder:
        assert bytecode("/usr/bin/python3", str(folder)).is_relative_to(scratch.home().folder)
    for elsewhere in ("", str(tmp_path), "/no/such/folder"):
        assert bytecode("/usr/bin/python3", elsewhere).is_relative_to(tmp_path / "cache")


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ScratchError, match="Not a directory"):
        scratch._make_home(tmp_path / "file")


def test_a_sweep_with_nothing_to_do_takes_milliseconds(tmp_path: Path) -> None:
    for number in range(2000):
        (tmp_path / f"other-{number}").touch()
    took = []
    for _ in range(5):
        began = time.perf_counter()
        assert scratch.sweep(tmp_path) == 0
        took.append(time.perf_counter() - began)
    assert min(took) < 0.05

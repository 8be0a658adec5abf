"""The cache: what is used is known and stays, what was not used for long goes, and nothing else is touched."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from velodrome.run import cache

DAY_S = cache.DAY_S
USES = """
import signal, sys
from pathlib import Path
from velodrome.run import cache
cache.use(Path(sys.argv[1]), "a race")
print("used", flush=True)
signal.pause()
"""


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("VELODROME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def kept(kind: str, number: int, days: float, size: int = 4096) -> Path:
    """Put something into the cache that was last used so long ago."""
    path = cache.folder(kind) / f"{number:016x}"
    path.mkdir()
    (path / "data").write_bytes(os.urandom(size))
    mark = cache.folder(cache.USED) / f"{kind}-{path.name}"
    mark.write_text(f"number {number}")
    os.utime(mark, (time.time() - days * DAY_S,) * 2)
    return path


def names() -> list[str]:
    return [f"{entry.kind} {int(entry.name, 16)}" for entry in cache.inventory().every]


def test_it_is_listed_with_size_use_and_purpose_what_was_used_last_first() -> None:
    kept("envs", 1, days=5, size=100_000)
    kept("overlays", 2, days=1)
    newest, oldest = cache.inventory().every
    assert (newest.kind, newest.what, oldest.kind, oldest.what) == (
        "overlays",
        "number 2",
        "envs",
        "number 1",
    )
    assert 100_000 <= oldest.size_bytes < 130_000
    assert oldest.freed_bytes == oldest.size_bytes
    assert oldest.last_used == pytest.approx(time.time() - 5 * DAY_S, abs=60)
    assert not oldest.in_use


def test_files_that_have_names_elsewhere_count_once_and_free_nothing(tmp_path: Path) -> None:
    first, second = kept("envs", 1, 3), kept("envs", 2, 2)
    elsewhere = tmp_path / "uv"
    elsewhere.write_bytes(bytes(1_000_000))
    for path in (first / "a", first / "b", second / "a"):
        os.link(elsewhere, path)
    stock = cache.inventory()
    assert all(entry.size_bytes > 1_000_000 > entry.freed_bytes for entry in stock.every)
    assert 1_000_000 < stock.size_bytes < 1_100_000
    gone = cache.prune(older_than_s=0)
    assert len(gone.every) == 2
    assert gone.size_bytes - gone.freed_bytes == pytest.approx(1_000_000, rel=0.01)
    assert elsewhere.stat().st_size == 1_000_000


def test_files_shared_by_two_that_go_together_are_freed() -> None:
    first, second = kept("envs", 1, 3), kept("envs", 2, 2)
    (first / "a").write_bytes(bytes(500_000))
    os.link(first / "a", second / "a")
    assert cache.prune(older_than_s=0).freed_bytes > 500_000


def test_what_was_not_used_for_so_long_goes_with_its_notes(root: Path) -> None:
    kept("envs", 1, days=31)
    kept("guest", 2, days=29)
    kept("bytecode", 3, days=400)
    (root / "envs" / f"{1:016x}.failed").write_text("[]")
    cache.prune(older_than_s=30 * DAY_S)
    assert names() == ["guest 2"]
    assert list((root / "envs").iterdir()) == []
    assert [path.name for path in (root / "used").iterdir()] == [f"guest-{2:016x}"]


def test_what_was_used_longest_ago_goes_until_the_rest_is_small_enough() -> None:
    for number in range(1, 6):
        kept("envs", number, days=number, size=1_000_000)
    cache.prune(to_bytes=2_500_000)
    assert names() == ["envs 1", "envs 2"]
    cache.prune(to_bytes=10_000_000)
    assert names() == ["envs 1", "envs 2"]


def test_what_a_living_velodrome_uses_stays_until_that_is_gone() -> None:
    path = kept("envs", 1, days=400)
    with subprocess.Popen([sys.executable, "-c", USES, str(path)], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        (entry,) = cache.inventory().every
        assert entry.in_use
        assert entry.what == "a race"
        assert cache.prune(older_than_s=0, to_bytes=0).every == ()
        assert (path / "data").exists()
        running.send_signal(signal.SIGKILL)
    assert entry.last_used > time.time() - DAY_S, "it is used now"
    assert [gone.name for gone in cache.prune(older_than_s=0).every] == [path.name]


def test_what_is_being_made_stays() -> None:
    path = kept("envs", 1, days=400)
    lock = cache.lock_file(path.with_suffix(".lock"))
    assert lock is not None
    assert cache.prune(older_than_s=0).every == ()
    os.close(lock)
    assert len(cache.prune(older_than_s=0).every) == 1


def test_nothing_that_velodrome_did_not_put_there_is_touched(root: Path) -> None:
    """A user may name a folder that holds more than the cache."""
    for name in ("envs/my-project", "envs/0123", "photos/2020", "guest/notes.txt"):
        (root / name).mkdir(parents=True)
        os.utime(root / name, (1, 1))
    cache.prune(older_than_s=0, to_bytes=0)
    assert all(
        (root / name).is_dir() for name in ("envs/my-project", "envs/0123", "photos/2020", "guest/notes.txt")
    )


def test_crashes_and_what_is_looked_at_go_when_they_are_a_day_old() -> None:
    now = time.time()
    for name, age_s in (("crashes/velodrome-crash-1.txt", 0), ("crashes/velodrome-crash-2.txt", 2 * DAY_S)):
        path = cache.folder("crashes").parent / name
        path.write_text("a traceback")
        os.utime(path, (now - age_s,) * 2)
    left = cache.folder("looks") / "look-abc"
    left.mkdir()
    cache.prune(older_than_s=0)
    assert [entry.name for entry in cache.inventory().every if entry.kind == "crashes"] == [
        "velodrome-crash-1.txt"
    ]
    assert left.exists()
    os.utime(left, (now - 2 * DAY_S,) * 2)
    cache.prune(older_than_s=DAY_S)
    assert not left.exists()


def test_a_link_that_leads_elsewhere_is_not_followed(root: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").touch()
    link = cache.folder("envs") / f"{7:016x}"
    link.symlink_to(mine)
    os.utime(link, (1, 1), follow_symlinks=False)
    cache.prune(older_than_s=0)
    assert not link.is_symlink()
    assert (mine / "file").exists()


def test_what_no_run_of_ninety_days_used_goes_by_itself_once_a_day_and_that_is_reported(root: Path) -> None:
    messages: list[str] = []
    kept("envs", 1, days=91)
    kept("envs", 2, days=89)
    cache.tidy(messages.append)
    assert names() == ["envs 2"]
    assert len(messages) == 1
    assert "90 days" in messages[0]
    kept("envs", 3, days=91)
    cache.tidy(messages.append)
    assert names() == ["envs 2", "envs 3"]
    os.utime(root / cache.TIDIED, (time.time() - DAY_S - 60,) * 2)
    cache.tidy(messages.append)
    assert names() == ["envs 2"]


def test_what_a_killed_installer_left_goes_at_the_next_start_unless_it_lives() -> None:
    left = cache.folder("envs") / f".building-{1:016x}-00ff"
    left.mkdir()
    lock = cache.lock_file(cache.folder("envs") / f"{1:016x}.lock")
    assert lock is not None
    cache.tidy(print)
    assert left.exists()
    os.close(lock)
    cache.tidy(print)
    assert not left.exists()


def test_who_uses_what_is_just_being_removed_waits_and_then_finds_it_gone() -> None:
    path = kept("envs", 1, days=1)
    mark = cache.lock_file(cache.folder(cache.USED) / f"envs-{path.name}")
    assert mark is not None
    with subprocess.Popen([sys.executable, "-c", USES, str(path)], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.5)
        (cache.folder(cache.USED) / f"envs-{path.name}").unlink()
        os.close(mark)
        assert running.stdout.readline() == b"used\n"
        (entry,) = cache.inventory().every
        assert entry.in_use, "by the file of that name, not by the one that was removed"
        running.kill()

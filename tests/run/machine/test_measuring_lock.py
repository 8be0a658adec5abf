"""One race at a time, also of users whose caches differ, and whatever lies where the lock is to be."""

import fcntl
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import velodrome
from velodrome.model.errors import BusyError, CacheError, LockError
from velodrome.run import cache
from velodrome.run.machine import measuring_lock
from velodrome.run.machine.measuring_lock import alone

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="a second user needs root")


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield where the lock of all users is: a folder of everybody's, as /tmp is."""
    folder = Path(f"/tmp/velodrome-lock-test-{os.getpid()}")
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setenv(measuring_lock.VARIABLE, str(folder / "lock"))
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    before = os.umask(0o022)
    yield folder / "lock"
    os.umask(before)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def test_users_whose_caches_differ_exclude_each_other_by_a_file_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(measuring_lock.VARIABLE, str(tmp_path / "lock"))
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "one"))
    with alone("study one"):
        monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "two"))
        with pytest.raises(BusyError, match="study one"), alone("study two"):
            pass


def test_without_one_the_cache_holds_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(measuring_lock.VARIABLE, raising=False)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    with alone("study one"):
        assert "study one" in (tmp_path / measuring_lock.NAME).read_text()


HOLDING = """\
import sys
from velodrome.run.machine.measuring_lock import alone
from velodrome.model.errors import BusyError
try:
    with alone(sys.argv[1]):
        print("held", flush=True)
        sys.stdin.read()
except BusyError as error:
    print(error, flush=True)
"""


def readable_python() -> str:
    for path in (sys.executable, f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"):
        tried = subprocess.run(
            ["sh", "-c", 'exec "$0" -c ""', path], user=NOBODY, check=False, capture_output=True
        )
        if tried.returncode == 0:
            return path
    pytest.skip("no interpreter of this version that other users can run")


@contextmanager
def by_nobody(what: str) -> Iterator[tuple[int, str]]:
    """Let another user measure, and yield their process and the first line they print."""
    seen = os.pathsep.join((str(Path(velodrome.__file__).parents[1]), sysconfig.get_path("purelib")))
    env = {
        "PYTHONPATH": seen,
        "VELODROME_CACHE": "/proc/nowhere",
        measuring_lock.VARIABLE: os.environ[measuring_lock.VARIABLE],
    }
    with subprocess.Popen(
        [readable_python(), "-c", HOLDING, what],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        umask=0o077,
        cwd="/",
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        yield other.pid, other.stdout.readline()
        other.stdin.close()


@as_root
def test_another_user_waits_for_us_and_is_told_who_we_are(shared: Path) -> None:
    with alone("study one"), by_nobody("study two") as (_, sentence):
        assert f"study one, process {os.getpid()} of root" in sentence
    assert shared.stat().st_mode & 0o777 == 0o666


@as_root
def test_we_wait_for_another_user_and_are_told_who_they_are(shared: Path) -> None:
    waited: list[str] = []
    with by_nobody("study two") as (pid, sentence):
        assert sentence == "held\n"
        with pytest.raises(BusyError, match=f"study two, process {pid} of nobody"), alone("one"):
            pass
        with pytest.raises(BusyError), alone("one", 0.3, waited.append):
            pass
    assert waited == [f"study two, process {pid} of nobody"]
    with alone("study three"):
        assert "study three" in shared.read_text()


@as_root
def test_a_file_that_only_its_owner_may_write_is_held_by_others_all_the_same(shared: Path) -> None:
    shared.write_text("study of yesterday, process 1 of root")
    shared.chmod(0o644)
    with by_nobody("study two") as (pid, sentence):
        assert sentence == "held\n"
        # It could not say who it is, so the kernel does.
        with pytest.raises(BusyError, match=f"process {pid} of nobody"), alone("one"):
            pass
    assert shared.read_text() == "study of yesterday, process 1 of root"


def to_link(path: Path) -> str:
    target = path.with_name("precious")
    target.write_text("precious")
    path.symlink_to(target)
    return "symbolic link"


def to_nowhere(path: Path) -> str:
    path.symlink_to(path.with_name("nowhere"))
    return "symbolic link"


def to_foreign(path: Path) -> str:
    path.write_text("precious")
    return "something else"


def to_pipe(path: Path) -> str:
    os.mkfifo(path)
    return "ordinary file"


@pytest.mark.parametrize("made", [to_link, to_nowhere, to_foreign, to_pipe])
def test_what_is_no_lock_is_neither_followed_nor_written(shared: Path, made: Callable[[Path], str]) -> None:
    reason = made(shared)
    with pytest.raises(LockError, match=reason) as caught, alone("study"):
        pytest.fail("it is no lock")
    assert caught.value.exit_code == 3
    assert "VELODROME_LOCK" in str(caught.value)
    precious = shared.with_name("precious")
    assert not precious.exists() or precious.read_text() == "precious"
    assert not shared.with_name("nowhere").exists()
    if made is to_foreign:
        assert shared.read_text() == "precious"


def test_a_lock_that_is_taken_away_while_it_is_waited_for_is_made_anew(shared: Path) -> None:
    shared.write_text("")
    with shared.open() as old:
        fcntl.flock(old, fcntl.LOCK_EX)
        renewed: list[str] = []

        def renew(_: str) -> None:
            shared.unlink()
            renewed.append("")

        with alone("study", 10.0, renew):
            assert renewed
            assert "study" in shared.read_text()


def test_what_a_stranger_wrote_reaches_no_terminal_as_it_is(shared: Path) -> None:
    shared.write_text(f"\x1b]0;OWNED\x07, process {os.getpid()}")
    with shared.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BusyError) as caught, alone("study"):
            pass
    assert str(caught.value).isprintable()


def test_long_names_do_not_make_a_lock_foreign(shared: Path) -> None:
    for _ in range(2):
        with alone("Ω" * 500 + "\n, process x"):
            assert shared.stat().st_size <= measuring_lock.LONGEST


def test_a_folder_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(measuring_lock.VARIABLE, "/proc/nowhere/lock")
    with pytest.raises(LockError, match=f"/proc/nowhere/lock(.|\n)*{os.strerror(2)}"), alone("study"):
        pass


def test_a_cache_without_room_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(measuring_lock.VARIABLE, raising=False)
    monkeypatch.setenv(cache.VARIABLE, "/proc/nowhere")
    with pytest.raises(CacheError, match=r"/proc/nowhere(.|\n)*VELODROME_CACHE"), alone("study"):
        pass


def test_waiting_ends_when_the_holder_does(shared: Path) -> None:
    with shared.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        began = time.monotonic()
        with alone("study", 10.0, lambda _: fcntl.flock(held, fcntl.LOCK_UN)):
            assert time.monotonic() - began < 5

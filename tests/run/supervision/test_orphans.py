"""Only what a dead velodrome left is ended at the next start, and all of that."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.run.supervision.ends import gone
from tests.waiting import eventually

from velodrome.run.supervision import scratch
from velodrome.run.supervision.warden import start_time

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere nobody may read the marks of processes"
)
MARK = f"{scratch.MARK}_OF_TEST_{os.getpid()}"
"""Where marks stand here: any velodrome that starts meanwhile ends what carries one under the real name."""
DEAD = 4194399
"""Above the largest process number of Linux."""
WITH_CHILD = """
import os, sys, time
if os.fork() == 0:
    code = "import os; os.fork() or os.execve('/bin/sleep', ['sleep', '600'], {}); os.wait()"
    os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", code], {})
print("up", flush=True)
time.sleep(600)
"""
"""With a child and a grandchild that have no mark."""


@pytest.fixture(autouse=True)
def marks_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "_ENTRY", f"{MARK}=".encode())


def carrier(mark: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WITH_CHILD], env={MARK: mark}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def ends(mark: str) -> bool:
    """Return whether a sweep ends a process with that mark, and then what is below it too."""
    with carrier(mark) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert eventually(lambda: len(psutil.Process(process.pid).children(recursive=True)) == 2)
        below = psutil.Process(process.pid).children(recursive=True)
        try:
            scratch.end_orphans()
            ended = process.poll() is not None or not start_time(process.pid)
            if ended:
                assert eventually(lambda: gone(below))
            return ended
        finally:
            process.kill()
            for child in below:
                if not gone([child]):
                    child.kill()


def test_what_carries_the_mark_of_a_dead_velodrome_is_ended_with_what_is_below_it(tmp_path: Path) -> None:
    assert ends(f"00:{DEAD}:77:{tmp_path}/lock")
    (tmp_path / "lock").touch()  # there, and held by nobody
    assert ends(f"00:{DEAD}:77:{tmp_path}/lock")


def test_a_number_that_was_given_to_another_process_is_no_living_velodrome(tmp_path: Path) -> None:
    assert ends(f"00:{os.getpid()}:{start_time(os.getpid()) - 1}:{tmp_path}/lock")


def test_what_a_living_velodrome_or_a_living_warden_cares_for_is_left_alone(tmp_path: Path) -> None:
    assert not ends(scratch.mark(f"{tmp_path}/lock"))
    # Its velodrome is dead, and a warden of it is at work still.
    assert not ends(f"00:{DEAD}:77:{scratch.home().lock}")


@pytest.mark.parametrize(
    "mark", ["", "0badcafe", "00:x:77:/no/lock", f"00:{DEAD}:77", f"00:{DEAD}:77:", f"00:{DEAD}:77:/dev/zero"]
)
def test_a_mark_that_tells_no_owner_condemns_nobody(mark: str) -> None:
    assert not ends(mark)


def test_neither_we_nor_who_started_us_are_orphans(tmp_path: Path) -> None:
    own = f"scratch._ENTRY = b'{MARK}='"
    code = f"from velodrome.run.supervision import scratch; {own}; scratch.end_orphans(); print('alive')"
    mark = f"00:{DEAD}:77:{tmp_path}/lock"
    ran = subprocess.run(
        ["/bin/sh", "-c", f'"{sys.executable}" -c "{code}"; echo too'],
        env={**os.environ, MARK: mark},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == ["alive", "too"]

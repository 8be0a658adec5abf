"""Workers end with their parent, and a death is not hidden."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import os, sys, time
from velodrome.guest.workers import with_workers

def work():
    with open(os.path.join(sys.argv[1], str(os.getpid())), "w"):
        pass
    time.sleep(60)

with_workers(int(sys.argv[2]), work)
"""


def start(folder: Path, count: int) -> tuple["subprocess.Popen[bytes]", list[int]]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), str(count)], stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 20
    while len(list(folder.iterdir())) < count:
        assert time.monotonic() < until
        time.sleep(0.01)
    return process, [int(path.name) for path in folder.iterdir()]


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_to_the_parent_ends_all_workers(tmp_path: Path, signum: int) -> None:
    process, workers = start(tmp_path, 3)
    assert process.pid not in workers
    process.send_signal(signum)
    assert process.wait(10) == 0
    assert all(map(gone, workers))


def test_a_worker_that_dies_takes_the_others_with_it_and_the_exit_status_tells(tmp_path: Path) -> None:
    process, workers = start(tmp_path, 3)
    os.kill(workers[0], signal.SIGKILL)
    assert process.wait(10) == 1
    assert all(map(gone, workers))


def test_one_worker_is_the_process_itself(tmp_path: Path) -> None:
    process, workers = start(tmp_path, 1)
    assert workers == [process.pid]
    process.terminate()
    assert process.wait(10) == -signal.SIGTERM

"""Workers end with their parent, and a death is not hidden."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from velodrome.guest.workers import listen

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


def test_small_writes_to_connections_of_a_shared_listener_go_out_at_once() -> None:
    """Nagle's algorithm is off, as on connections of the listeners that asyncio makes itself."""

    async def nodelay() -> int:
        found = asyncio.get_running_loop().create_future()

        async def look(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found.set_result(
                writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            )
            writer.close()

        with listen("127.0.0.1", 0, 10) as listener:
            server = await asyncio.start_server(look, sock=listener)
            async with server:
                _, writer = await asyncio.open_connection(*listener.getsockname())
                seen: int = await asyncio.wait_for(found, 5)
                writer.close()
        return seen

    assert asyncio.run(nodelay()) != 0

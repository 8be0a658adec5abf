"""What probes count that need the server's process: requests lost at the stop, work for nobody, what is left behind."""

import asyncio
import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from velodrome.run.instruments import situations
from velodrome.run.instruments.clients import Where

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="what /proc tells"),
]
PROGRAM = """
import asyncio, os, signal, sys, time
how = sys.argv[1]
OK = b"HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello"
working = set()
turns, places = asyncio.Semaphore(8), asyncio.Semaphore(4)

def compute(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until: pass

async def work(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    if how in ("stays", "leaves"):
        for _ in range(8):
            compute(0.01)
            await asyncio.sleep(0)
            if how == "leaves" and reader.at_eof() or reader.exception(): return
    elif how == "hangs":
        # Who has a place needs another turn, which those hold that wait for a place.
        async with turns:
            await places.acquire()
        await asyncio.sleep(0.02)
        async with turns:
            places.release()
    else:
        await asyncio.sleep(0.1)
    writer.write(OK)
    await writer.drain()

async def handle(reader, writer):
    task = asyncio.ensure_future(work(reader, writer))
    working.add(task)
    try: await task
    except (OSError, asyncio.IncompleteReadError): pass
    finally: working.discard(task)

async def main():
    stopped = asyncio.Event()
    if how == "graceful":
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stopped.wait()
    server.close()
    await asyncio.gather(*working)

asyncio.run(main())
"""


def standing(pid: int, **more: Any) -> Any:
    """Return as much of a standing server as a situation looks at."""
    process = SimpleNamespace(stop_signal=int(signal.SIGTERM))
    server = SimpleNamespace(pid=pid, serving=SimpleNamespace(process=lambda: process))
    booted = SimpleNamespace(server=server, upstreams=(), site=SimpleNamespace(server=None))
    return SimpleNamespace(booted=booted, **more)


@contextmanager
def served(how: str) -> Iterator[tuple[Where, Any]]:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, how], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Where("127.0.0.1", int(process.stdout.readline())), standing(process.pid)
        finally:
            process.kill()


def test_requests_in_flight_at_sigterm_are_lost_where_nobody_waits_for_them() -> None:
    with served("at once") as (at, server):
        lost = asyncio.run(situations.stop(at, server))
    assert (lost.hits, lost.of, lost.outcomes) == (16, 16, {"reset": 16})
    with served("graceful") as (at, server):
        kept = asyncio.run(situations.stop(at, server))
    assert (kept.hits, kept.of, kept.outcomes) == (0, 16, {"ok": 16})
    with served("at once") as (at, server):
        unprovoked = asyncio.run(situations.stop(at, server, signalled=0))
    assert (unprovoked.hits, unprovoked.of) == (0, 16)


def test_work_whose_client_has_left_goes_on_unless_somebody_looks() -> None:
    with served("stays") as (at, server):
        goes_on = asyncio.run(situations.leave(at, server))
    assert goes_on.of == 16
    assert goes_on.hits >= 8
    with served("leaves") as (at, server):
        ends = asyncio.run(situations.leave(at, server))
    assert ends.of == 16
    assert ends.hits <= 4


def test_requests_for_which_nothing_is_computed_are_not_worked_on_for_nobody() -> None:
    with served("graceful") as (at, server):
        assert asyncio.run(situations.leave(at, server)).of == 0


def test_loads_that_leave_memory_or_descriptors_behind_are_counted() -> None:
    kept: list[Any] = []
    opened: list[int] = []

    def closed(connections: int, seconds: float) -> Any:
        kept.append(mmap.mmap(-1, 400_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        kept[-1].write(b"x" * 400_000)
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(20))
        return SimpleNamespace(load=SimpleNamespace(answers=1000, ok=1000))

    leaking = standing(os.getpid(), closed=closed)
    at = Where("127.0.0.1", 1)
    try:
        memory = asyncio.run(situations.grow(at, leaking, least=64))
        descriptors = asyncio.run(situations.grow(at, leaking, least=0.01, descriptors=1))
    finally:
        for one in opened:
            os.close(one)
    assert memory.of == memory.hits == descriptors.of == descriptors.hits == 8
    idle = asyncio.run(situations.grow(at, leaking, loaded=0, descriptors=1))
    assert (idle.hits, idle.of) == (0, 8)


def test_requests_that_wait_for_each_other_hang_and_slow_ones_do_not() -> None:
    with served("hangs") as (at, server):
        hung = asyncio.run(situations.hang(at, server, count=32))
    assert hung.of == 32
    assert hung.hits > 16
    with served("graceful") as (at, server):
        slow = asyncio.run(situations.hang(at, server, count=32))
    assert (slow.hits, slow.of) == (0, 32)


def test_connections_are_counted_by_the_process_that_holds_them() -> None:
    with served("graceful") as (at, server):
        found = asyncio.run(situations.spread(at, server, connections=12))
    assert (found.hits, found.of) == (12, 12)
    assert found.outcomes == {"ok": 12}

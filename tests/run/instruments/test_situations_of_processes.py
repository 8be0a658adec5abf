"""What probes count that need the server's process: requests lost at the stop, work for nobody, what is left behind."""

import asyncio
import itertools
import mmap
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from velodrome.run.instruments import life_cycle, processes, situations
from velodrome.run.instruments.clients import Where
from velodrome.run.measuring import kernel

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="what /proc shows"),
]
PROGRAM = """
import asyncio, os, signal, sys, time
how, waits_s = sys.argv[1], float(sys.argv[2])
OK = b"HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello"
working, places = set(), asyncio.Semaphore(32)

def compute(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until: pass

async def work(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    if how in ("stays", "leaves"):
        await asyncio.sleep(0.6)  # clients leave after a third of a request, before any of it is computed
        for _ in range(8):
            compute(0.01)
            await asyncio.sleep(0)
            if how == "leaves" and reader.at_eof() or reader.exception(): return
    elif how in ("keeps", "gives back"):
        await places.acquire()
        await asyncio.sleep(waits_s)
        if how == "gives back": places.release()
    elif how == "computes more":
        if places.locked(): compute(0.5)
        else: await places.acquire()
    else:
        await asyncio.sleep(waits_s)
    if how == "fails" and len(working) > 1:
        writer.write(OK.replace(b"200 OK", b"500 Oh"))
        return
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


def standing(pid: int, port: int = 0, **more: Any) -> Any:
    """Return as much of a standing server as a situation looks at."""
    process = SimpleNamespace(stop_signal=int(signal.SIGTERM))
    server = SimpleNamespace(pid=pid, serving=SimpleNamespace(process=lambda: process, port=port))
    booted = SimpleNamespace(server=server, upstreams=(), site=SimpleNamespace(server=None), boot_s=0.5)
    nothing = {"live_blocks": lambda: None, "worked": dict}
    return SimpleNamespace(booted=booted, **{**nothing, **more})


@contextmanager
def served(how: str, waits_s: float = 0.1) -> Iterator[tuple[Where, Any]]:
    """Yield a server in which a request waits for so long, or computes; `how` it ends, and does."""
    words = [sys.executable, "-c", PROGRAM, how, str(waits_s)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Where("127.0.0.1", int(process.stdout.readline())), standing(process.pid)
        finally:
            process.kill()


HELPED = """
import os, socket, subprocess, sys
listener = socket.create_server(("127.0.0.1", 0))
helper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
worker = os.fork()
if worker:
    print(listener.getsockname()[1], helper.pid, worker, flush=True)
    input()
    helper.kill()
    os.kill(worker, 9)
else:
    import signal
    signal.pause()
"""


def test_a_process_that_an_app_started_for_something_else_is_no_worker() -> None:
    words = [sys.executable, "-c", HELPED]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port, helper, worker = map(int, process.stdout.readline().split())
        try:
            server = standing(process.pid, port)
            assert processes.helpers(server) == {helper}
            assert processes.workers(server, port) == {worker}
        finally:
            process.communicate("end\n")


def test_requests_in_flight_at_sigterm_are_lost_where_nobody_waits_for_them() -> None:
    # So long that all 16 are still in flight at the signal, though the machine lets it happen a third of a second late.
    with served("at once", 0.5) as (at, server):
        lost = asyncio.run(life_cycle.stop(at, server, stops=1))
    assert lost.hits == lost.of >= 16
    assert lost.outcomes["reset"] == lost.of
    assert lost.outcomes["later refused"] > 16, "a request that is sent later is no loss of the stop"
    with served("graceful", 0.5) as (at, server):
        kept = asyncio.run(life_cycle.stop(at, server, stops=1))
    assert kept.hits == 0
    assert kept.outcomes["ok"] == kept.of >= 16


def test_under_an_open_loop_a_server_that_goes_on_loses_nothing_and_one_that_ends_at_sighup_all() -> None:
    with served("at once") as (at, server):
        unprovoked = asyncio.run(life_cycle.stop(at, server))
        assert unprovoked.hits == 0
        assert unprovoked.of > 50, "all from the event on count, in flight or sent later"
        reloaded = asyncio.run(life_cycle.stop(at, server, reloads=1))
    assert reloaded.of > 50
    assert reloaded.of - reloaded.hits <= 2, (
        "a request ends every 10 ms: an answer may be on its way at the signal"
    )
    assert {"reset", "refused"} <= reloaded.outcomes.keys()


def test_of_requests_that_fail_together_without_any_event_none_is_lost_by_it() -> None:
    with served("fails") as (at, server):
        found = asyncio.run(life_cycle.stop(at, server, reloads=1))
    assert (found.hits, found.of) == (0, 0)
    assert found.figures["fails_anyway"] > 1


def test_requests_that_take_longer_than_a_server_gets_to_end_are_not_counted() -> None:
    with served("graceful", 2.1) as (at, server):
        found = asyncio.run(life_cycle.stop(at, server, stops=1))
    assert (found.hits, found.of) == (0, 0)
    assert found.figures["outlasts_s"] > 2.1


def test_a_server_of_one_process_has_no_worker_that_could_be_replaced() -> None:
    with served("graceful") as (at, server):
        assert asyncio.run(life_cycle.stop(at, server, replaces=1)).of == 0


def test_work_whose_client_has_left_goes_on_unless_somebody_looks() -> None:
    with served("stays") as (at, server):
        goes_on = asyncio.run(situations.leave(at, server))
    assert goes_on.of == 16
    assert goes_on.hits >= 8
    with served("leaves") as (at, server):
        ends = asyncio.run(situations.leave(at, server))
    assert ends.of == 16
    assert ends.hits <= 4


@pytest.mark.parametrize(("stays", "beside"), [(True, False), (False, False), (False, True)])
def test_what_others_do_for_clients_that_have_left_is_of_what_was_still_to_be_done(
    stays: bool, beside: bool
) -> None:
    """What an app does anyway, `beside` its requests, it does as well where no client leaves."""
    steps, requests_s, done = 30, 0.3, [0]

    async def always() -> None:
        while beside:
            await asyncio.sleep(0.001)
            done[0] += 1

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(steps):
            await asyncio.sleep(requests_s / steps)
            if reader.at_eof() and not stays:
                return
            done[0] += 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    async def both() -> Any:
        server = standing(os.getpid(), worked=lambda: {os.getpid(): done[0]})
        async with await asyncio.start_server(handle, "127.0.0.1", 0) as listening:
            at = Where("127.0.0.1", listening.sockets[0].getsockname()[1], patience_s=1.0)
            ticking = asyncio.ensure_future(always())
            met = await situations.leave(at, server), await situations.leave(at, server, leaves=0)
            ticking.cancel()
            return met

    left, calm = asyncio.run(both())
    assert left.of == calm.of == 16
    if beside:
        assert left.hits - calm.hits <= 2
    else:
        assert left.hits >= 12 if stays else left.hits <= 4
        assert calm.hits == 0


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

    leaking = standing(os.getpid(), run_closed_loop=closed)
    at = Where("127.0.0.1", 1)
    try:
        memory = asyncio.run(situations.grow(at, leaking, least=64))
        descriptors = asyncio.run(situations.grow(at, leaking, least=0.01, descriptors=1))
    finally:
        for descriptor in opened:
            os.close(descriptor)
    assert memory.of == memory.hits == descriptors.of == descriptors.hits == 8
    idle = asyncio.run(situations.grow(at, leaking, loaded=0, descriptors=1))
    assert (idle.hits, idle.of) == (0, 8)


@pytest.mark.parametrize(
    ("size", "every", "blocks_each", "hits"),
    [
        (400_000, 4, 0.0, 0),  # each fourth load leaves nothing, like an allocator that fills what it has
        (400_000, 4, 1000.0, 8),
        (400_000, 1000, 0.0, 0),
        (2_000_000, 1000, 0.0, 8),
    ],
)
def test_memory_that_no_object_has_counts_only_if_every_load_leaves_much_of_it(
    size: int, every: int, blocks_each: float, hits: int
) -> None:
    kept: list[Any] = []

    def closed(connections: int, seconds: float) -> Any:
        kept.append(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        if len(kept) % every:
            kept[-1].write(b"x" * size)
        return SimpleNamespace(load=SimpleNamespace(answers=1000, ok=1000))

    server = standing(
        os.getpid(), run_closed_loop=closed, live_blocks=lambda: 5000.0 + blocks_each * len(kept)
    )
    assert asyncio.run(situations.grow(Where("127.0.0.1", 1), server)).hits == hits


@pytest.mark.parametrize(("comes_and_goes", "hits"), [(0.0, 8), (1000.0, 0)])
def test_objects_that_come_and_go_are_no_leak_though_there_are_more_in_the_end(
    comes_and_goes: float, hits: int
) -> None:
    kept: list[Any] = []

    def closed(connections: int, seconds: float) -> Any:
        kept.append(mmap.mmap(-1, 100_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        kept[-1].write(b"x" * 100_000)
        return SimpleNamespace(load=SimpleNamespace(answers=1000, ok=1000))

    def blocks() -> float:
        return 5000.0 + 400 * len(kept) + comes_and_goes * (len(kept) % 2)

    server = standing(os.getpid(), run_closed_loop=closed, live_blocks=blocks)
    assert asyncio.run(situations.grow(Where("127.0.0.1", 1), server)).hits == hits


def test_what_fills_slowly_with_few_connections_is_filled_by_more_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered, loads, kept = [0], list[int](), list[Any]()

    def closed(connections: int, seconds: float) -> Any:
        time.sleep(0.02)
        answers = 2 * connections
        loads.append(connections)
        answered[0] += answers
        kept.append(mmap.mmap(-1, 100_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        kept[-1].write(b"x" * 100_000)
        return SimpleNamespace(load=SimpleNamespace(answers=answers, ok=answers))

    monkeypatch.setattr(situations, "FILLING_S", 0.3)
    server = standing(
        os.getpid(), run_closed_loop=closed, live_blocks=lambda: 5000.0 + 10 * min(answered[0], 600)
    )
    assert asyncio.run(situations.grow(Where("127.0.0.1", 1), server)).hits == 0
    assert set(loads[: situations.FILLING] + loads[-situations.LOADS :]) == {situations.LOADED}


def test_what_each_connection_leaves_is_not_what_each_request_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []

    def keep(size: int) -> None:
        kept.append(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        kept[-1].write(b"x" * size)

    async def request(_at: Where, _patience_s: float) -> None:
        keep(50_000)

    def closed(connections: int, seconds: float) -> Any:
        keep(connections * 50_000)
        return SimpleNamespace(load=SimpleNamespace(answers=1000, ok=1000))

    monkeypatch.setattr(situations, "request_once", request)
    server = standing(os.getpid(), run_closed_loop=closed)
    assert asyncio.run(situations.grow(Where("127.0.0.1", 1), server)).hits == 0


def test_connections_are_counted_by_the_process_that_holds_them() -> None:
    with served("graceful") as (at, server):
        found = asyncio.run(situations.spread(at, server, connections=12))
    assert (found.hits, found.of) == (12, 12)
    assert found.outcomes == {"ok": 12}


KEEPING = """
import asyncio, sys
backlog, keeps_s = int(sys.argv[1]), float(sys.argv[2])
OK = b"HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello"

async def handle(reader, writer):
    try:
        while await asyncio.wait_for(reader.readuntil(b"\\r\\n\\r\\n"), keeps_s):
            writer.write(OK)
    except (asyncio.TimeoutError, asyncio.IncompleteReadError, OSError):
        writer.close()

async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=backlog)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@contextmanager
def keeping(backlog: int, keeps_s: float) -> Iterator[tuple[Where, Any]]:
    """Yield a server that keeps idle connections for so long."""
    words = [sys.executable, "-c", KEEPING, str(backlog), str(keeps_s)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield Where("127.0.0.1", int(process.stdout.readline())), standing(process.pid)
        finally:
            process.kill()


@pytest.mark.exhaustive
def test_clients_whose_connections_expired_overflow_a_short_queue_and_kept_ones_need_none() -> None:
    with keeping(8, 0.2) as (at, server):
        storm = asyncio.run(situations.storm(at, server, clients=48, idle_s=0.5, stall_s=0.3))
    assert storm.of == 48
    assert storm.hits > 16
    assert storm.figures["opened"] == 48
    assert storm.figures["overflows"] > 0
    with keeping(8, 60) as (at, server):
        kept = asyncio.run(situations.storm(at, server, clients=48, idle_s=0.5, stall_s=0.3))
    assert (kept.hits, kept.of, kept.figures["opened"]) == (0, 48, 0)


@pytest.mark.exhaustive
def test_connections_above_the_limit_of_open_files_get_no_answer() -> None:
    with keeping(1024, 60) as (at, server):
        resource.prlimit(server.booted.server.pid, resource.RLIMIT_NOFILE, (100, 4096))
        few = asyncio.run(situations.wall(at, server))
        assert few.hits == few.of == 64
        assert few.figures["limit"] == 100
        assert 80 < few.figures["answered"] < 100
    with keeping(1024, 60) as (at, server):
        resource.prlimit(server.booted.server.pid, resource.RLIMIT_NOFILE, (20_000, 20_000))
        assert asyncio.run(situations.wall(at, server)).of == 0, "no proxy has so many clients"


@pytest.mark.parametrize(("at_once", "together"), [(2, 2), (1, 0)])
def test_workers_count_as_replaced_together_by_when_they_begin(at_once: int, together: int) -> None:
    def closed(*words: object, **named: object) -> Any:
        time.sleep(0.6)  # the first live for so long
        for _ in range(6 // at_once):
            begun = [subprocess.Popen(["sleep", "30"]) for _ in range(at_once)]
            time.sleep(0.2 * at_once)  # how long a worker lives: the situation looks meanwhile
            for process in begun:
                process.kill()
                process.wait()
        return SimpleNamespace(load=SimpleNamespace(answers=100))

    server = standing(os.getpid(), run_closed_loop=closed)
    found = asyncio.run(life_cycle.recycle(Where("127.0.0.1", 1), server, workers=2, within=0.1))
    assert (found.hits, found.of) == (together, 2)


@pytest.mark.parametrize(("longest_s", "loads"), [(0.0, 1), (5.0, 3)])
def test_a_load_goes_on_until_workers_are_replaced_where_they_are_known_to_be(
    longest_s: float, loads: int
) -> None:
    made = list[int]()

    def closed(*words: object, **named: object) -> Any:
        made.append(1)
        time.sleep(0.3)
        if len(made) == 3:
            begun.extend(subprocess.Popen(["sleep", "30"]) for _ in range(2))
            time.sleep(0.2)
        return SimpleNamespace(load=SimpleNamespace(answers=100))

    begun = list[subprocess.Popen[bytes]]()
    server = standing(os.getpid(), run_closed_loop=closed)
    try:
        found = asyncio.run(
            life_cycle.recycle(
                Where("127.0.0.1", 1), server, workers=2, within=0.1, seconds=0.3, longest_s=longest_s
            )
        )
    finally:
        for process in begun:
            process.kill()
            process.wait()
    assert len(made) == loads
    assert (found.hits, found.of) == ((2, 2) if loads == 3 else (0, 0))
    assert found.figures["requests"] == 100 * loads


def test_a_worker_that_is_not_replaced_in_time_was_not_replaced_together_with_others() -> None:
    begun = list[subprocess.Popen[bytes]]()

    def closed(*words: object, **named: object) -> Any:
        if not begun:
            begun.append(subprocess.Popen(["sleep", "30"]))
        time.sleep(0.2)
        return SimpleNamespace(load=SimpleNamespace(answers=100))

    server = standing(os.getpid(), run_closed_loop=closed)
    where = Where("127.0.0.1", 1)
    try:
        found = asyncio.run(
            life_cycle.recycle(where, server, workers=4, within=0.1, seconds=0.2, longest_s=1.0)
        )
    finally:
        for process in begun:
            process.kill()
            process.wait()
    assert (found.hits, found.of, found.figures["replaced"]) == (0, 4, 1.0)


def test_a_worker_that_is_still_being_started_replaced_none() -> None:
    late: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        for _ in range(3):
            time.sleep(0.15)  # gunicorn starts its workers apart
            late.append(subprocess.Popen(["sleep", "30"]))

    def closed(*words: object, **named: object) -> Any:
        assert len(late) == 3, "the load begins when all are there"
        time.sleep(0.1)
        return SimpleNamespace(load=SimpleNamespace(answers=100))

    thread = Thread(target=start)
    thread.start()
    try:
        server = standing(os.getpid(), run_closed_loop=closed)
        found = asyncio.run(life_cycle.recycle(Where("127.0.0.1", 1), server, workers=3, within=0.1))
    finally:
        thread.join()
        for process in late:
            process.kill()
            process.wait()
    assert (found.of, found.figures["replaced"]) == (0, 0.0)


ALLOCATING = """
import sys, threading
kept = []
thread = threading.Thread(target=lambda: kept.extend(bytes(2000) for _ in range(2000)))
thread.start(); thread.join()
print("kept", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.confstr("CS_GNU_LIBC_VERSION") is None, reason="malloc of another library")
@pytest.mark.parametrize(("variables", "count"), [({}, 1), ({"MALLOC_ARENA_MAX": "1"}, 0)])
def test_what_a_thread_allocates_is_in_an_arena_of_its_own_unless_there_is_one_for_all(
    variables: dict[str, str], count: int
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ALLOCATING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **variables},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"kept\n"
        heaps = processes.heaps(process.pid)
        process.kill()
    assert len(heaps) == count
    assert sum(heaps) >= count * 4_000_000


@pytest.mark.parametrize(("least", "hits"), [(4e6, 4), (12e6, 0)])
def test_bursts_count_after_which_much_stays(least: float, hits: int) -> None:
    kept: list[Any] = []

    def closed(*words: object) -> None:
        if not kept:
            kept.append(mmap.mmap(-1, 8_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
            for _ in range(80):  # malloc would keep what one large piece took
                kept[0].write(b"x" * 100_000)

    server = standing(os.getpid(), run_closed_loop=closed)
    found = asyncio.run(situations.swell(Where("127.0.0.1", 1), server, least=least, bursts=4))
    assert (found.hits, found.of) == (hits, 4)


def test_an_epoll_of_before_a_fork_is_counted_with_both_processes() -> None:
    shared = select.epoll()
    child = os.fork()
    if not child:
        signal.pause()
    try:
        found = asyncio.run(situations.epolls(Where("127.0.0.1", 1), standing(os.getpid()), rest_s=0.05))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        shared.close()
    assert found.hits == (2 if kernel.tells_open_files() else 0)


@pytest.mark.parametrize(("how", "hits", "of"), [("each", 45, 45), ("first", 0, 45), ("always", 0, 0)])
@pytest.mark.parametrize("wanted", ["/", "/seasons/7/table"], ids=["by query", "by path"])
def test_cold_requests_that_each_do_the_work_are_a_stampede_and_those_without_a_cache_are_none(
    wanted: str, how: str, hits: int, of: int
) -> None:
    calls = 0
    cache: dict[bytes, asyncio.Task[None]] = {}

    async def work() -> None:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.02)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        if wanted != "/":
            path = path.partition(b"?")[0]
        if how == "always":
            await work()
        elif how == "first":
            await cache.setdefault(path, asyncio.ensure_future(work()) if path not in cache else cache[path])
        elif path not in cache:
            await work()
            cache[path] = asyncio.ensure_future(asyncio.sleep(0))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    async def both() -> Any:
        server = standing(os.getpid())
        server.booted.upstreams = (SimpleNamespace(so_far=lambda: calls),)
        async with await asyncio.start_server(handle, "127.0.0.1", 0) as listening:
            at = Where("127.0.0.1", listening.sockets[0].getsockname()[1], wanted)
            return await situations.stampede(at, server)

    found = asyncio.run(both())
    assert (found.hits, found.of) == (hits, of)


@pytest.mark.parametrize("always", [0, 2], ids=["kept here", "kept by others"])
@pytest.mark.parametrize(("together", "hits"), [(1, 45), (0, 0)])
def test_what_is_kept_for_a_while_is_done_by_all_that_come_when_it_has_expired(
    together: float, hits: int, always: int
) -> None:
    """What is kept expires by the number of the request, so that no burst is half behind that on a busy machine."""
    numbers = itertools.count()
    calls, filled = 0, -1

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls, filled
        is_usual = b"?" not in await reader.readuntil(b"\r\n\r\n")
        number = next(numbers) if is_usual else 0
        burst = number if number < 3 else 3 + (number - 3) // life_cycle.IN_FLIGHT
        calls += always
        if is_usual and burst > filled:
            calls += 1
            await asyncio.sleep(0.2)  # the others of a burst have come by then
            filled = burst + 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    async def both() -> Any:
        server = standing(os.getpid())
        server.booted.upstreams = (SimpleNamespace(so_far=lambda: calls),)
        async with await asyncio.start_server(handle, "127.0.0.1", 0) as listening:
            at = Where("127.0.0.1", listening.sockets[0].getsockname()[1], "/stations/north")
            return await situations.stampede(at, server, together)

    found = asyncio.run(both())
    assert (found.hits, found.of) == (hits, 45)


@pytest.mark.parametrize(("how", "share"), [("gives back", 0), ("keeps", 1), ("computes more", 0)])
def test_what_waits_on_a_server_that_answered_many_is_counted_and_what_computes_is_not(
    how: str, share: float
) -> None:
    with served(how, 0.01) as (at, server):

        def carry(_connections: int, _seconds: float) -> Any:
            for _ in range(10):
                with socket.create_connection((at.host, at.port), 5) as connection:
                    connection.sendall(at.request)
                    assert connection.recv(4096)
            return SimpleNamespace(load=SimpleNamespace(answers=10.0))

        server.run_closed_loop = carry
        fresh = asyncio.run(situations.worn(at, server))  # after 12 of the 32 that fill it
        assert (fresh.hits, fresh.of) == (0, 8)
        worn = asyncio.run(situations.worn(at, server, requests=20, usual_ms=10))
    assert worn.share == share
    assert (worn.of >= 4, worn.figures["answered"]) == (True, 20)


@pytest.mark.parametrize(("requests", "keeps", "lost"), [(700, 0.5, 88), (0, 0.5, 50), (700, 1.0, 0)])
def test_the_throughput_that_a_server_loses_by_answering_is_counted(
    requests: float, keeps: float, lost: int
) -> None:
    rates = iter([1000 * keeps**load for load in range(9)])

    def carry(_connections: int, seconds: float) -> Any:
        return SimpleNamespace(load=SimpleNamespace(ok=next(rates) * seconds))

    server = standing(os.getpid(), run_closed_loop=carry)
    found = asyncio.run(situations.age(Where("127.0.0.1", 1), server, 8, requests))
    assert (found.hits, found.of) == (lost, 100)

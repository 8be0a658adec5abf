"""Queues are filled and CPUs burnt for real; the arithmetic is also fed by hand."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from velodrome.model.measurement import CpuLosses
from velodrome.run.machine import netlink
from velodrome.run.measuring import kernel
from velodrome.run.measuring.kernel import Counters, CpuTimes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these counters are Linux'")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes what is opened."""
    with ExitStack() as opened:
        yield opened


def listen(stack: ExitStack, backlog: int, port: int = 0) -> socket.socket:
    server = stack.enter_context(socket.socket())
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind(("127.0.0.1", port))
    server.listen(backlog)
    return server


def knock(stack: ExitStack, server: socket.socket, times: int) -> None:
    """Begin connections that nobody accepts."""
    for _ in range(times):
        client = stack.enter_context(socket.socket())
        client.setblocking(False)
        client.connect_ex(server.getsockname())


def test_the_accept_queue_tells_its_peak_and_its_limit(stack: ExitStack) -> None:
    server = listen(stack, backlog=10)
    queue = kernel.ListenQueue(server.getsockname()[1])
    before = kernel.read()
    queue.begin()
    knock(stack, server, 7)
    assert queue.sample() == 7
    for _ in range(7):
        stack.enter_context(server.accept()[0])
    assert queue.sample() == 0
    facts = queue.facts(before, kernel.read())
    assert (facts.peak, facts.limit, facts.overflows, facts.drops) == (7, 10, 0, 0)


def test_a_close_with_data_unread_is_counted(stack: ExitStack) -> None:
    server = listen(stack, backlog=10)
    before = kernel.read().closed_unread
    for unread in (b"", b"x"):
        client = stack.enter_context(socket.create_connection(server.getsockname()))
        accepted = server.accept()[0]
        client.sendall(unread + b"y")
        assert accepted.recv(1)
        accepted.close()
    after = kernel.read().closed_unread
    assert before is not None
    assert after is not None
    assert after > before


def test_connections_turned_away_by_a_tiny_backlog_are_counted(stack: ExitStack) -> None:
    server = listen(stack, backlog=2)
    queue = kernel.ListenQueue(server.getsockname()[1])
    before = kernel.read()
    queue.begin()
    knock(stack, server, 8)
    facts = queue.facts(before, kernel.read())
    assert facts.peak is not None
    # Linux lets one more in than the limit; the other five are turned away, and some try again.
    assert queue.sample() == 3
    assert facts.overflows is not None
    assert facts.overflows >= 5
    assert facts.drops == facts.overflows


def test_overflows_of_another_port_are_not_this_ones(stack: ExitStack) -> None:
    ours, theirs = listen(stack, backlog=10), listen(stack, backlog=1)
    queue = kernel.ListenQueue(ours.getsockname()[1])
    before = kernel.read()
    queue.begin()
    knock(stack, theirs, 8)
    after = kernel.read()
    assert (after.overflows or 0) > (before.overflows or 0)
    assert queue.facts(before, after).overflows == 0


def test_of_several_sockets_on_a_port_the_fullest_counts(stack: ExitStack) -> None:
    first = listen(stack, backlog=50)
    port = first.getsockname()[1]
    second = listen(stack, backlog=50, port=port)
    queue = kernel.ListenQueue(port)
    queue.begin()
    knock(stack, second, 30)
    sockets = netlink.listening(port)
    assert sockets is not None
    assert sum(sock.receive for sock in sockets) == 30
    assert queue.sample() == max(sock.receive for sock in sockets)


def test_a_port_without_a_listener_has_no_queue(stack: ExitStack) -> None:
    server = listen(stack, backlog=1)
    port = server.getsockname()[1]
    server.close()
    queue = kernel.ListenQueue(port)
    before = kernel.read()
    queue.begin()
    assert queue.sample() is None
    assert queue.facts(before, kernel.read()).peak is None


def test_cpu_burnt_by_nobody_we_know_is_other_load() -> None:
    before = kernel.read()
    end = time.process_time() + 0.4
    while time.process_time() < end:
        pass
    after = kernel.read()
    unknown = kernel.host_facts(before, after, known_cpu_s=0.0, known=())
    known = kernel.host_facts(before, after, known_cpu_s=0.4, known={os.getpid()})
    assert unknown.other_cpu_s is not None
    assert unknown.other_cpu_s >= 0.3  # ticks are coarse
    assert known.other_cpu_s is not None
    assert known.other_cpu_s <= unknown.other_cpu_s - 0.3


def test_a_tick_that_saw_too_much_is_corrected_by_the_clocks_of_the_processes() -> None:
    rows = {(1, 0): ("init", 5.0), (9, 0): ("server", 1.0)}
    later = {(1, 0): ("init", 5.01), (9, 0): ("server", 1.1)}
    before, after = Counters(0, 1.0, 0.0, 0, 0, rows), Counters(1_000_000_000, 1.9, 0.0, 0, 0, later)
    facts = kernel.host_facts(before, after, known_cpu_s=0.1, known={9})
    assert facts.other_cpu_s == pytest.approx(0.01)


def test_the_busiest_process_we_do_not_know_is_named() -> None:
    before = Counters(
        0, 1.0, 0.0, 0, 0, {(1, 0): ("init", 5.0), (9, 0): ("server", 1.0), (7, 0): ("make", 3.0)}
    )
    rows = {(1, 0): ("init", 5.01), (9, 0): ("server", 2.0), (7, 0): ("make", 3.4), (8, 5): ("cc1", 0.3)}
    after = Counters(1_000_000_000, 3.0, 0.25, 4, 8192, rows)
    facts = kernel.host_facts(before, after, known_cpu_s=1.0, known={9})
    assert facts.busiest_other == "make"
    assert facts.other_cpu_s == pytest.approx(0.71)  # theirs together; the ticks would have it at 1.0
    assert facts.steal_s == 0.25
    assert facts.swapped_bytes == 8192


def test_processes_that_hardly_worked_are_not_named() -> None:
    before, after = Counters(0, processes={}), Counters(1_000_000_000, processes={(5, 0): ("cron", 0.05)})
    assert kernel.host_facts(before, after, 0.0, ()).busiest_other == ""


def test_what_the_kernel_does_not_tell_stays_unknown() -> None:
    facts = kernel.host_facts(Counters(0), Counters(1), 0.0, ())
    assert (facts.steal_s, facts.other_cpu_s, facts.swapped_bytes) == (None, None, None)


def test_reading_the_counters_is_cheap() -> None:
    before = time.thread_time()
    for _ in range(10):
        kernel.read()
    assert (time.thread_time() - before) / 10 < 0.05


def at(seconds: float, cpus: dict[int, tuple[float, float]] | None) -> Counters:
    """Counters of a machine with these (busy, stolen) seconds of each CPU."""
    each = None if cpus is None else {number: CpuTimes(*times) for number, times in cpus.items()}
    return Counters(int(seconds * 1e9), cpus=each)


@pytest.mark.parametrize(
    ("cpus", "known_s", "others_s", "steal_s", "other_s"),
    [
        ((0,), 3.0, 9.0, 0.5, 1.0),
        ((0, 1), 3.0, 9.0, 0.75, 6.0),
        ((0, 1), 3.0, 0.25, 0.75, 0.25),  # others did no more anywhere, by their own clocks
        ((0,), 5.0, 9.0, 0.5, 0.0),
        ((0,), 3.0, None, 0.5, None),
    ],
)
def test_what_cpus_lose_is_counted_on_them_alone(
    cpus: tuple[int, ...], known_s: float, others_s: float | None, steal_s: float, other_s: float | None
) -> None:
    before = at(0.0, {0: (1.0, 0.0), 1: (2.0, 1.0), 2: (0.0, 0.0)})
    after = at(10.0, {0: (5.0, 0.5), 1: (7.0, 1.25), 2: (10.0, 5.0)})
    assert kernel.losses(before, after, cpus, known_s, others_s) == CpuLosses(cpus, steal_s, other_s)


def test_where_a_machine_does_not_tell_of_each_cpu_nothing_is_made_up() -> None:
    counters = at(0.0, {0: (1.0, 0.0)})
    assert kernel.losses(at(0.0, None), counters, (0,), 0.0, 0.0) is None
    assert kernel.losses(counters, counters, (0, 7), 0.0, 0.0) is None, "a CPU that was switched off"
    assert kernel.losses(counters, counters, (), 0.0, 0.0) is None


def test_each_cpu_is_reported_and_they_are_all_of_the_machine() -> None:
    found = kernel.read()
    assert found.cpus is not None
    assert found.busy_s is not None
    assert sorted(found.cpus) == sorted(set(found.cpus) - {kernel.ALL})
    assert len(found.cpus) >= len(os.sched_getaffinity(0))
    # The sum is rounded once and each of them by itself: a clock tick of 10 ms each.
    assert sum(times.busy_s for times in found.cpus.values()) == pytest.approx(
        found.busy_s, abs=0.02 * (1 + len(found.cpus))
    )


def test_what_a_server_had_in_a_moment_is_unknown() -> None:
    serving = kernel.Serving((os.getpid(),))
    serving.begin()
    serving.end()
    assert serving.use() is None
    time.sleep(kernel.LEAST_SEEN_S)
    serving.end()
    found = serving.use()
    assert found is not None
    assert found.span_s >= kernel.LEAST_SEEN_S

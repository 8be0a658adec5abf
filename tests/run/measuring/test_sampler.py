"""A sampler watches real processes; the load is played by hand-made events."""

import os
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.waiting import wait_until

from velodrome.model.measurement import CpuLosses
from velodrome.run.drivers.driver import LoadEvent
from velodrome.run.measuring import sampler as sampled
from velodrome.run.measuring.kernel import Counters, CpuTimes
from velodrome.run.measuring.sampler import LINUX, Moment, ProcessUse, Sampler, TreeUse, host_over

Start = Callable[[str], subprocess.Popen[str]]


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return read_line(process)


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def now(kind: str) -> LoadEvent:
    return LoadEvent(kind, {"monotonic_ns": time.monotonic_ns()})


BURNER = """
print("ready", flush=True)
for line in sys.stdin:
    before = time.process_time(); burn(0.3); print(time.process_time() - before, flush=True)
"""


def test_cpu_is_that_of_the_span_alone(start: Start) -> None:
    server = start(BURNER)
    read_line(server)
    next_line(server)  # before the span: not counted
    sampler = Sampler(server.pid, 1, span_s=1.0)
    with sampler:
        sampler.on(now("measuring"))
        used_s = float(next_line(server))
        sampler.on(now("span_ended"))
        next_line(server)  # in the drain: not counted
    facts = sampler.result(boot_s=0.5).server
    assert used_s - 0.01 <= facts.cpu_s < used_s + 0.2
    assert facts.cpu_user_s + facts.cpu_sys_s == pytest.approx(facts.cpu_s)
    assert facts.workers[0].cpu_s == pytest.approx(facts.cpu_s, abs=0.02)
    assert facts.rss_peak_bytes > 1_000_000
    assert facts.boot_s == 0.5


def test_samples_come_at_their_time_and_carry_what_was_used_so_far(start: Start) -> None:
    server = start(BURNER)
    read_line(server)
    sampler = Sampler(server.pid, 1, span_s=0.5, every_s=0.05)
    with sampler:
        sampler.on(now("measuring"))
        while float(next_line(server)) < 0.3:
            pass
        sampler.on(now("span_ended"))
    samples = sampler.result(0.1).server.samples
    assert len(samples) >= 3
    assert all(sample.at_s >= 0.05 * number for number, sample in enumerate(samples, 1))
    assert [sample.cpu_s for sample in samples] == sorted(sample.cpu_s for sample in samples)
    assert samples[-1].processes == 1


def test_connections_are_counted_at_mid_span_by_worker(start: Start) -> None:
    server = start("""
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
held = [server.accept() for _ in range(3)]
print("accepted", flush=True)
sys.stdin.readline()
""")
    port = int(read_line(server))
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    read_line(server)
    sampler = Sampler(server.pid, port, span_s=0.1, every_s=0.05)
    with sampler:
        sampler.on(now("measuring"))
        wait_until(lambda: sampler._connections is not None)
        sampler.on(now("span_ended"))
    result = sampler.result(0.1)
    if LINUX:
        assert result.server.workers[0].connections == 3
        assert result.queue.limit is not None
        assert result.foreign == ()
    for client in clients:
        client.close()


def test_a_server_that_polls_does_not_come_to_rest(start: Start) -> None:
    server = start("print('ready', flush=True)\nwhile True: pass")
    read_line(server)
    rest = Sampler(server.pid, 1, span_s=1.0).rest()
    assert rest.cpus is not None
    assert rest.cpus > 0.2
    assert list(rest.busy) == [server.pid]


def test_a_server_that_still_imports_is_waited_for(start: Start) -> None:
    server = start("print('ready', flush=True); burn(0.3); sys.stdin.readline()")
    read_line(server)
    rest = Sampler(server.pid, 1, span_s=1.0).rest()
    assert rest.cpus is not None
    assert rest.cpus <= 0.05
    assert rest.busy == {}


def test_workers_that_go_and_come_are_reported(start: Start) -> None:
    server = start("""
first = os.fork() or time.sleep(60)
print("ready", flush=True)
sys.stdin.readline()
os.kill(first, 9); os.waitpid(first, 0)
second = os.fork() or time.sleep(60)
print(f"{first} {second}", flush=True)
sys.stdin.readline(); os.kill(second, 9)
""")
    read_line(server)
    sampler = Sampler(server.pid, 1, span_s=1.0)
    sampler.rest()
    with sampler:
        sampler.on(now("measuring"))
        first, second = map(int, next_line(server).split())
        sampler.on(now("span_ended"))
    result = sampler.result(0.1)
    assert (result.gone, result.came, result.root_alive) == ((first,), (second,), True)
    next_line(server)


def test_a_server_that_is_gone_is_reported_and_raises_nothing(start: Start) -> None:
    server = start("print('ready', flush=True); sys.stdin.readline()")
    read_line(server)
    sampler = Sampler(server.pid, 1, span_s=1.0)
    with sampler:
        sampler.on(now("measuring"))
        server.kill()
        server.wait()
        sampler.on(now("span_ended"))
    result = sampler.result(0.1)
    assert not result.root_alive
    assert result.gone == (server.pid,)
    assert result.server.cpu_s >= 0.0


def test_a_load_that_reported_no_span_has_no_result(start: Start) -> None:
    server = start("print('ready', flush=True); sys.stdin.readline()")
    read_line(server)
    sampler = Sampler(server.pid, 1, span_s=1.0)
    with sampler:
        sampler.on(now("measuring"))
    with pytest.raises(ValueError, match="no measured span"):
        sampler.result(0.1)


def test_the_load_generator_is_no_other_load(start: Start) -> None:
    server, generator = start("print('ready', flush=True); sys.stdin.readline()"), start(BURNER)
    read_line(server)
    read_line(generator)
    results = []
    for known in (False, True):
        sampler = Sampler(server.pid, 1, span_s=1.0)
        with sampler:
            if known:
                sampler.on(LoadEvent("started", {"pid": generator.pid}))
            sampler.on(now("measuring"))
            next_line(generator)
            sampler.on(now("span_ended"))
            begin, end = sampler._begin, sampler._end
            assert begin is not None
            assert end is not None
            results.append(sum(end.companions_cpu_s.values()) - sum(begin.companions_cpu_s.values()))
    if LINUX:
        assert results[0] == 0
        assert results[1] >= 0.29


def test_sampling_costs_little_and_tells_how_much(start: Start) -> None:
    server = start(BURNER)
    read_line(server)
    sampler = Sampler(server.pid, 1, span_s=1.0)
    with sampler:
        sampler.on(now("measuring"))
        until = time.monotonic() + 1.2
        while time.monotonic() < until:
            next_line(server)
        sampler.on(now("span_ended"))
    result = sampler.result(0.1)
    assert 0 < result.own_cpu_s < 0.3 * result.span_s


def process(pid: int, cpu_s: float, children_s: float = 0.0, started: float = 1.0) -> ProcessUse:
    return ProcessUse(pid, 1, started, cpu_s, 0.5, children_s, 1000, 1)


def moment(at_s: float, late_s: float, *processes: ProcessUse) -> Moment:
    total = sum(used.cpu_s + used.children_cpu_s for used in processes)
    use = TreeUse(int((at_s + late_s) * 1e9), processes, total, total / 2)
    return Moment(int(at_s * 1e9), use, Counters(0), {}, 0.0, {1: (10, 1)})


def test_cpu_missed_before_a_late_first_reading_is_put_back() -> None:
    begin, end = moment(10.0, 0.5, process(1, 1.0)), moment(14.0, 0.0, process(1, 4.5))
    assert list(sampled.span_cpu(begin, end)) == pytest.approx([4.0, 2.0])


def test_a_late_last_reading_takes_nothing_off_because_the_load_has_ended() -> None:
    begin, end = moment(10.0, 0.0, process(1, 1.0)), moment(14.0, 0.5, process(1, 5.0))
    assert sampled.span_cpu(begin, end)[0] == pytest.approx(4.0)


def test_a_new_process_with_an_old_number_is_charged_from_its_start() -> None:
    before = moment(0.0, 0.0, process(1, 5.0, started=1.0)).use
    after = moment(1.0, 0.0, process(1, 0.5, started=2.0)).use
    assert sampled.cpu_by_process(before, after) == {1: 0.5}


def test_switches_of_processes_that_came_later_count_whole() -> None:
    begin = moment(0.0, 0.0, process(1, 0.0))
    end = replace(moment(1.0, 0.0, process(1, 1.0), process(2, 1.0)), switches={1: (15, 3), 2: (4, 0)})
    facts = sampled.server_over(begin, end, (), connections=None, pss_bytes=None, boot_s=0.0)
    assert (facts.switches_voluntary, facts.switches_involuntary) == (9, 2)
    assert facts.workers[0].connections is None


def test_what_is_no_part_of_the_trial_is_counted_on_the_cpus_of_server_and_of_generator_alone() -> None:
    server, generator, here = 10, 20, os.getpid()
    allowed = {server: frozenset({0}), generator: frozenset({1}), here: frozenset({1, 2})}

    def looked(at_s: float, busy: tuple[float, float, float], stolen: tuple[float, float, float]) -> Moment:
        each = {number: CpuTimes(*times) for number, times in enumerate(zip(busy, stolen, strict=True))}
        counters = Counters(int(at_s * 1e9), busy_s=sum(busy), steal_s=sum(stolen), cpus=each)
        use = TreeUse(int(at_s * 1e9), (process(server, 0.0),), 0.0, 0.0)
        return Moment(int(at_s * 1e9), use, counters, {}, 0.0, None, {}, allowed)

    begin, end = (
        looked(0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        looked(10.0, (7.0, 6.0, 9.0), (0.5, 0.25, 4.0)),
    )
    facts = host_over(begin, end, {server: 6.0, generator: 3.0, here: 1.0}, server, generator)
    assert (facts.steal_s, facts.other_cpu_s) == (4.75, 12.0)
    assert facts.server_cpus == CpuLosses((0,), 0.5, 1.0)
    # What velodrome itself used may all have been there.
    assert facts.load_cpus == CpuLosses((1,), 0.25, 2.0)

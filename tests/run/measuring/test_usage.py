"""Processes whose use is known are read from outside."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from velodrome.run.measuring.sampler import LINUX, PortableReader, of

Start = Callable[[str], subprocess.Popen[str]]


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_cpu_of_a_process_is_what_it_says_itself(start: Start) -> None:
    process = start("burn(0.2); tell(time.process_time())")
    own_s = float(read_line(process))
    read_s = of(process.pid).use().cpu_s
    assert own_s <= read_s < own_s + 0.15


@pytest.mark.skipif(not LINUX, reason="psutil cannot tell the CPU of ended children")
def test_children_that_have_ended_are_charged_to_the_tree(start: Start) -> None:
    process = start("""
for _ in range(3):
    if (child := os.fork()) == 0:
        burn(0.1); os._exit(0)
    os.waitpid(child, 0)
tell("done")
""")
    read_line(process)
    use = of(process.pid).use()
    assert [member.pid for member in use.processes] == [process.pid]
    assert use.cpu_s >= 0.28


@pytest.mark.skipif(not LINUX, reason="zombies are read from /proc")
def test_a_child_that_nobody_has_waited_for_is_charged_but_is_no_process(start: Start) -> None:
    process = start("""
child = os.fork()
if child == 0:
    burn(0.2); os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
tell("done")
""")
    read_line(process)
    use = of(process.pid).use()
    assert len(use.processes) == 1
    assert use.cpu_s >= 0.19


def test_the_whole_tree_is_seen_with_its_threads(start: Start) -> None:
    process = start("""
threads = [threading.Thread(target=time.sleep, args=(60,), daemon=True) for _ in range(5)]
if os.fork() == 0:
    if os.fork() == 0:
        for thread in threads:
            thread.start()
        tell("ready")
        os._exit(0)
    time.sleep(60)
time.sleep(60)
""")
    assert read_line(process) == "ready"
    use = of(process.pid).use()
    assert use.processes[0].pid == process.pid
    assert len(use.processes) == 3
    assert use.threads == 3 + 5
    assert use.rss_bytes > 3 * 1_000_000


@pytest.mark.skipif(not LINUX, reason="psutil knows no sessions of other processes")
def test_an_orphan_of_the_session_still_belongs_to_the_server(start: Start) -> None:
    process = start("""
if os.fork() == 0:
    middle = os.getpid()
    if os.fork() == 0:
        while os.getppid() == middle:
            time.sleep(0.01)
        tell(os.getpid())
        os._exit(0)
    os._exit(0)
os.wait()
time.sleep(60)
""")
    orphan = int(read_line(process))
    assert {member.pid for member in of(process.pid).use().processes} == {process.pid, orphan}


def test_descriptors_are_counted(start: Start) -> None:
    process = start("tell('few'); files = [open('/dev/null') for _ in range(30)]; tell('many')")
    reader = of(process.pid)
    assert read_line(process) == "few"
    few = reader.fds([process.pid])
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert read_line(process) == "many"
    many = reader.fds([process.pid])
    assert few is not None
    assert many == few + 30


@pytest.mark.skipif(not LINUX, reason="from /proc")
def test_switches_and_shared_memory_are_reported(start: Start) -> None:
    process = start("[time.sleep(0.001) for _ in range(50)]; tell('slept')")
    read_line(process)
    reader = of(process.pid)
    switches = reader.switches([process.pid])
    assert switches is not None
    assert switches[process.pid][0] >= 50
    pss, rss = reader.pss_bytes([process.pid]), reader.use().rss_bytes
    assert pss is not None
    assert 1_000_000 < pss <= rss


def test_a_process_that_is_gone_uses_nothing(start: Start) -> None:
    process = start("pass")
    process.wait()
    reader = of(process.pid)
    assert reader.use().processes == ()
    assert reader.use().cpu_s == 0.0


@pytest.mark.skipif(not LINUX, reason="compares with /proc")
def test_both_readers_agree(start: Start) -> None:
    process = start("burn(0.2); tell('burnt')")
    read_line(process)
    exact, portable = of(process.pid).use(), PortableReader(process.pid).use()
    assert portable.cpu_s == pytest.approx(exact.cpu_s, abs=0.03)
    assert portable.rss_bytes == pytest.approx(exact.rss_bytes, rel=0.1)
    assert portable.threads == exact.threads
    assert portable.processes[0].parent == exact.processes[0].parent == os.getpid()


@pytest.mark.parametrize(
    "files",
    [
        {"cpuacct.usage": "1500000000\n", "cpuacct.stat": "user 100\nsystem 50\n"},
        {"cpu.stat": "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n"},
    ],
)
@pytest.mark.skipif(not LINUX, reason="control groups are Linux'")
def test_a_control_group_accounts_for_all_that_ever_ran_in_it(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in {**files, "cgroup.procs": f"{os.getpid()}\n"}.items():
        (tmp_path / name).write_text(text)
    use = of(os.getpid(), tmp_path).use()
    assert use.cpu_s == 1.5
    assert use.cpu_user_s == pytest.approx(1.0)
    assert [process.pid for process in use.processes] == [os.getpid()]


@pytest.mark.skipif(not LINUX, reason="control groups are Linux'")
def test_a_group_that_accounts_for_nothing_is_not_believed(tmp_path: Path, start: Start) -> None:
    (tmp_path / "cpu.stat").write_text("nr_periods 0\n")
    process = start("burn(0.1); tell('burnt')")
    read_line(process)
    assert of(process.pid, tmp_path).use().cpu_s >= 0.1


def test_reading_a_tree_is_cheap(start: Start) -> None:
    process = start("tell('ready')")
    read_line(process)
    reader = of(process.pid)
    before = time.thread_time()
    for _ in range(20):
        reader.use()
    assert (time.thread_time() - before) / 20 < 0.02

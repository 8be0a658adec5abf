"""Another program run to its end: what it leaves, where it runs, and that it never outlives us."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pytest
from tests.run.supervision.ends import lives
from tests.waiting import wait_until

from velodrome.model.errors import (
    DriverError,
    DriverStoppedError,
    DriverTimedOutError,
    LinkRefusedError,
    StartRefusedError,
)
from velodrome.run import link
from velodrome.run.drivers.driver import LoadEvent
from velodrome.run.drivers.foreign import Finished, spawn
from velodrome.run.measuring.sampler import clock_s

SH = "/bin/sh"


def sh(script: str, span_s: float = 10, **how: object) -> Finished:
    return spawn((SH, "-c", script), span_s=span_s, **how)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others that are tested at the same time have drivers too, whose folders are not to be looked at."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def alive(pid: int) -> bool:
    try:
        return lives(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def test_output_errors_and_status_come_back() -> None:
    run = sh("echo right; echo wrong >&2; exit 3")
    assert (run.output, run.errors, run.status) == ("right\n", "wrong\n", 3)
    assert run.last_lines == ("wrong",)


def test_a_signal_is_a_negative_status() -> None:
    assert sh("kill -TERM $$").status == -signal.SIGTERM


def test_files_are_there_and_what_it_writes_comes_back() -> None:
    run = sh("wc -c < body > size", files={"body": b"\0" * 300_000})
    assert run.files == {"size": b"300000\n"}


def test_a_long_output_comes_back_whole() -> None:
    assert len(sh("head -c 5000000 /dev/zero").output) == 5_000_000


def test_its_cpu_time_is_its_own() -> None:
    code = "import time\nwhile time.process_time() < 0.3: pass"
    run = spawn((sys.executable, "-c", code), span_s=20)
    assert 0.3 <= run.cpu_s < 1.0
    assert run.wall_s >= 0.3


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_it_runs_on_the_cpus_given() -> None:
    cpu = max(os.sched_getaffinity(0))
    code = "import os; print(sorted(os.sched_getaffinity(0)))"
    assert spawn((sys.executable, "-c", code), (cpu,), span_s=10).output == f"[{cpu}]\n"


def test_numbers_are_written_as_the_parsers_read_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert sh("echo $LC_ALL").output == "C\n"


def test_its_start_and_end_are_the_measured_span_and_its_clock_can_be_read_at_both() -> None:
    seen: list[tuple[str, float]] = []
    pids: list[int] = []

    def watch(event: LoadEvent) -> bool:
        pids.extend([event.facts["pid"]] if event.kind == "started" else [])
        if pids:  # on a busy machine the driver says that it is alive before there is a generator
            seen.append((event.kind, clock_s(pids[0])))
        return True

    run = spawn((sys.executable, "-c", "sum(range(4_000_000))"), span_s=10, on_event=watch)
    kinds = [kind for kind, _ in seen if kind != "alive"]
    assert kinds == ["started", "measuring", "span_ended"]
    assert seen[-1][1] - seen[1][1] == pytest.approx(run.cpu_s, rel=0.1, abs=0.02)


def test_an_unmeasured_run_has_no_span() -> None:
    seen: list[str] = []

    def watch(event: LoadEvent) -> bool:
        seen.append(event.kind)
        return True

    sh("true", measured=False, on_event=watch)
    assert set(seen) <= {"started", "alive"}


def test_a_program_that_does_not_exist_is_reported() -> None:
    with pytest.raises(StartRefusedError, match=r"/no/such/tool cannot be executed: No such file"):
        spawn(("/no/such/tool",), span_s=1)


def test_an_argument_that_the_kernel_does_not_take_is_reported() -> None:
    with pytest.raises(StartRefusedError, match="Argument list too long"):
        spawn((SH, "x" * 5_000_000), span_s=5)


def test_one_that_hangs_is_killed_with_what_it_started_at_the_deadline(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    with pytest.raises(DriverTimedOutError, match=r"still running 0\.3 s after its load should have ended"):
        sh(f"sleep 1000 & echo $$ $! > {note}; wait", span_s=0.2, slack_s=0.3)
    wait_until(lambda: not any(alive(int(pid)) for pid in note.read_text().split()))


def test_it_ends_when_told_to(tmp_path: Path) -> None:
    pids: list[int] = []

    def dead_server(event: LoadEvent) -> bool:
        pids.extend([event.facts["pid"]] if event.kind == "started" else [])
        return not pids or event.kind != "alive"

    began = time.monotonic()
    with pytest.raises(DriverStoppedError):
        sh("exec sleep 1000", on_event=dead_server)
    assert time.monotonic() - began < 5
    assert not alive(pids[0])


def test_killed_from_outside_it_has_the_status_of_that_signal() -> None:
    def murder(event: LoadEvent) -> bool:
        if event.kind == "started":
            threading.Timer(0.2, os.kill, (event.facts["pid"], signal.SIGKILL)).start()
        return True

    assert sh("exec sleep 1000", on_event=murder).status == -signal.SIGKILL


PARENT = """
import sys
from velodrome.run.drivers.foreign import spawn
def tell(event):
    if event.kind == "started":
        print(event.facts["pid"], flush=True)
    return True
spawn(("/bin/sh", "-c", "exec sleep 1000"), span_s=1000, on_event=tell)
"""


@pytest.mark.parametrize("victim", ["velodrome", "holder"])
def test_nothing_survives_a_kill_of(victim: str) -> None:
    left = set(Path(tempfile.gettempdir()).glob("velodrome-*/driver-*"))
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert parent.stdout is not None
    tool = int(parent.stdout.readline())
    holder = psutil.Process(tool).ppid()
    os.kill(parent.pid if victim == "velodrome" else holder, signal.SIGKILL)
    wait_until(lambda: not alive(tool) and not alive(holder))
    parent.wait(10)
    wait_until(lambda: set(Path(tempfile.gettempdir()).glob("velodrome-*/driver-*")) <= left)
    assert parent.stderr is not None
    errors = parent.stderr.read().decode()
    parent.stdout.close()
    parent.stderr.close()
    assert victim == "velodrome" or DriverError.__name__ in errors


def test_its_folder_is_gone_after_it() -> None:
    left = set(Path(tempfile.gettempdir()).glob("velodrome-*/driver-*"))
    where = sh("pwd; touch more").output.strip()
    assert not Path(where).exists()
    assert set(Path(tempfile.gettempdir()).glob("velodrome-*/driver-*")) <= left


def test_it_is_in_the_network_of_the_thread_that_starts_it() -> None:
    try:
        other = link.make()
    except LinkRefusedError as why:
        pytest.skip(str(why))
    with other, link.enter(other):
        there, devices = sh("readlink /proc/self/ns/net; grep -c : /proc/net/dev").output.split()
        assert there == os.readlink("/proc/thread-self/ns/net")
    assert there != os.readlink("/proc/thread-self/ns/net")
    assert devices == "1"

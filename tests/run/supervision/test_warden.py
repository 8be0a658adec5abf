"""Nothing that a warden started outlives its order, its velodrome or itself."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest
from tests.run.supervision.ends import gone
from tests.waiting import eventually

from velodrome.model.errors import StartRefusedError
from velodrome.run.supervision import python, warden
from velodrome.run.supervision.scratch import MARK
from velodrome.run.supervision.ward import WARDEN, Exit, Group, Order, Ward

PYTHON = os.path.realpath(sys.executable)


def order(code: str, **more: object) -> Order:
    return Order(argv=(PYTHON, "-c", code), env={"PATH": "/usr/bin:/bin"}, **more)  # type: ignore[arg-type]


FAMILY = """
import os, signal, time
if {deaf}: signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        if {deaf}: os.setsid()
        if os.fork() == 0:
            os.setsid()
            if os.fork(): os._exit(0)   # a double fork: the classic daemon
        time.sleep(600)
print("up", flush=True)
time.sleep(600)
"""


def wait_for(tree: Ward, line: str) -> None:
    assert eventually(lambda: line in tree.tail.lines()), tree.tail.lines()


def test_an_exit_is_reported_with_its_code_and_last_lines() -> None:
    with Ward(order("print('one'); print('two'); raise SystemExit(7)")) as tree:
        ended = tree.wait(10)
        assert ended is not None
        assert (ended.code, ended.sentence) == (7, "exit 7")
        assert tree.tail.settle(5)
        assert tree.tail.lines() == ("one", "two")


def test_a_signal_is_reported_by_its_name() -> None:
    with Ward(order("import os; os.kill(os.getpid(), 11)")) as tree:
        ended = tree.wait(10)
        assert ended is not None
        assert ended.sentence == "killed by SIGSEGV"


def test_a_master_that_ends_by_itself_because_its_workers_were_killed_at_the_limit_says_so() -> None:
    assert Exit(0, 2, 0).sentence == "exit 0, after its memory limit was reached and its workers killed"
    assert Exit(-9, 1, 0).sentence == "killed: its memory limit was reached"
    assert Exit(0, 0, 0).sentence == "exit 0"


def test_a_program_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(StartRefusedError, match="/no/such/python cannot be executed: No such file"):
        Ward(Order(argv=("/no/such/python",), env={}))


def test_a_group_that_cannot_be_made_is_refused_by_its_path() -> None:
    with pytest.raises(StartRefusedError, match="control group /proc/velodrome"):
        Ward(order("pass", groups=(Group("/proc/velodrome-x", ()),)))


def test_stop_ends_a_whole_tree_with_its_daemons() -> None:
    tree = Ward(order(FAMILY.format(deaf=False)))
    wait_for(tree, "up")
    assert eventually(lambda: len(tree.family()) >= 5)
    ending = tree.stop(5.0)
    assert not ending.hung
    assert ending.orphans >= 4
    assert ending.stuck == ()
    assert tree.family() == ()


def test_a_tree_deaf_to_its_stop_signal_is_reported_as_hung() -> None:
    tree = Ward(order(FAMILY.format(deaf=True)))
    wait_for(tree, "up")
    began = time.monotonic()
    ending = tree.stop(0.3)
    assert ending.hung
    assert time.monotonic() - began < 5
    assert tree.family() == ()


def test_workers_that_outlive_their_master_are_ended() -> None:
    code = "import os, time\nif os.fork() == 0: time.sleep(600)\nos._exit(3)"
    with Ward(order(code)) as tree:
        assert tree.wait(10) is not None
        assert eventually(lambda: tree.family() == ())
        assert tree.stop().orphans == 1


def test_the_warden_killed_takes_its_child_along_and_the_rest_is_swept() -> None:
    tree = Ward(order(FAMILY.format(deaf=True)))
    wait_for(tree, "up")
    os.kill(psutil.Process(tree.pid).ppid(), signal.SIGKILL)
    assert eventually(lambda: tree.exit() is not None)
    tree.stop()
    assert tree.family() == ()


def grown(tree: Ward) -> tuple[psutil.Process, list[psutil.Process]]:
    """Wait until a FAMILY is whole; return its warden and all below it."""
    wait_for(tree, "up")
    watching = psutil.Process(psutil.Process(tree.pid).ppid())
    assert eventually(lambda: len(watching.children(recursive=True)) >= 5)
    return watching, watching.children(recursive=True)


def test_the_warden_killed_its_sentinel_ends_the_rest_and_removes_its_folder_at_once(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    tree = Ward(order(FAMILY.format(deaf=True), scratch=(str(scratch),)))
    watching, family = grown(tree)
    watching.kill()
    assert eventually(lambda: gone(family) and not scratch.exists())
    assert tree.stop().stuck == ()


def test_a_tree_goes_on_without_its_sentinel_and_ends_as_with_it(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    tree = Ward(order(FAMILY.format(deaf=False), scratch=(str(scratch),)))
    watching, family = grown(tree)
    psutil.Process(watching.ppid()).kill()
    assert not gone(family)
    assert tree.exit() is None
    ending = tree.stop(5.0)
    assert not ending.hung
    assert eventually(lambda: gone([*family, watching]))
    assert not scratch.exists()


def test_without_warden_and_sentinel_velodrome_ends_the_tree_itself(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    tree = Ward(order(FAMILY.format(deaf=True), scratch=(str(scratch),)))
    watching, family = grown(tree)
    psutil.Process(watching.ppid()).kill()
    watching.kill()
    assert tree.stop().stuck == ()
    assert gone(family)
    assert not scratch.exists()


BACKGROUND = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    def save(*_):
        time.sleep(0.3)
        open(sys.argv[1], "w").close()
        os._exit(0)
    signal.signal(signal.SIGTERM, save)
    print("up", flush=True)
    while True: time.sleep(600)
time.sleep(600)
"""


@pytest.mark.parametrize("wrong", [False, True])
def test_where_everyone_is_stopped_the_background_has_time_to_save_also_when_the_block_fails(
    tmp_path: Path, wrong: bool
) -> None:
    saved = tmp_path / "saved"
    argv = (PYTHON, "-c", BACKGROUND, str(saved))
    try:
        with Ward(Order(argv, {}, stop_everyone=True)) as tree:
            wait_for(tree, "up")
            if wrong:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert saved.exists()
    assert tree.stop().orphans == 0
    assert not tree.stop().hung


def test_where_everyone_is_stopped_the_deaf_are_killed(tmp_path: Path) -> None:
    tree = Ward(order(FAMILY.format(deaf=True), stop_everyone=True))
    _, family = grown(tree)
    assert tree.stop(0.3).hung
    assert gone(family)


FORKS_ON = """
import os, time
for number in range(2000):
    if os.fork() == 0:
        time.sleep(600)
    if number == 20:
        print("up", flush=True)
    time.sleep(0.0005)
"""


def test_where_everyone_is_stopped_what_is_forked_meanwhile_is_stopped_too() -> None:
    tree = Ward(order(FORKS_ON, stop_everyone=True))
    wait_for(tree, "up")
    ending = tree.stop(20.0)
    assert not ending.hung
    assert ending.orphans == 0


def test_a_stopped_server_is_woken_to_obey_its_stop_signal() -> None:
    tree = Ward(order("import os; print('up', flush=True); os.kill(os.getpid(), 19)"))
    wait_for(tree, "up")
    assert eventually(lambda: psutil.Process(tree.pid).status() == psutil.STATUS_STOPPED)
    ending = tree.stop(5.0)
    assert not ending.hung
    assert ending.exit is not None
    assert ending.exit.code == -signal.SIGTERM


def test_a_signal_reaches_only_the_process_it_is_meant_for() -> None:
    with subprocess.Popen(["/bin/sleep", "600"]) as stranger:
        pid = stranger.pid
        start = warden.start_time(pid)
        # The number was another process's before; or the process is none of ours any more.
        assert not warden.send(pid, start - 1, signal.SIGKILL, lambda _: True)
        assert not warden.send(pid, start, signal.SIGKILL, lambda _: False)
        assert stranger.poll() is None
        assert warden.below(pid, os.getpid())
        assert not warden.below(os.getpid(), pid)
        assert warden.send(pid, start, signal.SIGKILL, lambda candidate: warden.below(candidate, os.getpid()))
        assert stranger.wait(10) == -signal.SIGKILL
        assert not warden.send(pid, start, signal.SIGKILL, lambda _: True)


REFORKING = """
import os, sys, time
os.read(0, 1)       # until it is in its group
print("up", flush=True)
os.fork()
while True:
    if os.fork(): os._exit(0)
"""


def group_of(kind: str) -> Path:
    """Make a control group that can end all in it, where this machine has such."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        fits = (
            after.startswith("cgroup2 ")
            if kind == "cgroup.kill"
            else "freezer" in after.split()[-1].split(",")
        )
        group = Path(before.split()[4]) / f"velodrome-test-{os.urandom(4).hex()}"
        if fits and os.access(group.parent, os.W_OK):
            group.mkdir()
            if (group / kind).exists():
                return group
            group.rmdir()
    pytest.skip(f"there is no control group with {kind} here")


@pytest.mark.parametrize("kind", ["cgroup.kill", "freezer.state"])
def test_a_group_ends_what_forks_in_it_at_one_stroke_and_is_removed(kind: str) -> None:
    group = group_of(kind)
    try:
        wild = subprocess.Popen(
            [PYTHON, "-I", "-S", "-c", REFORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        (group / "cgroup.procs").write_text(str(wild.pid))
        assert wild.stdout is not None
        assert wild.stdin is not None
        wild.stdin.write(".")
        wild.stdin.close()
        assert wild.stdout.readline() == "up\n"
        wild.stdout.close()
        wild.wait(10)
        assert warden.kill_group(str(group))
    finally:
        assert warden.remove_group(str(group))


def test_scratch_folders_are_removed_but_not_what_they_link_to(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("dear")
    scratch = tmp_path / "scratch"
    (scratch / "deep").mkdir(parents=True)
    (scratch / "deep" / "link").symlink_to(kept)
    with Ward(order("open('deep/x', 'w')", cwd=str(scratch), scratch=(str(scratch),))) as tree:
        tree.wait(10)
    assert not scratch.exists()
    assert (kept / "file").read_text() == "dear"


def test_megabytes_of_output_neither_block_nor_are_kept() -> None:
    code = "import sys\nfor _ in range(400): sys.stdout.write('x' * 100_000)\nprint('\\nend')"
    with Ward(order(code)) as tree:
        assert tree.wait(30) is not None
        assert tree.tail.settle(10)
        assert tree.tail.total_bytes > 40_000_000
        assert tree.tail.lines()[-1] == "end"
        assert sum(map(len, tree.tail.lines(10_000))) < 70_000


def test_standard_output_can_be_kept_apart_from_errors(tmp_path: Path) -> None:
    code = "import os, sys; print('out'); print(os.listdir('/proc/self/fd'), file=sys.stderr)"
    with (tmp_path / "output").open("wb") as output, Ward(order(code), output.fileno()) as ward:
        assert ward.wait(10) is not None
        assert ward.tail.settle(5)
        assert ward.tail.lines() == ("['0', '1', '2', '3']",)  # 3 is the folder it lists: nothing leaks in
    assert (tmp_path / "output").read_text() == "out\n"


def test_affinity_and_limits_hold_inside() -> None:
    cpu = max(os.sched_getaffinity(0))
    code = "import os, resource; print(os.sched_getaffinity(0), resource.getrlimit(resource.RLIMIT_NOFILE))"
    with Ward(order(code, cpus=(cpu,), rlimits={"RLIMIT_NOFILE": 99})) as tree:
        tree.wait(10)
        assert tree.tail.settle(5)
        assert tree.tail.lines() == (f"{{{cpu}}} (99, 99)",)


PARENT = """
import sys, time
sys.path.insert(0, {src!r})
from velodrome.run.supervision.ward import Order, Ward
tree = Ward(Order(argv=({python!r}, "-c", {code!r}), env={{}}, scratch=({scratch!r},)))
while "up" not in tree.tail.lines(): time.sleep(0.01)
print(tree.mark, flush=True)
time.sleep(600)
"""


def test_velodrome_gone_before_its_server_is_up_leaves_nothing(tmp_path: Path) -> None:
    # The warden learns of it when it reports the start: nobody takes the report.
    ours, theirs = socket.socketpair()
    code = f"import time; open({str(tmp_path / 'up')!r}, 'w').close(); time.sleep(600)"
    output, spare = os.open(os.devnull, os.O_WRONLY), os.open(os.devnull, os.O_RDONLY)
    plain = asdict(order(code)) | {"stdio": [0, output, output], "lock": [spare, "/no/such/lock"]}
    argv = python.alone_by_main(WARDEN, str(theirs.fileno()))
    keep = (theirs.fileno(), output, spare)
    with subprocess.Popen(argv, pass_fds=keep, stdin=subprocess.DEVNULL) as warden:
        theirs.close()
        os.close(output)
        os.close(spare)
        ours.sendall(json.dumps(plain).encode() + b"\n")
        ours.close()
        assert warden.wait(10) == 0


def carriers(mark: str) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.mark.parametrize("deaf", [False, True])
def test_nothing_survives_the_kill_of_velodrome(tmp_path: Path, deaf: bool) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code = PARENT.format(
        src=str(Path(__file__).parents[3] / "src"),
        python=PYTHON,
        code=FAMILY.format(deaf=deaf),
        scratch=str(scratch),
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as velodrome:
        assert velodrome.stdout is not None
        mark = velodrome.stdout.readline().strip()
        assert len(carriers(mark)) >= 3
        velodrome.kill()
    assert eventually(lambda: carriers(mark) == [])
    assert eventually(lambda: not scratch.exists())

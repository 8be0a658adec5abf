"""A limit holds, by control group or without, or is an error; and no group outlives its server."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from velodrome.model.errors import LimitError
from velodrome.model.load import Limits
from velodrome.run.machine import limits
from velodrome.run.machine.limits import Bounds, Hierarchy, bounds, hierarchies, sweep, usable_hierarchies
from velodrome.run.supervision.ward import Order, Ward
from velodrome.run.supervision.warden import remove_group, start_time

PYTHON = os.path.realpath(sys.executable)
SMALL = Limits(cpus=1, memory_bytes=48 << 20)
CPU = (max(os.sched_getaffinity(0)),)


@pytest.fixture
def where() -> Mapping[str, Hierarchy]:
    found = hierarchies()
    missing = {"memory", "cpuset"} - set(found)
    if missing:
        pytest.skip(f"no writable control group for {' and '.join(sorted(missing))}")
    return found


def run(code: str, held: Bounds) -> Ward:
    ward = Ward(Order((PYTHON, "-c", code), {}, cpus=CPU, groups=held.groups, rlimits=held.rlimits))
    assert ward.wait(20) is not None
    ward.stop()
    return ward


def test_a_group_holds_a_server_to_its_memory_and_tells_why_it_died(where: Mapping[str, Hierarchy]) -> None:
    held = bounds(SMALL, CPU, where)
    assert held.enforced_by in ("cgroup v1", "cgroup v2", "cgroup v1 and cgroup v2")
    ward = run("x = bytearray(200 << 20)", held)
    ended = ward.exit()
    assert ended is not None
    assert ended.sentence == "killed: its memory limit was reached"
    assert not any(Path(group.path).exists() for group in held.groups)


def test_a_group_holds_a_server_on_its_cpus_against_its_will(where: Mapping[str, Hierarchy]) -> None:
    escape = "try: os.sched_setaffinity(0, range(8))\nexcept OSError: pass"
    code = f"import os\n{escape}\nprint(os.sched_getaffinity(0))"
    assert run(code, bounds(SMALL, CPU, where)).tail.lines() == (str(set(CPU)),)
    assert run(code, bounds(Limits(), CPU, {})).tail.lines() == (str(os.sched_getaffinity(0)),)


def test_without_groups_memory_is_held_by_address_space_and_that_is_reported() -> None:
    held = bounds(Limits(memory_bytes=200 << 20), CPU, {})
    assert held.enforced_by == "affinity and rlimits"
    assert "RLIMIT_AS bounds the address space of each process" in held.notes[0]
    assert run("x = bytearray(300 << 20)", held).tail.lines()[-1] == "MemoryError"


def test_no_limits_are_affinity_alone_with_an_account_where_there_is_one() -> None:
    assert bounds(Limits(), CPU, {}) == Bounds("affinity and rlimits")
    accounted = bounds(Limits(), CPU, {"cpuacct": Hierarchy(1, Path("/groups"))})
    assert accounted.account is not None
    assert [group.path for group in accounted.groups] == [str(accounted.account)]


def test_an_impossible_limit_is_an_error_with_a_cure() -> None:
    with pytest.raises(LimitError, match=r"no Python server starts in less than 16 MiB\. Give more"):
        bounds(Limits(memory_bytes=1), CPU, {})


def test_a_group_that_refuses_processes_gives_way_to_affinity_and_rlimits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A plain folder takes sub-folders and files, but is no control group: no cgroup.procs is in it.
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(limits, "hierarchies", lambda: {"memory": Hierarchy(2, file)})
    assert usable_hierarchies(SMALL, CPU) == {}


def test_hierarchies_of_v1_are_found_below_our_own_groups(tmp_path: Path) -> None:
    (tmp_path / "memory" / "mine").mkdir(parents=True)
    (tmp_path / "cpuset").mkdir()
    mounts = (
        f"30 25 0:26 / {tmp_path}/memory rw - cgroup cgroup rw,memory\n"
        f"31 25 0:27 / {tmp_path}/cpuset rw - cgroup cgroup rw,cpuset\n"
        f"32 25 0:28 / {tmp_path}/pids rw - cgroup cgroup rw,pids\n"
    )
    found = hierarchies(mounts, "4:memory:/mine\n3:cpuset:/not/visible/here\n8:pids:/\n")
    assert found == {
        "memory": Hierarchy(1, tmp_path / "memory" / "mine"),
        "cpuset": Hierarchy(1, tmp_path / "cpuset"),
    }


def test_hierarchies_of_v2_are_those_an_ancestor_hands_on(tmp_path: Path) -> None:
    own = tmp_path / "user.slice" / "session.scope"
    own.mkdir(parents=True)
    for folder, handed in ((own, ""), (own.parent, "memory pids"), (tmp_path, "cpuset memory io")):
        (folder / "cgroup.procs").touch()
        (folder / "cgroup.subtree_control").write_text(handed)
    found = hierarchies(f"30 25 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw", "0::/user.slice/session.scope")
    assert found == {
        "cpuacct": Hierarchy(2, own),
        "memory": Hierarchy(2, own.parent),
        "cpuset": Hierarchy(2, tmp_path),
    }


def test_what_a_killed_velodrome_left_is_swept_and_what_lives_is_not(where: Mapping[str, Hierarchy]) -> None:
    namespace, own = os.stat("/proc/self/ns/pid").st_ino, os.getpid()
    names = {
        "dead": f"velodrome-{namespace}-4194399-77-0badcafe",  # above the largest process number of Linux
        "renumbered": f"velodrome-{namespace}-{own}-{start_time(own) - 1}-0badcafe",  # our number was another's before
        "alive": f"velodrome-{namespace}-{own}-{start_time(own)}-0badcafe",
        "elsewhere": "velodrome-1-4194399-77-0badcafe",  # of another PID namespace: its process may well live
    }
    for parent in (where[name].parent for name in ("memory", "freezer") if name in where):
        groups = {what: parent / name for what, name in names.items()}
        members = {what: subprocess.Popen(["/bin/sleep", "600"]) for what in groups}
        try:
            for what, group in groups.items():
                group.mkdir()
                (group / "cgroup.procs").write_text(str(members[what].pid))
            assert sweep(where) == 2
            assert {what for what, group in groups.items() if group.exists()} == {"alive", "elsewhere"}
            assert [members[what].wait(10) for what in ("dead", "renumbered")] == [-signal.SIGKILL] * 2
            assert [members[what].poll() for what in ("alive", "elsewhere")] == [None, None]
        finally:
            for what, group in groups.items():
                members[what].kill()
                members[what].wait()
                if group.exists():
                    assert remove_group(str(group))

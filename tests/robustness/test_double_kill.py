"""Velodrome killed together with what watches over its servers: nothing is left, at the latest after the next start."""

import json
import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil
import pytest
from tests.robustness import left
from tests.run.link.possible import REFUSAL
from tests.run.supervision.ends import living
from tests.waiting import eventually

from velodrome.run.machine import limits
from velodrome.run.racing import store
from velodrome.run.supervision.warden import remove_group

ROOT = Path(__file__).parents[2]
SEED = 1307
KILLS = 100
NOBODY = 65534
SYSTEM_PYTHON = "/usr/bin/python3"
"""For another user: that of the tests may lie where only root goes."""

TREE = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ready, there = os.pipe()
for number in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            os.write(there, b"x")
            if number == 1 and sys.argv[1] == "clear":
                os.execve("/bin/sleep", ["sleep", "600"], {})   # without a mark
        time.sleep(600)
seen = 0
while seen < 3:
    seen += len(os.read(ready, 3))   # each has forked
print("up", flush=True)
time.sleep(600)
"""

VELODROME = """
import sys, time
from velodrome.run.machine.limits import bounds, hierarchies
from velodrome.model.load import Limits
from velodrome.run.supervision import scratch
from velodrome.run.supervision.ward import Order, Ward
where = {name: hierarchy for name, hierarchy in hierarchies().items() if name == "freezer"}
tree = Ward(Order(
    argv=(sys.executable, "-c", *sys.argv[1:3]),
    env={},
    groups=bounds(Limits(), (0,), where).groups,
    scratch=(str(scratch.new_path("server")),),
))
while "up" not in tree.tail.lines(): time.sleep(0.01)
print("up", flush=True)
held = []
while len(sys.argv) > 3:
    held.append(bytearray(1 << 20))   # until there is no memory
time.sleep(600)
"""

NEXT = """
from velodrome.run.supervision import scratch
from velodrome.run.machine import limits
scratch.home(); scratch.end_orphans(); limits.sweep()
"""


class Someone:
    """A velodrome as root or as somebody else, in a folder for temporary files of its own."""

    def __init__(self, place: Path, root: bool) -> None:
        if not root and os.geteuid() == 0 and not Path(SYSTEM_PYTHON).exists():
            pytest.skip("there is no Python that another user can execute")
        self.other = not root and os.geteuid() == 0
        self.place, self.token = place, secrets.token_hex(8)
        place.mkdir(exist_ok=True)
        place.chmod(0o777)
        self.environment = {
            **os.environ,
            left.TOKEN: self.token,
            "TMPDIR": str(place),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)]),
        }
        self.python = SYSTEM_PYTHON if self.other else sys.executable

    @contextmanager
    def start(self, code: str, *arguments: str, group: Path | None = None) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            [self.python, "-c", code, *arguments],
            env=self.environment,
            cwd="/",
            stdout=subprocess.PIPE,
            text=True,
            user=NOBODY if self.other else None,
            group=NOBODY if self.other else None,
            extra_groups=[] if self.other else None,
        ) as process:
            try:
                if group:
                    (group / "cgroup.procs").write_text(str(process.pid))
                yield process
            finally:
                process.kill()

    def next(self) -> None:
        with self.start(NEXT) as process:
            assert process.wait(30) == 0


@pytest.fixture(params=["root", "another user"])
def someone(request: pytest.FixtureRequest) -> Iterator[Someone]:
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("only root is root")
    place = Path(tempfile.mkdtemp())  # pytest's own are closed to other users
    yield Someone(place, request.param == "root")
    shutil.rmtree(place)


@pytest.mark.parametrize("with_whom", ["wardens", "sentinels", "both"])
def test_a_tree_whose_velodrome_and_supervisors_are_killed_together_is_ended(
    someone: Someone, with_whom: str
) -> None:
    # With nobody left a process without a mark is found by its group, where there are groups.
    grouped = not someone.other and "freezer" in limits.hierarchies()
    clear = "clear" if grouped or with_whom != "both" else "keep"
    with someone.start(VELODROME, TREE, clear) as velodrome:
        assert velodrome.stdout is not None
        assert velodrome.stdout.readline() == "up\n"
        sentinels, wardens = left.supervisors(velodrome.pid, someone.token)
        assert len(sentinels) == len(wardens) == 1
        tree = psutil.Process(*wardens).children(recursive=True)
        assert len(tree) >= 7
        doomed = {"wardens": wardens, "sentinels": sentinels, "both": sentinels + wardens}[with_whom]
        left.kill([velodrome.pid, *doomed])
    began = time.monotonic()
    if with_whom != "both":
        assert eventually(lambda: not living(tree), left.SOON_S), living(tree)
        print(f"{len(tree)} processes gone after {time.monotonic() - began:.2f} s")
        assert eventually(lambda: not left.alive(velodrome.pid, someone.token), left.SOON_S)
        assert eventually(lambda: left.folders(velodrome.pid, someone.place) == [], left.SOON_S)
    someone.next()
    assert living(tree) == []
    assert left.alive(velodrome.pid, someone.token) == []
    assert left.folders(velodrome.pid, someone.place) == []
    assert left.groups(velodrome.pid) == []


def test_what_runs_out_of_memory_leaves_nothing(tmp_path: Path) -> None:
    where = limits.hierarchies()
    if "memory" not in where:
        pytest.skip("no control group for memory is writable")
    group = where["memory"].parent / f"velodrome-test-{secrets.token_hex(4)}"
    group.mkdir()
    someone = Someone(tmp_path / "temporary", root=os.geteuid() == 0)
    try:
        limit = "memory.max" if where["memory"].version == 2 else "memory.limit_in_bytes"
        (group / limit).write_text(str(160 << 20))
        with someone.start(VELODROME, TREE, "clear", "greedy", group=group) as velodrome:
            assert velodrome.stdout is not None
            assert velodrome.stdout.readline() == "up\n"
            assert velodrome.wait(60) == -9
        assert eventually(lambda: not (group / "cgroup.procs").read_text(), left.SOON_S), left.alive(
            velodrome.pid, someone.token
        )
        someone.next()
        assert left.folders(velodrome.pid, someone.place) == []
        assert left.groups(velodrome.pid) == []
    finally:
        remove_group(str(group))


def networks(processes: list[psutil.Process]) -> set[str]:
    """Return the network namespaces that processes are in, but for ours."""
    found = set()
    for process in processes:
        with suppress(OSError):
            found.add(os.readlink(f"/proc/{process.pid}/ns/net"))
    return found - {os.readlink("/proc/self/ns/net")}


@pytest.mark.skipif(bool(REFUSAL), reason=REFUSAL or "there is a link")
def test_a_race_over_a_link_killed_with_all_its_supervisors_leaves_no_network(tmp_path: Path) -> None:
    someone = Someone(tmp_path / "temporary", root=os.geteuid() == 0)
    environment = {**someone.environment, "VELODROME_LOCK": str(tmp_path / "lock")}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.run.racing.short_race", str(tmp_path / "out")],
        cwd=ROOT,
        env={**environment, "VELODROME_CACHE": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
    ) as race:
        assert race.stdout is not None
        assert race.stdout.readline()
        everything = left.alive(race.pid, someone.token)
        there = networks(everything)
        assert there
        sentinels, wardens = left.supervisors(race.pid, someone.token)
        left.kill([race.pid, *sentinels, *wardens])
    someone.next()
    # The generator and the relay see the end of their pipes; the servers are orphans.
    assert eventually(lambda: not living(everything), left.SOON_S), living(everything)
    assert not networks(list(psutil.process_iter())) & there
    assert not [name for name in os.listdir("/sys/class/net") if name.startswith("velodrome")]
    assert left.folders(race.pid, someone.place) == []
    assert left.groups(race.pid) == []


class Race:
    """`velodrome run` of a study of one server with three workers."""

    STUDY = """
title = "Three workers under little load"
blocks = 12
seed = 4711
contestants = [{stack = "uvicorn", workers = 3}]

[[questions]]
name = "hello"
recipe = "hello"
loads = [
  {rate = 40, connections = 4, warmup = "0s", duration = "0.3s", drain = "0.2s"},
  {rate = 20, connections = 2, warmup = "0s", duration = "0.3s", drain = "0.2s"},
]
"""
    TRIALS = 24

    def __init__(self, folder: Path, out: Path) -> None:
        self.token, self.out = secrets.token_hex(8), out
        (folder / "three.toml").write_text(self.STUDY)
        resume = ["--resume"] if (out / store.NAME).exists() else []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "velodrome", "run", "./three.toml", "--out", str(out), *resume],
            cwd=folder,
            env={
                **os.environ,
                left.TOKEN: self.token,
                "TMPDIR": str(folder),
                "VELODROME_LOCK": str(folder / "lock"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.pid = self.process.pid

    def finished(self) -> set[str]:
        """Return the keys of the trials in its file, which must be readable but for a last line that is torn."""
        if not (self.out / store.NAME).exists():
            return set()
        return {result.trial.key for result in store.read(self.out).trials}

    def end(self) -> str:
        sentence, _ = self.process.communicate(timeout=200)
        return sentence


def killed_again_and_again(tmp_path: Path, kills: int, capsys: pytest.CaptureFixture[str]) -> None:
    chance, at_once, later, slowest, completed = random.Random(SEED), 0, 0, 0.0, 0
    moments: list[float] = []
    swept = {"processes": 0, "folders": 0, "groups": 0}
    before: Race | None = None
    out, kept = tmp_path / "out-0", set[str]()
    for number in range(kills):
        race = Race(tmp_path, out)
        moment, whom = chance.uniform(0.3, 9.0), chance.choice(["wardens", "sentinels", "both"])
        try:
            race.process.wait(moment)
        except subprocess.TimeoutExpired:
            sentinels, wardens = left.supervisors(race.pid, race.token)
            doomed = {"wardens": wardens, "sentinels": sentinels, "both": sentinels + wardens}[whom]
            left.kill([race.pid, *doomed])
            moments.append(moment)
        sentence = race.end()
        if before and (left.folders(race.pid, tmp_path) or race.process.returncode == 0):
            # A start has come so far as to start anything: nothing of the one before is left.
            assert left.alive(before.pid, before.token) == [], number
            assert left.folders(before.pid, tmp_path) == [], number
            assert left.groups(before.pid) == [] or race.finished() == kept, number
        began = time.monotonic()
        if whom != "both" and race.process.returncode:
            nothing_left = partial(lambda pid, token: not left.alive(pid, token), race.pid, race.token)
            assert eventually(nothing_left, left.SOON_S), (number, moment, whom)
            slowest = max(slowest, time.monotonic() - began)
            at_once += 1
        else:
            later += bool(race.process.returncode)
        swept["processes"] += len(left.alive(race.pid, race.token))
        swept["folders"] += len(left.folders(race.pid, tmp_path))
        swept["groups"] += len(left.groups(race.pid))
        assert kept <= race.finished(), (number, sentence)
        kept, before = race.finished(), race
        if race.process.returncode == 0:
            assert len(kept) == race.TRIALS, sentence
            completed += 1
            out, kept = tmp_path / f"out-{completed}", set()
    last = Race(tmp_path, out)
    sentence = last.end()
    assert last.process.returncode == 0, sentence
    assert len(last.finished()) == last.TRIALS
    lines = (out / store.NAME).read_text().splitlines()
    assert all(json.loads(line) for line in lines)
    for race in filter(None, (before, last)):
        assert left.alive(race.pid, race.token) == []
        assert left.groups(race.pid) == []
    assert list(tmp_path.glob("velodrome-*")) == []
    with capsys.disabled():
        print(
            f"\n{len(moments)} double kills, {min(moments):.1f} to {max(moments):.1f} s after the start, seed {SEED}: "
            f"{at_once} where a supervisor was left (all processes gone after {slowest:.1f} s at most), {later} where "
            f"none was; left for the next start {swept}; {completed + 1} races completed, no torn line"
        )


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_a_hundred_double_kills_of_a_race_leave_nothing_after_the_next_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed_again_and_again(tmp_path, KILLS, capsys)

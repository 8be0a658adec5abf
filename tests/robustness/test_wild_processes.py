"""Servers that do what they can to outlive their end: none does, and nobody else is hit."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.robustness.left import SOON_S
from tests.waiting import eventually

from velodrome.model.load import Limits
from velodrome.run.machine.limits import bounds, hierarchies
from velodrome.run.supervision.ward import Group, Order, Ward

WILD = r"""
import mmap, os, signal, sys, time
how = sys.argv[1]

def deaf():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCONT):
        signal.signal(number, signal.SIG_IGN)

def child():
    return os.fork() == 0

def chain(session):
    while True:                      # each forks the next and ends
        if os.fork():
            os._exit(0)
        if session:
            os.setsid()

deaf()
print("up", flush=True)
if how in ("chain", "chain-of-sessions"):
    if child():
        chain(how == "chain-of-sessions")
elif how == "bomb":                  # every one of them forks, some hundred together
    count = mmap.mmap(-1, 4)
    while True:
        number = int.from_bytes(count[:4], "little")
        if number < 150:
            count[:4] = (number + 1).to_bytes(4, "little")
            if child() and number % 3 == 0:
                os.setsid()
        else:
            time.sleep(0.001)
elif how == "replaced":              # whoever sees one die starts two
    def again(*_):
        for _ in range(2):
            if child():
                break
    signal.signal(signal.SIGCHLD, again)
    for _ in range(8):
        if child():
            break
elif how == "daemon":
    if child():
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        os.umask(0)
        os.closerange(0, 3)
elif how == "bare":                  # neither environment nor descriptors of ours
    if child():
        os.setsid()
        os.closerange(3, 4096)
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)", sys.argv[2]], {})
elif how == "stopped-worker":
    if child():
        os.kill(os.getpid(), signal.SIGSTOP)
elif how == "stopped":
    os.kill(os.getpid(), signal.SIGSTOP)
while True:
    time.sleep(600)
"""
MOST_S = 60.0
"""Others are at work on this machine; what is not ended multiplies for ever."""
HOWS = ("chain", "chain-of-sessions", "bomb", "replaced", "daemon", "bare", "stopped-worker", "stopped")

CHAIN = """
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) {
    int session = count > 2;
    signal(SIGTERM, SIG_IGN);
    puts("up");
    fflush(stdout);
    if (fork() == 0)
        for (;;) {
            pid_t next = fork();
            if (next > 0) _exit(0);
            if (next == 0 && session) setsid();
        }
    for (;;) pause();
}
"""


def carrying(token: str) -> list[int]:
    """Return the living processes with this word in their command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if token in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def none_is_left(token: str) -> bool:
    """Return whether none is seen in several looks: what forks fast may hide from one."""
    return not any(carrying(token) for _ in range(3))


def groups(kind: str) -> tuple[Group, ...]:
    if kind == "no group":
        return ()
    where = {
        name: hierarchy
        for name, hierarchy in hierarchies().items()
        if name == "freezer" or hierarchy.version == 2
    }
    if not where:
        pytest.skip("no control group that ends what is in it is writable")
    return bounds(Limits(), (0,), where).groups


def ended(argv: tuple[str, ...], token: str, kind: str, wild_s: float = 0.2) -> float:
    """Start it, let it run wild, end it; return how long that took."""
    bystander = subprocess.Popen(["/bin/sleep", "600"])
    try:
        with Ward(Order(argv, {"PATH": os.environ["PATH"]}, groups=groups(kind))) as ward:
            assert eventually(lambda: "up" in ward.tail.lines(), SOON_S), ward.tail.lines()
            time.sleep(wild_s)  # not a wait for anything: so long it does what it wants
            began = time.monotonic()
            ending = ward.stop(0.1)
        took = time.monotonic() - began
        assert ending.stuck == ()
        assert none_is_left(token)
        assert not any(Path(group.path).exists() for group in ward.order.groups)
        assert bystander.poll() is None
        return took
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("kind", ["no group", "group"])
@pytest.mark.parametrize("how", HOWS)
def test_it_is_ended_with_all_it_started(how: str, kind: str) -> None:
    token = f"wild-{os.urandom(6).hex()}"
    took = ended((sys.executable, "-I", "-S", "-c", WILD, how, token), token, kind)
    print(f"{how}, {kind}: ended after {took:.2f} s")
    assert took < MOST_S


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["no group", "group"])
@pytest.mark.parametrize("session", [False, True])
def test_a_chain_of_processes_written_in_c_is_ended_each_time(
    tmp_path: Path, session: bool, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "chain.c").write_text(CHAIN)
    subprocess.run([compiler, "-O2", "-o", tmp_path / "chain", tmp_path / "chain.c"], check=True)
    took = []
    for _ in range(20):
        token = f"wild-{os.urandom(6).hex()}"
        argv = (str(tmp_path / "chain"), token, *(["session"] if session else []))
        took.append(ended(argv, token, kind))
    with capsys.disabled():
        print(f"\n20 chains in C, sessions {session}, {kind}: ended after {max(took):.2f} s at most")

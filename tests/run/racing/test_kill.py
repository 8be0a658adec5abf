"""Killed at any moment, a race leaves no process, file or control group, and loses no finished trial."""

import os
import random
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.run.racing.short_race import sessions, whole
from tests.waiting import eventually

from velodrome.model.measurement import Measurement
from velodrome.run.machine import limits
from velodrome.run.racing import store
from velodrome.run.supervision.warden import LOCK

ROOT = Path(__file__).parents[3]
TOKEN = "VELODROME_KILL_TEST"
SEED = 4711
WHOLE_S = 3.6
"""About what the whole race takes; moments are drawn from here."""
TRIALS = sum(len(session.trials) for session in sessions(whole()))


class Running:
    """A race in a process of its own, in which every process it starts can be recognised."""

    def __init__(self, out: Path, cache: Path, *options: str) -> None:
        self.token = secrets.token_hex(8)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.run.racing.short_race", str(out), *options],
            cwd=ROOT,
            env={**os.environ, TOKEN: self.token, "VELODROME_CACHE": str(cache)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.scratch = f"velodrome-{self.process.pid}-"

    def left(self) -> list[psutil.Process]:
        """Return what still lives of it: wardens, engine and upstream by the token, servers by their home."""
        found = []
        for process in psutil.process_iter():
            try:
                environment = process.environ()
                zombie = process.status() == psutil.STATUS_ZOMBIE
            except (psutil.Error, OSError):
                continue
            ours = environment.get(TOKEN) == self.token or self.scratch in environment.get("HOME", "")
            if ours and not zombie and process.pid != self.process.pid:
                found.append(process)
        return found

    def reported(self) -> list[str]:
        """Return the keys of the results it printed, after it has ended."""
        out, _ = self.process.communicate(timeout=60)
        return [line.split()[0] for line in out.splitlines() if line.endswith(("Measurement", "Failed"))]

    def groups(self) -> list[Path]:
        parents = {hierarchy.parent for hierarchy in limits.hierarchies().values()}
        return [group for parent in parents for group in parent.glob(f"velodrome-*-{self.process.pid}-*")]


def assert_nothing_is_left(running: Running) -> None:
    assert eventually(lambda: not running.left(), 20), running.left()
    # Where no warden was at work its own folder stays until the next start, with nothing in it but its lock.
    assert eventually(
        lambda: {path.name for path in Path("/tmp").glob(running.scratch + "*/*")} <= {LOCK}, 20
    )
    assert eventually(lambda: not running.groups(), 20), running.groups()


def assert_resume_completes(out: Path, cache: Path) -> None:
    resumed = Running(out, cache, "--resume")
    keys = resumed.reported()
    assert resumed.process.returncode == 0
    assert len(keys) == TRIALS
    assert set(keys) == {result.trial.key for result in store.read(out).trials}
    assert all(isinstance(result, Measurement) for result in store.read(out).trials)
    assert_nothing_is_left(resumed)
    assert not list(Path("/tmp").glob(resumed.scratch + "*"))


def killed_at(moment_s: float, tmp_path: Path) -> None:
    out, cache = tmp_path / "out", tmp_path / "cache"
    running = Running(out, cache)
    time.sleep(moment_s)  # not a wait for anything: the moment of the kill is what is tested
    running.process.kill()
    reported = running.reported()
    assert_nothing_is_left(running)
    if (out / store.NAME).exists():
        if reported:
            assert set(reported) <= {result.trial.key for result in store.read(out).trials}
        assert_resume_completes(out, cache)
        assert not list(Path("/tmp").glob(running.scratch + "*"))
    else:
        assert reported == []


MOMENTS = [random.Random(f"{SEED}/{number}").uniform(0.0, WHOLE_S) for number in range(30)]


@pytest.mark.parametrize("number", range(2))
def test_a_race_killed_at_any_moment_leaves_nothing_and_resumes(tmp_path: Path, number: int) -> None:
    killed_at(MOMENTS[number], tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(30))
def test_a_race_killed_at_thirty_moments_leaves_nothing_and_resumes(tmp_path: Path, number: int) -> None:
    killed_at(MOMENTS[number], tmp_path)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_race_stopped_in_order_says_how_to_go_on_and_leaves_nothing(
    tmp_path: Path, stop: signal.Signals
) -> None:
    out, cache = tmp_path / "out", tmp_path / "cache"
    running = Running(out, cache)
    assert running.process.stdout is not None
    first = running.process.stdout.readline()
    assert first
    assert running.left()
    running.process.send_signal(stop)
    _, errors = running.process.communicate(timeout=30)
    assert running.process.returncode == 130
    assert f"of {TRIALS} trials are kept in" in errors
    assert "Go on with --resume" in errors
    assert running.left() == []
    assert_nothing_is_left(running)
    assert_resume_completes(out, cache)

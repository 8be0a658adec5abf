"""A real server sampled under load, and every reason for which there is no profile: nothing else is lost."""

import json
import shutil
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.run import made
from tests.run.racing.plain_driver import PlainDriver
from tests.run.racing.short_race import HOSTILE, bare

from velodrome.guest import catalog
from velodrome.model import profile as samples
from velodrome.model.errors import ProfilerError
from velodrome.model.load import Closed, Limits, Load, Open
from velodrome.model.measurement import LoadFacts
from velodrome.model.trial import Contestant, Trial
from velodrome.run import profiling
from velodrome.run.drivers.driver import LoadEvent, OnEvent, Target
from velodrome.run.environments import guest_tree
from velodrome.run.lab import Lab
from velodrome.run.profiling import take

LOAD = Load(Open(100, connections=10), duration_s=2)


@pytest.fixture
def lab() -> Lab:
    return Lab(catalog.stacks([HOSTILE]), guest_tree.export([HOSTILE]), environment=bare, stop_seconds=0.5)


def trial(does: str = "answer", load: Load = LOAD) -> Trial:
    return Trial("study", "hello", made.HELLO, Contestant("hostile", {"does": does}), load, Limits(), 0)


@pytest.mark.skipif(sys.platform != "linux", reason="the profiler needs root elsewhere")
def test_a_server_under_load_is_profiled_and_its_stacks_are_written(lab: Lab, tmp_path: Path) -> None:
    profile = take(trial(), lab, tmp_path)
    assert profile.failed == ""
    assert profile.profiler.startswith("py-spy 0.")
    assert profile.samples > 20  # of 200: a busy machine does not let the profiler look each time
    assert profile.idle_share is not None
    assert 0 <= profile.idle_share <= 1
    assert profile.achieved_rps == pytest.approx(100, rel=0.3)
    assert profile.server_cpu_s
    assert profile.load_s
    stacks = samples.parse((tmp_path / profile.collapsed).read_text())
    assert sum(stacks.values()) == profile.samples
    scoped = json.loads((tmp_path / profile.speedscope).read_text())
    weights = [weight for recorded in scoped["profiles"] for weight in recorded["weights"]]
    assert sum(weights) == pytest.approx(profile.samples / profile.rate_hz)
    named = {frame["name"] for frame in scoped["shared"]["frames"]}
    assert named == {frame for stack in stacks for frame in stack[1:]}


def test_a_server_that_does_not_start_has_no_profile_and_the_reason(lab: Lab, tmp_path: Path) -> None:
    profile = take(trial("die-at-start"), lab, tmp_path)
    assert "hostile" in profile.failed
    assert profile.samples == 0
    assert list(tmp_path.iterdir()) == []


def test_a_missing_profiler_is_reported_with_its_cure(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda *_: None)
    assert (
        "it is not installed. Install it: python -m pip install py-spy" in take(trial(), lab, tmp_path).failed
    )


@pytest.fixture
def spy(tmp_path: Path) -> Callable[[str], str]:
    """A script in the place of py-spy."""

    def make(script: str) -> str:
        path = tmp_path / "py-spy"
        path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo py-spy 0.4.3 && exit\n{script}\n')
        path.chmod(0o755)
        return str(path)

    return make


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'Permission Denied: Try running again with elevated permissions' >&2; exit 1", "as root"),
        (
            "echo 'Error: Failed to find python version from target process' >&2; exit 1",
            "an interpreter that it knows",
        ),
        ("echo 'Error: out of luck' >&2; echo 'Stack backtrace:' >&2; exit 1", "out of luck"),
        ("exit 1", "ended with status 1 and printed nothing"),
        ("exit 0", "ended with status 0 and printed nothing"),
    ],
)
def test_a_profiler_that_may_not_or_cannot_read_the_server_says_why(
    spy: Callable[[str], str], script: str, reason: str
) -> None:
    with pytest.raises(ProfilerError, match=reason):
        profiling.record(1, 1, path=spy(script))


def test_a_profiler_that_hangs_is_killed(spy: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "SLACK_S", 0.3)
    with pytest.raises(ProfilerError, match="still running"):
        profiling.record(1, 0, path=spy("exec sleep 1000"))


class Interrupted(PlainDriver):
    """Ctrl-C comes when the load is under way and the profiler with it."""

    def run(self, load: Load, target: Target, on_event: OnEvent) -> LoadFacts:
        on_event(LoadEvent("measuring", {"monotonic_ns": time.monotonic_ns()}))
        until = time.monotonic() + 20
        while not profilers():
            assert time.monotonic() < until, "the profiler was never started"
            time.sleep(0.01)
        raise KeyboardInterrupt


def profilers() -> list[psutil.Process]:
    """Those below this process that record."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            words = process.cmdline()
            if "record" in words and any(word.endswith("/py-spy") for word in words):
                found.append(process)
    return found


def test_a_load_that_is_interrupted_ends_the_profiler_too(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spy: Callable[[str], str]
) -> None:
    path = spy("while :; do sleep 0.1; done")
    monkeypatch.setattr(profiling, "find_profiler", lambda: path)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        take(trial(), replace(lab, driver=lambda name, placed, seed: Interrupted()), tmp_path)
    assert profilers() == []
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("profiler")]
    assert time.monotonic() - began < 15


def test_stacks_that_cannot_be_read_are_reported(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spy: Callable[[str], str]
) -> None:
    path = spy("echo no stacks > stacks.raw")
    monkeypatch.setattr(profiling, "find_profiler", lambda: path)
    reason = take(trial(load=replace(LOAD, pace=Closed(1))), lab, tmp_path).failed
    assert "wrote cannot be read: line 1 of the profile is 'no stacks'" in reason

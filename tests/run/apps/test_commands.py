"""The commands around a race: run where and with what their user says, within a time, and nothing of them stays."""

import os
import shlex
import time
from pathlib import Path

import psutil
import pytest

from velodrome.model.errors import CommandFailedError
from velodrome.run.apps.commands import around
from velodrome.run.supervision.ward import Tail, Ward


def test_both_run_in_the_folder_with_the_variables(tmp_path: Path) -> None:
    with around('echo "$SHOP" > before', "echo after > after", str(tmp_path), {"SHOP": "blue"}):
        assert (tmp_path / "before").read_text() == "blue\n"
        assert not (tmp_path / "after").exists()
    assert (tmp_path / "after").exists()


def test_one_that_fails_is_reported_with_the_end_of_its_output(tmp_path: Path) -> None:
    with (
        pytest.raises(
            CommandFailedError,
            match=r"--setup 'echo no database; exit 3' failed \(exit 3\)(.|\n)*no database",
        ),
        around("echo no database; exit 3", "", str(tmp_path), {}),
    ):
        pytest.fail("nothing may be measured")


def test_its_last_output_is_reported_however_late_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain = Tail._drain

    def late(tail: Tail) -> None:
        time.sleep(0.3)
        drain(tail)

    monkeypatch.setattr(Tail, "_drain", late)
    with (
        pytest.raises(CommandFailedError, match=r"no database$"),
        around("echo no database; exit 3", "", str(tmp_path), {}),
    ):
        pytest.fail("nothing may be measured")


def test_one_that_does_not_end_is_ended(tmp_path: Path) -> None:
    began = time.monotonic()
    with (
        pytest.raises(CommandFailedError, match=r"did not end within 0\.3 s"),
        around("sleep 600", "", str(tmp_path), {}, longest_s=0.3),
    ):
        pytest.fail("nothing may be measured")
    assert time.monotonic() - began < 10


def test_what_it_leaves_in_the_background_lives_as_long_as_the_race(tmp_path: Path) -> None:
    with around("sleep 600 & echo $! > pid", "", str(tmp_path), {}):
        pid = int((tmp_path / "pid").read_text())
        assert psutil.pid_exists(pid)
    assert not psutil.pid_exists(pid)


@pytest.mark.parametrize("interrupted", [False, True])
def test_what_it_left_in_the_background_is_asked_to_end_and_has_time_to(
    tmp_path: Path, interrupted: bool
) -> None:
    # A shell that traps, as the launchers of databases do, with a child in the foreground.
    saves = "trap 'sleep 0.3; touch saved; exit' TERM; touch ready; while :; do sleep 0.1; done"
    setup = f"sh -c {shlex.quote(saves)} & while ! test -e ready; do sleep 0.01; done"
    try:
        with around(setup, "", str(tmp_path), {}):
            assert not (tmp_path / "saved").exists()
            if interrupted:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert (tmp_path / "saved").exists()


def test_what_does_not_end_when_it_is_asked_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = "sh -c 'trap : TERM; echo $$ > pid; while :; do sleep 1; done' & while ! test -s pid; do :; done"
    monkeypatch.setattr(
        Ward, "stop", lambda ward, deadline_s=10.0, stop=Ward.stop: stop(ward, deadline_s / 20)
    )
    with around(setup, "", str(tmp_path), {}):
        pid = int((tmp_path / "pid").read_text())
        assert psutil.pid_exists(pid)
    assert not psutil.pid_exists(pid)


def test_the_one_after_runs_also_when_the_race_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), around("", "touch after", str(tmp_path), {}):
        raise KeyboardInterrupt
    assert (tmp_path / "after").exists()


def test_its_exit_does_not_end_what_waits_for_it(tmp_path: Path) -> None:
    with around("cd / && exit 0", f"test $(pwd) = {os.path.realpath(tmp_path)}", str(tmp_path), {}):
        pass

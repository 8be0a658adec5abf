"""A system that does not show something: what falls away is reported, with the cure; where all is shown, nothing."""

import os
from pathlib import Path

import pytest

from velodrome.run.instruments.screens import list_lacking
from velodrome.run.measuring import kernel

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def compares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the kernel of this machine says of shared files."""
    monkeypatch.setattr(kernel, "tells_open_files", lambda: True)


def proc(folder: Path, *, schedstat: bool = True, others: bool = True, groups: bool = True) -> Path:
    """Return a made-up /proc."""

    own, mount = folder / "self", folder / "groups"
    for each in (own, mount, folder / str(os.getpid())):
        each.mkdir(parents=True)
    if schedstat:
        (own / "schedstat").write_text("1 2 3\n")
    if others:
        (folder / "1").mkdir()
        (folder / "1" / "stat").write_text("1 (init) S\n")
    if groups:
        (own / "mountinfo").write_text(f"30 20 0:1 / {mount} rw - cgroup2 none rw\n")
        (folder / str(os.getpid()) / "cgroup").write_text("0::/\n")
        (mount / "cpu.stat").write_text("throttled_usec 0\n")
    return folder


def test_where_everything_is_shown_nothing_is_reported(tmp_path: Path) -> None:
    assert list(list_lacking(proc(tmp_path), "linux")) == []


@pytest.mark.parametrize(
    ("missing", "named"),
    [("schedstat", "blocking-call and gil-convoy"), ("others", "hidepid"), ("groups", "throttled")],
)
def test_what_is_not_shown_is_reported_with_what_falls_away_and_the_cure(
    missing: str, named: str, tmp_path: Path
) -> None:
    (sentence,) = list_lacking(proc(tmp_path, **{missing: False}), "linux")
    assert named in sentence
    assert ": " in sentence


def test_another_system_is_named(tmp_path: Path) -> None:
    (sentence,) = list_lacking(tmp_path, "darwin")
    assert sentence.startswith("darwin")
    assert "Linux" in sentence


def test_where_processes_cannot_be_compared_shared_epolls_are_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "tells_open_files", lambda: False)
    (sentence,) = list_lacking(proc(tmp_path), "linux")
    assert "shared-epoll" in sentence

"""Where a file that a user names can be written, and what becomes of what is there."""

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.report.pipes import reader

from velodrome.model.errors import OutputError
from velodrome.report import json, writing

pytestmark = pytest.mark.unit


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for number in (read, write):
        try:
            os.close(number)
        except OSError:
            continue


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("what was there is longer")
    path.chmod(0o600)
    before = path.stat().st_ino
    writing.write(path, "new")
    assert (path.read_text(), mode(path)) == ("new", 0o600)
    assert path.stat().st_ino != before
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_new_file_has_the_mode_of_every_new_file(tmp_path: Path) -> None:
    writing.write(tmp_path / "a.csv", "new")
    (tmp_path / "b.csv").touch()
    assert mode(tmp_path / "a.csv") == mode(tmp_path / "b.csv")


@pytest.mark.parametrize("there", [True, False])
def test_through_a_link_what_is_behind_it_is_replaced(tmp_path: Path, there: bool) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target.csv", tmp_path / "link.csv"
    if there:
        target.write_text("old")
        target.chmod(0o640)
    link.symlink_to("far/target.csv")
    assert writing.obstacle(str(link)) == ""
    writing.write(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert not there or mode(target) == 0o640


def test_a_link_in_a_folder_of_results_is_replaced_as_the_folder_may_be_a_strangers(tmp_path: Path) -> None:
    mine, report = tmp_path / "mine", tmp_path / "report.md"
    mine.write_text("mine")
    report.symlink_to(mine)
    json.save(report, "report")
    assert (mine.read_text(), report.read_text()) == ("mine", "report")
    assert not report.is_symlink()
    report.chmod(0o600)
    json.save(report, "again")
    assert mode(report) == 0o600


def test_links_in_a_circle_are_refused_before_and_when_writing(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert writing.obstacle(str(tmp_path / "a"))
    with pytest.raises(OutputError):
        writing.write(tmp_path / "a", "new")


def test_a_named_pipe_is_written_into_and_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    assert writing.obstacle(str(path)) == ""
    assert writing.is_stream(str(path))
    with reader(path) as heard:
        writing.write(path, "through it")
    assert heard == ["through it"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_device_is_written_into_and_two_may_write_it() -> None:
    writing.write(Path("/dev/null"), "gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert writing.is_stream("/dev/null")
    assert writing.identity("/dev/null") is None


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_an_open_file_is_written_into_by_its_number(pipe: tuple[int, int], folder: str) -> None:
    if not os.path.isdir(folder):
        pytest.skip(f"this system has no {folder}")
    read, write = pipe
    path = f"{folder}/{write}"
    assert writing.obstacle(path) == ""
    writing.write(Path(path), "one ")
    writing.write(Path(path), "two")
    os.close(write)
    assert os.read(read, 100) == b"one two"


def test_what_was_written_into_an_open_file_before_stays(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with path.open("w") as file:
        file.write("before\n")
        file.flush()
        writing.write(Path(f"/dev/fd/{file.fileno()}"), "after\n")
        file.write("at last\n")
    assert path.read_text() == "before\nafter\nat last\n"


def test_a_link_to_an_open_file_is_one(pipe: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(f"/dev/fd/{pipe[1]}")
    writing.write(tmp_path / "link", "through it")
    assert os.read(pipe[0], 100) == b"through it"


def test_an_open_file_that_is_only_read_or_closed_is_refused(pipe: tuple[int, int]) -> None:
    read, write = pipe
    assert "reading" in writing.obstacle(f"/dev/fd/{read}")
    os.close(write)
    assert writing.obstacle(f"/dev/fd/{write}")
    with pytest.raises(OutputError):
        writing.write(Path(f"/dev/fd/{write}"), "new")


def test_what_can_never_be_written_is_refused_before_and_when_writing(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    (tmp_path / "dangling").symlink_to("no/where")
    (tmp_path / "file").touch()
    for path in (
        tmp_path,
        tmp_path / "socket",
        tmp_path / "no" / "a",
        tmp_path / "dangling",
        tmp_path / "file" / "a",
    ):
        assert writing.obstacle(str(path)), path
        with pytest.raises(OutputError):
            writing.write(path, "new")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_is_not_ours_to_write_is_refused_before_and_when_writing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    path.chmod(0o444)
    assert writing.obstacle(str(path))
    with pytest.raises(OutputError):
        writing.write(path, "new")
    assert path.read_text() == "old"


def test_a_file_that_nothing_can_be_moved_onto_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mounted.csv"
    path.write_text("what was there is longer")

    def busy(_from: str, _to: str) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(os, "replace", busy)
    writing.write(path, "new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["mounted.csv"]
    with pytest.raises(OutputError):
        writing.write(tmp_path / "none.csv", "new")
    assert os.listdir(tmp_path) == ["mounted.csv"]


def test_what_is_one_file_has_one_identity_however_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "same").hardlink_to(tmp_path / "a")
    (tmp_path / "new").symlink_to("none")
    names = ("a", "link", "same", "../" + tmp_path.name + "/a")
    assert len({writing.identity(str(tmp_path / name)) for name in names}) == 1
    assert writing.identity(str(tmp_path / "new")) == writing.identity(str(tmp_path / "none"))
    assert writing.identity(str(tmp_path / "a")) != writing.identity(str(tmp_path / "none"))

"""Where a tool is looked for, and which version is good enough."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from velodrome.model.errors import DriverMissingError, DriverTooOldError
from velodrome.run.drivers import foreign, ghz
from velodrome.run.drivers.foreign import Tool

SOME = Tool("some-tool", "nothing", oldest="1.10", cure="Install it: apt install some-tool")
Put = Callable[[Path, str], Path]


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Put:
    """Write a script that is the tool; nothing else is found anywhere."""
    for name in ("GOBIN", "GOPATH", "CARGO_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))

    def write(folder: Path, script: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / SOME.name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return write


@pytest.mark.parametrize("sentence", ["some-tool 1.10", "v2.0.1-rc1", "tool debian/1.10.0-3+b2 [epoll]"])
def test_a_new_enough_version_is_found_whatever_stands_around_it(
    put: Put, tmp_path: Path, sentence: str
) -> None:
    path = put(tmp_path / "path", f"echo '{sentence}'; exit 1")
    assert SOME.find().path == str(path)


def test_versions_are_compared_as_numbers(put: Put, tmp_path: Path) -> None:
    put(tmp_path / "path", "echo 1.9.9")
    with pytest.raises(
        DriverTooOldError, match=r"its version is 1.9.9; 1.10 or newer is required. Install it: apt"
    ):
        SOME.find()


def test_a_tool_without_a_version_is_not_used(put: Put, tmp_path: Path) -> None:
    put(tmp_path / "path", "echo hello")
    with pytest.raises(DriverTooOldError, match="does not report its version"):
        SOME.find()


def test_a_tool_that_hangs_when_asked_for_its_version_is_not_used(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "PATIENCE_S", 0.2)
    put(tmp_path / "path", "exec /bin/sleep 60")
    with pytest.raises(DriverTooOldError):
        SOME.find()


def test_a_missing_tool_is_reported_with_its_cure(put: Put) -> None:
    with pytest.raises(DriverMissingError, match=r"some-tool is not installed.* apt install some-tool"):
        SOME.find()


@pytest.mark.parametrize(
    ("variable", "value", "folder"),
    [
        (None, "", "home/go/bin"),
        (None, "", "home/.cargo/bin"),
        ("GOBIN", "{}/gobin", "gobin"),
        ("GOPATH", "{0}/a:{0}/b", "b/bin"),
        ("CARGO_HOME", "{}/cargo", "cargo/bin"),
    ],
)
def test_it_is_found_where_go_and_cargo_install(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None, value: str, folder: str
) -> None:
    path = put(tmp_path / folder, "echo 1.10")
    if variable:
        monkeypatch.setenv(variable, value.format(tmp_path))
    assert SOME.find().path == str(path)


def test_path_comes_first_and_a_new_program_is_checked_anew(put: Put, tmp_path: Path) -> None:
    put(tmp_path / "home/go/bin", "echo 3.0")
    path = put(tmp_path / "path", "echo 2.0")
    assert SOME.find().version == "2.0"
    path.write_text("#!/bin/sh\necho 2.1\n")
    os.utime(path, ns=(1, 1))
    assert SOME.find().version == "2.1"


def test_the_version_of_a_ghz_made_by_go_install_is_read_from_the_program(put: Put, tmp_path: Path) -> None:
    path = put(tmp_path / "path", "echo dev")
    with path.open("ab") as program:
        program.write(b"\0path\tgithub.com/bojand/ghz/cmd/ghz\nmod\tgithub.com/bojand/ghz\tv0.120.0\th1:x=\n")
    renamed = path.rename(path.with_name("ghz"))
    found = ghz.TOOL.find()
    assert (found.path, found.version) == (str(renamed), "0.120.0")

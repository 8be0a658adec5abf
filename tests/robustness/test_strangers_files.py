"""A file of a stranger runs, installs and sends nothing that its user has not allowed; their results never do."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import velodrome as vd
from velodrome.cli._application import application
from velodrome.model.errors import UntrustedError, VelodromeError
from velodrome.run import cache
from velodrome.run.environments import interpreter
from velodrome.run.machine import measuring_lock

STUDY = """
title = "{title}"
blocks = 1
contestants = [{{stack = "socketserver-single", name = "old", python = "{python}"{more}}}, "socketserver-threading"]
[[questions]]
recipe = "hello"
loads = [{{connections = 1, requests = 1, duration = "1s"}}]
"""
ONLY = ("hello/old",)
DEADLINE_S = 60.0


@pytest.fixture(autouse=True)
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a repository just cloned, in which velodrome is started with a cache of its own."""
    folder = tmp_path / "clone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(measuring_lock.VARIABLE, str(tmp_path / "lock"))
    (tmp_path / "id_rsa").write_text("s3cret-key")
    script(folder / "x.sh")
    study(folder)
    return folder


def script(path: Path, more: str = "") -> None:
    """Write an executable that leaves a mark."""
    path.write_text(f"#!/bin/sh\n{more}\ntouch ran-{path.stem}\nexit 3\n")
    path.chmod(0o755)


def study(folder: Path, title: str = "Which?", python: str = "./x.sh", more: str = "") -> Path:
    path = folder / "mine.toml"
    path.write_text(STUDY.format(title=title, python=python, more=more))
    return path


def ran(folder: Path) -> set[str]:
    """Return which scripts ran since the last call."""
    found = list(folder.glob("ran-*"))
    for path in found:
        path.unlink()
    interpreter._find.cache_clear()
    return {path.name.removeprefix("ran-") for path in found}


def velodrome(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "velodrome", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
        stdin=subprocess.DEVNULL,
    )


def invoked(*words: str) -> tuple[int, str]:
    """Run a command in this process, which has imported all it needs; return its exit code and what it printed."""
    ended = CliRunner().invoke(application(), words)
    if isinstance(ended.exception, VelodromeError):
        return ended.exception.exit_code, f"{ended.output}{ended.exception}"
    assert ended.exception is None or isinstance(ended.exception, SystemExit), ended.exception
    return ended.exit_code, ended.output


def race(*, trust: bool = False) -> None:
    vd.race("./mine.toml", only=ONLY, trust=trust, out=f"run-{time.monotonic_ns()}")


def test_an_executable_of_a_study_runs_only_when_it_is_allowed_and_as_long_as_it_stays_the_same(
    clone: Path,
) -> None:
    with pytest.raises(UntrustedError) as caught:
        race()
    assert len(caught.value.named) == 1
    assert "./x.sh" in caught.value.named[0]
    assert (ran(clone), [*clone.glob("run-*")]) == (set(), [])
    race(trust=True)
    assert ran(clone) == {"x"}
    # An edit of anything else does not ask again.
    study(clone, title="Which one, then?")
    race()
    assert ran(clone) == {"x"}
    # Other bytes, another name or a package do.
    script(clone / "x.sh", "echo changed")
    with pytest.raises(UntrustedError):
        race()
    script(clone / "y.sh")
    study(clone, python="./y.sh")
    with pytest.raises(UntrustedError):
        race()
    study(clone, python="3.12", more=', packages = {tornado = "5.1.1"}')
    with pytest.raises(UntrustedError, match=r"tornado==5\.1\.1"):
        race()
    assert ran(clone) == set()


def test_what_is_not_run_is_not_asked_for(clone: Path) -> None:
    with pytest.raises(UntrustedError):
        vd.race("./mine.toml")
    vd.race("./mine.toml", only=("hello/socketserver-threading",))
    assert ran(clone) == set()


def test_the_command_line_refuses_with_code_2_and_is_allowed_by_an_option(clone: Path) -> None:
    words = ("run", "./mine.toml", "--only", *ONLY, "--out", "run")
    refused = velodrome(*words)
    assert refused.returncode == 2, refused.stderr
    assert "executes './x.sh' (contestant old)" in refused.stderr
    assert "--trust" in refused.stderr
    assert ran(clone) == set()
    allowed = velodrome(*words, "--trust")
    assert allowed.returncode == 3, allowed.stderr  # it is no interpreter, so nothing could be measured
    assert ran(clone) == {"x"}


def test_where_standard_input_is_closed_nobody_is_asked(clone: Path) -> None:
    mix(clone)
    line = f"exec {sys.executable} -m velodrome requests --requests mix.toml <&-"
    ended = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    assert ended.returncode == 2, ended.stderr
    assert len(ended.stderr.splitlines()) < 10


def test_a_group_is_asked_for_before_its_first_study(clone: Path) -> None:
    (clone / "group").mkdir()
    study(clone, python="").rename(clone / "group" / "a.toml")
    study(clone).rename(clone / "group" / "b.toml")
    code, sentence = invoked("run", "./group", "--out", "run")
    assert code == 2, sentence
    assert not (clone / "run").exists()


def test_studies_that_ship_need_no_asking() -> None:
    from velodrome.plan import study_file, untrusted  # noqa: PLC0415
    from velodrome.usecases.studies import Trust, list_known  # noqa: PLC0415

    there, naming = list_known(), 0
    trust = Trust(given=False, ask=None, say=pytest.fail)
    for name, path in study_file.shipped_studies().items():
        loaded = study_file.load_study(name, there)
        naming += bool(untrusted.of_study(loaded))
        trust.see_study(name, loaded)
        trust.see_study(str(path), loaded)
    assert naming > 0


def test_results_of_a_stranger_run_nothing(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vd.race("./mine.toml", only=ONLY, trust=True, out="run")
    assert ran(clone) == {"x"}
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "another"))
    shutil.copytree("run", "again")
    for words, code in ((("judge", "run"), 0), (("diff", "run", "again"), 0)):
        assert invoked(*words)[0] == code
    vd.read("run")
    code, sentence = invoked("run", "./mine.toml", "--only", *ONLY, "--out", "run", "--resume")
    assert code == 2, sentence
    assert "./x.sh" in sentence
    assert ran(clone) == set()


# Files that a file of requests names.


def mix(folder: Path, body: str = "@../id_rsa") -> Path:
    path = folder / "mix.toml"
    path.write_text(f"[[request]]\nname = 'order'\nmethod = 'POST'\npath = '/'\nbody = '{body}'\n")
    return path


@pytest.mark.parametrize("body", ["@../id_rsa", "{absolute}", "@link"])
def test_a_file_elsewhere_is_neither_sent_nor_shown(body: str, clone: Path, tmp_path: Path) -> None:
    (clone / "link").symlink_to(tmp_path / "id_rsa")
    mix(clone, body.replace("{absolute}", f"@{tmp_path / 'id_rsa'}"))
    with pytest.raises(UntrustedError) as caught:
        vd.requests(file="mix.toml")
    assert "s3cret" not in str(caught.value)
    (request,) = vd.requests(file="mix.toml", trust=True).requests
    assert request.body is not None
    assert request.body.text == "s3cret-key"
    vd.requests(file="mix.toml")  # remembered
    (tmp_path / "id_rsa").write_text("s3cret-key-2")
    with pytest.raises(UntrustedError):
        vd.requests(file="mix.toml")


@pytest.mark.parametrize(
    "words",
    [
        ("load", "http://127.0.0.1:9/", "--requests-file"),
        ("compare", "app:app", "--requests"),
        ("capacity", "app:app", "--stack", "waitress", "--requests"),
        ("tune", "app:app", "--requests"),
        ("diff", "HEAD", "HEAD", "--app", "app:app", "--requests"),
    ],
)
def test_every_command_that_takes_such_a_file_refuses_it(words: tuple[str, ...], clone: Path) -> None:
    mix(clone)
    code, sentence = invoked(*words, "mix.toml")
    assert code == 2, sentence
    assert "reads and sends '../id_rsa' (request order, body)" in sentence
    assert "s3cret" not in sentence


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def answered(terminal: tuple[int, int], answer: bytes, *words: str) -> tuple[int, str, str]:
    """Answer the question of a command on a terminal; return its exit code, what it printed and what the user saw."""
    ours, theirs = terminal
    seen, until = b"", time.monotonic() + DEADLINE_S
    with subprocess.Popen(
        [sys.executable, "-m", "velodrome", *words],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as process:
        while b"[y/N]" not in seen:
            assert time.monotonic() < until, seen
            if select.select([ours], [], [], 0.2)[0]:
                seen += os.read(ours, 4096)
            assert process.poll() is None or select.select([ours], [], [], 0)[0], seen
        os.write(ours, answer)
        printed, _ = process.communicate(timeout=DEADLINE_S)
    return process.returncode, printed, seen.decode()


@pytest.mark.parametrize("answer", [b"n\n", b"\x04"])
def test_what_is_not_a_yes_is_a_no(answer: bytes, clone: Path, terminal: tuple[int, int]) -> None:
    mix(clone)
    code, printed, _ = answered(terminal, answer, "requests", "--requests", "mix.toml")
    assert (code, printed) == (2, "")


def test_a_yes_on_a_terminal_allows_it_from_then_on(
    clone: Path, terminal: tuple[int, int], tmp_path: Path
) -> None:
    nasty = "\x1b]0;owned\x07id"
    (tmp_path / nasty).write_text("s3cret-key")
    (clone / "mix.json").write_text(
        '[{"name": "a\\u001b[2J", "method": "POST", "path": "/", "body": "@../\\u001b]0;owned\\u0007id"}]'
    )
    code, printed, seen = answered(terminal, b"y\n", "requests", "--requests", "mix.json")
    assert code == 0
    assert "s3cret-key" in printed
    assert "owned" in seen
    assert not {"\x1b", "\x07"} & set(seen)
    assert invoked("requests", "--requests", "mix.json") == (0, printed)
    (tmp_path / nasty).write_text("another")
    assert invoked("requests", "--requests", "mix.json")[0] == 2

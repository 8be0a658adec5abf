"""The short way into a load: it reads what typer reads, and nothing that typer would refuse."""

import inspect
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from velodrome.cli import _quick, load
from velodrome.cli._quick import typer_command

URL = "http://127.0.0.1:8000/"
RIGHT: tuple[list[str], ...] = (
    [URL],
    [URL, "-c", "64", "-z", "5s", "-t2"],
    ["-c64", "--rate=5000", URL, "--arrivals", "poisson", "--json"],
    [URL, "-R", "100..500", "--step", "100.5", "--every", "1s"],
    [URL, "--no-keepalive", "-H", "a: b", "--header", "c: d", "--insecure"],
    [URL, "--idle", "0", "--hdr", "x.hlog", "--proto", "a.proto", "--proto", "b.proto", "-I", "."],
    [URL, "--transport", "epoll", "--ws-mode", "echo", "--body", "", "--fail-if", "p99 > 1s"],
)
DOUBTFUL: tuple[list[str], ...] = (
    [],
    ["--help"],
    [URL, "--help"],
    [URL, URL],
    [URL, "-c"],
    [URL, "-t", "many"],
    [URL, "-c", "-5"],
    [URL, "-c", "1", "-c", "2"],
    [URL, "--idle", "-1"],
    [URL, "--transport", "pigeon"],
    [URL, "--unheard-of"],
    [URL, "--json=1"],
    [URL, "--step", "nan"],
    [URL, "--", "x"],
)


def by_typer(words: Sequence[str]) -> dict[str, Any]:
    """Return what typer calls the command with."""
    seen: dict[str, Any] = {}

    def command(**given: Any) -> None:
        seen.update(given)

    command.__annotations__ = load.command.__annotations__
    vars(command)["__signature__"] = inspect.signature(load.command)
    app = typer.Typer()
    app.command()(typer_command(command))
    ended = CliRunner().invoke(app, list(words))
    assert ended.exit_code == 0, ended.output
    return seen


@pytest.mark.parametrize("words", RIGHT, ids=" ".join)
def test_what_it_reads_is_what_typer_reads(words: Sequence[str]) -> None:
    given = _quick.read(load.command, words)
    assert given is not None
    parameters = inspect.signature(load.command).parameters.values()
    defaults = {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.default is not parameter.empty
    }
    assert by_typer(words) == defaults | given


@pytest.mark.parametrize("words", DOUBTFUL, ids=" ".join)
def test_whatever_is_not_plainly_right_is_left_to_typer(words: Sequence[str]) -> None:
    assert _quick.read(load.command, words) is None


NEEDED = {"__future__", "math"}
"""Of the standard library, beside what an interpreter has when it has started."""


@pytest.mark.parametrize(
    "words", [["-n", "1"], ["-R", "500", "-z", "1s", "--json", "--hdr", "x", "-H", "a: b"]]
)
def test_a_load_imports_next_to_nothing_before_its_first_request(words: Sequence[str]) -> None:
    program = (
        "import sys; before = set(sys.modules)\n"
        "from velodrome.run import engine\n"
        "def instead(*_): print(*set(sys.modules) - before); sys.exit(0)\n"
        f"engine.load = instead; sys.argv = ['velodrome', 'load', 'http://127.0.0.1:1/', *{words!r}]\n"
        "from velodrome.cli.main import main; main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(ended.stdout.split())
    assert {name for name in loaded if name.partition(".")[0] != "velodrome"} <= NEEDED
    assert len(loaded) < 40


def test_a_whole_load_imports_nothing_of_studies_and_results() -> None:
    words = [sys.executable, "-X", "importtime", "-m", "velodrome", "load", "http://127.0.0.1:1/", "-n", "1"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    loaded = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines() if "import time:" in line}
    assert "velodrome.judge.bottleneck" in loaded  # it came to its end
    assert not loaded & {"pydantic", "psutil", "numpy", "velodrome.model.results"}

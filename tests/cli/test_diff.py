"""`velodrome diff` on stored runs, as a user types it."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as Tree

import jsonschema
import pytest
from tests.cli.stored_runs import write
from tests.judge.regression.made import CLOSED_Q, rates, stored

from velodrome.cli.main import main
from velodrome.report import schema

STEADY = [1000.0, 1010, 990, 1005]


@pytest.fixture
def runs(tmp_path: Path) -> tuple[str, str]:
    """A run, and one that answers two fifths as many."""
    before = write(tmp_path / "before", stored(rates(STEADY), CLOSED_Q))
    after = write(tmp_path / "after", stored(rates([0.4 * rate for rate in STEADY]), CLOSED_Q))
    return str(before), str(after)


@dataclass
class Ended:
    returncode: int
    stdout: str
    stderr: str


Velodrome = Callable[..., Ended]


@pytest.fixture
def velodrome(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Velodrome:
    """`velodrome diff` in this process: what it imports takes longer than what it does."""

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["velodrome", "diff", *arguments])
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        return Ended(code if isinstance(code, int) else 0, out, err)

    return run


def test_a_regression_is_reported_and_fails_only_with_the_option_for_it(
    velodrome: Velodrome, runs: tuple[str, str]
) -> None:
    finished = velodrome(*runs)
    assert finished.returncode == 0, finished.stderr
    assert "✗ Regression" in finished.stdout
    assert velodrome(*runs, "--fail-on", "regression", "--metrics", "throughput").returncode == 1


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--threshold", "throughput -10%"], 1),
        (["--threshold", "throughput -60%"], 4),
        (["--threshold", "memory +20%"], 0),
        (["--threshold", "memory +2%"], 4),
        (["--fail-on", "improvement", "--metrics", "memory"], 0),
        (["--fail-on", "regression", "--metrics", "memory", "--margin", "1%"], 4),
        (["--threshold", "memory +0%"], 2),
        (["--metrics", "speed"], 2),
    ],
)
def test_exit_codes_tell_broken_from_kept_from_what_cannot_be_told(
    velodrome: Velodrome, runs: tuple[str, str], options: Sequence[str], code: int
) -> None:
    finished = velodrome(*runs, *options)
    assert finished.returncode == code, finished.stdout + finished.stderr
    assert ("velodrome: " in finished.stderr) == (code == 2)


def test_every_form_is_written_to_a_file(velodrome: Velodrome, runs: tuple[str, str], tmp_path: Path) -> None:
    for form in ("markdown", "json", "junit", "text"):
        assert velodrome(*runs, "--format", form, "--out", str(tmp_path / form)).stdout == ""
    jsonschema.validate(json.loads((tmp_path / "json").read_text()), schema.diff())
    assert Tree.parse(tmp_path / "junit").getroot().tag == "testsuites"
    assert (tmp_path / "markdown").read_text().startswith("### ✗ Regression")
    assert " ✗ Regression\n   Regression: throughput of" in (tmp_path / "text").read_text()


def test_results_of_another_machine_are_refused(
    velodrome: Velodrome, tmp_path: Path, runs: tuple[str, str]
) -> None:
    there = stored(rates(STEADY), CLOSED_Q, machine={"cpu": "another", "cpus": 64})
    finished = velodrome(runs[0], str(write(tmp_path / "there", there)))
    assert finished.returncode == 2
    assert "different machines" in finished.stderr


def test_a_run_that_is_not_there_says_so(velodrome: Velodrome, runs: tuple[str, str]) -> None:
    finished = velodrome(runs[0], "nowhere")
    assert finished.returncode == 3
    assert finished.stderr.startswith("velodrome: cannot read nowhere: No such file")


def test_what_says_nothing_to_stored_runs_is_refused(velodrome: Velodrome, runs: tuple[str, str]) -> None:
    finished = velodrome(*runs, "--request", "GET /", "--stack", "waitress", "-R", "5")
    assert finished.returncode == 2
    finished = velodrome(*runs, "--request", "GET /", "--stack", "waitress", "-z", "3s", "--budget", "1m")
    assert finished.returncode == 2
    assert "--request, --stack, --duration, --budget have no effect here: stored runs" in finished.stderr

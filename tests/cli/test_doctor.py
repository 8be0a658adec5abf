"""`velodrome doctor`: what it looks for, and what is refused before anything is started."""

import json
from pathlib import Path

import pytest
from tests.cli.running import velodrome, within

from velodrome.diagnoses.fault import catalogue


def test_the_list_explains_every_fault_of_the_catalogue() -> None:
    ended = velodrome(None, "doctor", "--list")
    assert ended.returncode == 0, ended.stderr
    for name, fault in catalogue().items():
        assert name in ended.stdout
        assert fault.proof in ended.stdout


def test_the_list_is_read_by_programs_too() -> None:
    ended = velodrome(None, "doctor", "--list", "--only", "nodelay", "--json")
    (listed,) = json.loads(ended.stdout)
    assert listed["id"] == "nodelay"
    assert listed["proven"] == catalogue()["nodelay"].proof
    assert listed["met_in"]


def test_the_list_can_be_narrowed() -> None:
    ended = velodrome(None, "doctor", "--list", "--skip", "nodelay")
    assert "nodelay" not in ended.stdout
    assert "gc-pause" in ended.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "give an app"),
        (("--recipe", "hello", "--only", "gc-paus"), "gc-pause"),
        (("--recipe", "hello", "--skip", "none"), "velodrome doctor --list"),
        (("--recipe", "hello", "--fail-on", "nodely"), "nodelay"),
        (("--recipe", "hello", "--only", "nodelay", "--fail-on", "gc-pause"), "--only"),
        (("--recipe", "hello", "--skip", "gc-pause", "--fail-on", "gc-pause"), "--skip"),
        (("--recipe", "hello", "--skip", "gc-pause", "--only", "gc-pause"), "no fault"),
        (("--recipe", "hello", "--budget", "soon"), "--budget"),
        (("--recipe", "hello", "--stack", "uvicornn"), "uvicorn"),
        (("--recipe", "hello", "--slo", "p99 is low"), "p99 is low"),
        (("--recipe", "hello", "--html", "/nowhere/doctor.html"), "--html"),
        (("--recipe", "hello", "--junit", "/nowhere/doctor.xml"), "--junit"),
        (("--recipe", "hello", "--out", "/nowhere/doctor.json"), "--out"),
        (("--recipe", "hello", "--stack", "uvicorn", "--threads", "4"), "threads"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    code, written = within(tmp_path, "doctor", *words)
    assert code == 2, written
    assert sentence in written
    assert "Traceback" not in written
